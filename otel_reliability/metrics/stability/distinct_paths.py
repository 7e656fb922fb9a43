"""distinct_paths: how many routes were taken."""

from __future__ import annotations

from otel_reliability.config import Settings
from otel_reliability.metrics._support.counts import Counts
from otel_reliability.metrics.base import DEFAULTS, SumMetric
from otel_reliability.metrics.data import PATH, UNDISTURBED
from otel_reliability.model.reading import NO_EVIDENCE, MetricSpec, Reading
from otel_reliability.model.row import BASELINE, Row


class DistinctPaths(SumMetric):
    """The number of different paths that the window's runs took, all tasks together.

    State: integers, for each distinct path.

    >>> from otel_reliability.metrics.examples import rows_of
    >>> paths = DistinctPaths()
    >>> for row in rows_of("search reply", "search reply", "reply"):
    ...     paths.add(row)
    >>> paths.value()
    Reading(value=2.0, runs=3, parts=(), note='')

    References: stands beside path entropy, whose normalised value depends on the number of runs.
    """

    __slots__ = ("_paths",)

    requires = UNDISTURBED | PATH

    spec = MetricSpec(
        name="distinct_paths",
        title="Distinct paths",
        family="stability",
        unit="{path}",
        high=None,
        direction="lower",
        description="How many different orders of tool calls the window's runs took.",
        formula="number of different paths",
        evidence="1 run with observable tools",
        source="this project",
        improve="As for path entropy.",
    )

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._paths = Counts[str]()

    def count(self, row: Row, sign: int) -> None:
        if row.path is not None and row.condition == BASELINE:
            self._paths.count(row.path.code, sign)

    def value(self) -> Reading:
        runs = self._paths.total
        return Reading(float(len(self._paths)), runs) if runs else NO_EVIDENCE
