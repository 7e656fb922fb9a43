"""distinct_paths: how many routes were taken."""

from __future__ import annotations

from otel_reliability.config import Settings
from otel_reliability.metrics._support.sums import Counts
from otel_reliability.metrics.base import DEFAULTS, PATH, UNDISTURBED, Metric
from otel_reliability.model.reading import NO_DATA, MetricSpec, Reading
from otel_reliability.model.row import Row


class DistinctPaths(Metric):
    """The number of different paths that the window's runs took, all tasks together. State:
    integers, for each distinct path.

    It stands beside path entropy, whose normalised value depends on the number of runs.
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
        required_data="1 run with observable tools",
        source="this project",
        improve="As for path entropy.",
    )

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._paths = Counts[str]()

    def count(self, row: Row, sign: int) -> None:
        if row.path is not None:
            self._paths.count(row.path.code, sign)

    def value(self) -> Reading:
        runs = self._paths.total
        return Reading(float(len(self._paths)), runs) if runs else NO_DATA
