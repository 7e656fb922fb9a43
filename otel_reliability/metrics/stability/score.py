"""score: the five penalties in one number, and the points assessed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from otel_reliability.config import Settings
from otel_reliability.metrics._support.sums import clamp
from otel_reliability.metrics.base import DEFAULTS, UNKNOWN_INPUTS, Derived
from otel_reliability.model.reading import NO_DATA, MetricSpec, Reading

PENALTIES: Final[Mapping[str, float]] = {
    "path_entropy": 15.0,
    "tool_variance": 20.0,
    "retry_explosion": 25.0,
    "branch_instability": 20.0,
    "token_budget_pressure": 20.0,
}
"""The weight of each part: the points that it can cost where all are assessed. They sum to 100."""


class PartCost(NamedTuple):
    """The points that a part lowers the score by, and the most that it could."""

    points: float
    most: float


class Score(Derived):
    """100 less the points that the parts of `PENALTIES` lose: score = 100 − lost · 100 / assessed.

    A part without data is left out: *assessed* is the sum of the weights of the parts with data
    (`score_coverage`), and *lost* what these parts cost of it. `metrics.missing: as_zero` counts
    absent parts as 0, as the source does. There is no score below `metrics.min_runs`, nor where
    fewer than `metrics.min_coverage` (60) points are assessed: the note says what is missing. (The
    source's code calls an empty window 100, STABLE.) `parts` are the parts with data.

    The source's example:

    >>> parts = {
    ...     "path_entropy": 0.2,
    ...     "tool_variance": 0.1,
    ...     "retry_explosion": 0.0,
    ...     "branch_instability": 0.15,
    ... }
    >>> readings = {
    ...     name: Reading(value, 20)
    ...     for name, value in {**parts, "token_budget_pressure": 0.65}.items()
    ... }
    >>> Score().derive({**readings, "window.runs": Reading(20.0, 20)}).value
    79.0
    >>> unknown = {
    ...     **readings,
    ...     "token_budget_pressure": Reading(None, 0),
    ...     "window.runs": Reading(20.0, 20),
    ... }
    >>> (
    ...     Score().derive(unknown).value,
    ...     Score(Settings.load(metrics={"missing": "as_zero"})).derive(unknown).value,
    ... )
    (90.0, 92.0)
    >>> Score().derive({**readings, "window.runs": Reading(4.0, 4)})
    Reading(value=None, runs=4, parts=(...), note='4 of the 5 runs that a score needs')
    """

    spec = MetricSpec(
        name="score",
        title="Reliability score",
        family="stability",
        unit="{score}",
        high=100.0,
        direction="higher",
        description=(
            "100 less what variance, retries and a full context window cost, of the points "
            "that could be assessed."
        ),
        formula="100 − (15·path_entropy + 20·tool_variance + 25·retry_explosion + "
        "20·branch_instability"
        " + 20·token_budget_pressure) · 100 / score_coverage",
        required_data="min_runs runs, and parts worth 60 of the 100 points",
        source="AgentCop, Reliability Layer",
        improve="Begin with the part that costs most points.",
        interval="comparison",
    )
    needs = (*PENALTIES, "window.runs")

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._min_runs = settings.metrics.min_runs
        self._min_coverage = settings.metrics.min_coverage
        self._as_zero = settings.metrics.missing == "as_zero"

    def derive(self, readings: Mapping[str, Reading]) -> Reading:
        runs = readings["window.runs"].runs
        parts = assessed(readings)
        missing = self._missing(runs, parts)
        if missing:
            return Reading(None, runs, parts, missing)
        lost = math.fsum(
            [points * clamp(readings[name].value or 0.0) for name, points in PENALTIES.items()]
        )
        note = next((UNKNOWN_INPUTS for name in parts if UNKNOWN_INPUTS in readings[name].note), "")
        return Reading(clamp(100.0 - lost * self._scale(parts), high=100.0), runs, parts, note)

    def penalties(self, readings: Mapping[str, Reading]) -> dict[str, PartCost]:
        """Return the penalty of each part with data; the points sum to 100 − score.

        >>> Score().penalties(
        ...     {name: Reading(0.5 if name == "path_entropy" else None, 9) for name in PENALTIES}
        ... )
        {'path_entropy': PartCost(points=50.0, most=100.0)}
        """
        parts = assessed(readings)
        scale = self._scale(parts)
        most = {name: PENALTIES[name] * scale for name in parts}
        return {
            name: PartCost(points * clamp(readings[name].value or 0.0), points)
            for name, points in most.items()
        }

    def _scale(self, parts: tuple[str, ...]) -> float:
        return 1.0 if self._as_zero or not parts else 100.0 / coverage_of(parts)

    def _missing(self, runs: int, parts: tuple[str, ...]) -> str:
        if runs < self._min_runs:
            return f"{runs} of the {self._min_runs} runs that a score needs"
        if coverage_of(parts) < self._min_coverage:
            return "no data for " + ", ".join(name for name in PENALTIES if name not in parts)
        return ""


def assessed(readings: Mapping[str, Reading]) -> tuple[str, ...]:
    """Return the parts that have data."""
    return tuple([name for name in PENALTIES if readings[name].value is not None])


def coverage_of(parts: Iterable[str]) -> float:
    """Return the points that these parts are worth."""
    return math.fsum([PENALTIES[name] for name in parts])


class ScoreCoverage(Derived):
    """The points, of the score's 100, whose parts have data; no value for an empty window.

    A score of 95 with coverage 60 says less than one of 90 with coverage 100.
    """

    spec = MetricSpec(
        name="score_coverage",
        title="Score coverage",
        family="stability",
        unit="{score}",
        high=100.0,
        direction="higher",
        description="How many of the score's 100 points could be assessed.",
        formula="Σ points of the parts with data",
        required_data="1 run",
        source="this project",
        improve=(
            "See which part has no data, and emit what it needs: tool spans, task ids, "
            "tokens and context limits."
        ),
    )
    needs = (*PENALTIES, "window.runs")

    def derive(self, readings: Mapping[str, Reading]) -> Reading:
        runs = readings["window.runs"].runs
        parts = assessed(readings)
        return Reading(coverage_of(parts), runs, parts) if runs else NO_DATA
