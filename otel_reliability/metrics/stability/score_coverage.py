"""score_coverage: how much of the score rests on evidence."""

from __future__ import annotations

from collections.abc import Mapping

from otel_reliability.metrics.base import Derived
from otel_reliability.metrics.stability.score import PENALTIES, assessed, coverage_of
from otel_reliability.model.reading import NO_EVIDENCE, MetricSpec, Reading


class ScoreCoverage(Derived):
    """The points, of the score's 100, whose parts have evidence. Below `metrics.min_coverage` (60) there is no score.

    A score of 95 with coverage 60 says less than one of 90 with coverage 100. No value for an empty window. State: none.

    References: this project.
    """

    __slots__ = ()

    spec = MetricSpec(
        name="score_coverage",
        title="Score coverage",
        family="stability",
        unit="{score}",
        high=100.0,
        direction="higher",
        description="How many of the score's 100 points rest on evidence.",
        formula="Σ points of the parts with evidence",
        evidence="1 run",
        source="this project",
        improve="See which part has no evidence, and emit what it needs: tool spans, task ids, tokens and context limits.",
    )
    needs = (*PENALTIES, "window.runs")

    def derive(self, readings: Mapping[str, Reading]) -> Reading:
        runs = readings["window.runs"].runs
        parts = assessed(readings)
        return Reading(coverage_of(parts), runs, parts) if runs else NO_EVIDENCE
