"""The numbers of a scorecard that stand beside the score, in the groups in which reports show them.

A new metric of a known family stands in its group by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from otel_reliability.metrics import TABLE
from otel_reliability.metrics.base import Derived
from otel_reliability.metrics.sessions import gauges
from otel_reliability.metrics.stability.score import PENALTIES
from otel_reliability.model.reading import Reading
from otel_reliability.report.scorecard import ALL_SPECS

METHODOLOGY: Final = frozenset({"consistency", "predictability", "robustness", "safety", "reliability"})
"""The families of the evaluation methodology."""
ELSEWHERE: Final = frozenset({*PENALTIES, "score", "score_coverage", "tier", "flag", "pass_at_k", "pass_hat_k"})
"""Numbers that a report shows in a place of their own."""


def _of(*families: str) -> tuple[str, ...]:
    return tuple(name for name, spec in ALL_SPECS.items() if spec.family in families and name not in ELSEWHERE)


STABILITY: Final = _of("stability")
EVALUATION: Final = _of(*METHODOLOGY)
PASSES: Final = _of("passes")
SESSION_GAUGES: Final = _of(gauges.FAMILY)

_NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    row.spec.name: row.needs for row in TABLE if issubclass(row, Derived) and row.spec.family in METHODOLOGY
}


def made_of(readings: Mapping[str, Reading], names: Sequence[str]) -> Iterator[str]:
    """Of which parts each aggregate among the names was made, and which had no evidence.

    >>> readings = {
    ...     "reliability": Reading(0.7, 9, ("consistency",)),
    ...     "predictability": Reading(0.9, 9, ("brier_score",)),
    ... }
    >>> list(made_of(readings, ["reliability", "predictability"]))
    ['reliability is made of consistency; no evidence for predictability, robustness']
    """
    for name in names:
        needs, parts = _NEEDS.get(name, ()), readings[name].parts
        absent = [part for part in needs if part not in parts]
        if absent:
            yield f"{name} is made of {', '.join(parts)}; no evidence for {', '.join(absent)}"
        elif len(needs) > 1:
            yield f"{name} is made of {', '.join(parts)}"
