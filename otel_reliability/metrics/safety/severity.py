"""How bad a violated constraint is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from otel_reliability.model.row import Row

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


def severities(row: Row) -> tuple[str, ...] | None:
    """The severities of a baseline run's violations: empty for one judged clean, None for one that nobody judged."""
    if row.violations is None or not row.baseline:
        return None
    return tuple(severity for _, severity in row.violations)
