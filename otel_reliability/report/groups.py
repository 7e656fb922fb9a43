"""The groups in which reports show the numbers of an agent: a new metric of a known family joins its group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from otel_reliability.metrics import ALL_SPECS, TABLE, sessions
from otel_reliability.metrics.base import Derived
from otel_reliability.metrics.stability.score import PENALTIES
from otel_reliability.report.view import ReadingView

EVALUATION_FAMILIES: Final = frozenset({"consistency", "predictability", "robustness", "safety", "reliability"})
"""Families of the evaluation methodology."""
_ELSEWHERE: Final = frozenset({*PENALTIES, "score", "score_coverage", "tier", "flag", "pass_at_k", "pass_hat_k"})
"""Numbers that a report shows in a section of their own."""


def _of(*families: str) -> tuple[str, ...]:
    return tuple(name for name, spec in ALL_SPECS.items() if spec.family in families and name not in _ELSEWHERE)


STABILITY: Final = _of("stability")
EVALUATION: Final = _of(*EVALUATION_FAMILIES)
PASSES: Final = _of("passes")
SESSION_GAUGES: Final = _of(sessions.FAMILY)

_NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    row.spec.name: row.needs for row in TABLE if issubclass(row, Derived) and row.spec.family in EVALUATION_FAMILIES
}


def made_of(metrics: Mapping[str, ReadingView], names: Sequence[str]) -> Iterator[str]:
    """Yield, for each aggregate among the names, the parts it was made of and those without data.

    >>> metrics = {
    ...     "reliability": ReadingView(0.7, 9, ("consistency",)),
    ...     "predictability": ReadingView(0.9, 9, ("brier_score",)),
    ... }
    >>> list(made_of(metrics, ["reliability", "predictability"]))
    ['reliability is made of consistency; not enough data for predictability, robustness']
    """
    for name in names:
        needs, parts = _NEEDS.get(name, ()), metrics[name].parts
        absent = [part for part in needs if part not in parts]
        if absent:
            yield f"{name} is made of {', '.join(parts)}; not enough data for {', '.join(absent)}"
        elif len(needs) > 1:
            yield f"{name} is made of {', '.join(parts)}"
