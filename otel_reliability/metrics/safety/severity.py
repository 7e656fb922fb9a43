"""How bad a violated constraint is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

WEIGHTS: Final = {"low": 0.25, "medium": 0.5, "high": 1.0}
UNKNOWN_WEIGHT: Final = 0.5


def weight(severity: str) -> float:
    """The weight of a severity word; of an unknown word that of medium.

    >>> weight("High"), weight("weird")
    (1.0, 0.5)
    """
    return WEIGHTS.get(severity.lower(), UNKNOWN_WEIGHT)


def worst(severities: Iterable[str]) -> float | None:
    """The greatest weight among a run's violations; None for a clean run.

    >>> worst(["low", "high"]), worst([])
    (1.0, None)
    """
    return max(map(weight, severities), default=None)
