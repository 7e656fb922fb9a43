"""score: the five penalties in one number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from otel_reliability.config import Settings
from otel_reliability.metrics._support.means import clamp
from otel_reliability.metrics.base import DEFAULTS, Derived
from otel_reliability.model.reading import MetricSpec, Reading

PENALTIES: Final[Mapping[str, float]] = {
    "path_entropy": 15.0,
    "tool_variance": 20.0,
    "retry_explosion": 25.0,
    "branch_instability": 20.0,
    "token_budget_pressure": 20.0,
}
"""The most points that each part can cost. They sum to 100."""


class Score(Derived):
    """100 − 15·path_entropy − 20·tool_variance − 25·retry_explosion − 20·branch_instability − 20·token_budget_pressure.

    A part without evidence costs nothing, so a score rests on what is known: there is none below `metrics.min_runs`, nor
    where the parts with evidence are worth fewer than `metrics.min_coverage` (60) of the 100 points. The note says then what
    is missing; `score_coverage` stands beside every score. `parts` are the parts with evidence. State: none.

    The source's example:

    >>> parts = {"path_entropy": 0.2, "tool_variance": 0.1, "retry_explosion": 0.0, "branch_instability": 0.15}
    >>> readings = {name: Reading(value, 20) for name, value in {**parts, "token_budget_pressure": 0.65}.items()}
    >>> Score().derive({**readings, "window.runs": Reading(20.0, 20)}).value
    79.0
    >>> Score().derive({**readings, "window.runs": Reading(4.0, 4)})
    Reading(value=None, runs=4, parts=(...), note='4 of the 5 runs that a score needs')

    References: AgentCop, *Reliability Layer*, "Reliability Score". What is needed for a score is ours: its code calls an
    empty window 100, STABLE.
    """

    __slots__ = ("_min_coverage", "_min_runs")

    spec = MetricSpec(
        name="score",
        title="Reliability score",
        family="stability",
        unit="{score}",
        high=100.0,
        direction="higher",
        description="100 less what variance, retries and a full context window cost.",
        formula="100 − 15·path_entropy − 20·tool_variance − 25·retry_explosion − 20·branch_instability"
        " − 20·token_budget_pressure",
        evidence="min_runs runs, and parts worth 60 of the 100 points",
        source="AgentCop, Reliability Layer",
        improve="Begin with the part that costs most points.",
        interval="comparison",
    )
    needs = (*PENALTIES, "window.runs")

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._min_runs = settings.metrics.min_runs
        self._min_coverage = settings.metrics.min_coverage

    def derive(self, readings: Mapping[str, Reading]) -> Reading:
        runs = readings["window.runs"].runs
        costs = costs_of(readings)
        missing = self._missing(runs, costs)
        if missing:
            return Reading(None, runs, tuple(costs), missing)
        return Reading(min(max(100.0 - math.fsum(costs.values()), 0.0), 100.0), runs, tuple(costs))

    def _missing(self, runs: int, costs: Mapping[str, float]) -> str:
        if runs < self._min_runs:
            return f"{runs} of the {self._min_runs} runs that a score needs"
        if coverage_of(costs) < self._min_coverage:
            return "no evidence for " + ", ".join(name for name in PENALTIES if name not in costs)
        return ""


def costs_of(readings: Mapping[str, Reading]) -> dict[str, float]:
    """Return the penalty of each part with data, in points.

    >>> costs_of({name: Reading(0.5 if name == "path_entropy" else None, 9) for name in PENALTIES})
    {'path_entropy': 7.5}
    """
    return {
        name: points * clamp(value) for name, points in PENALTIES.items() if (value := readings[name].value) is not None
    }


def coverage_of(costs: Mapping[str, float]) -> float:
    """The points that the parts with evidence are worth."""
    return math.fsum(PENALTIES[name] for name in costs)
