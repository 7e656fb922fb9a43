"""window.runs: how many runs stand in the window."""

from __future__ import annotations

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS, Metric
from otel_reliability.metrics.evidence import UNDISTURBED
from otel_reliability.model.reading import MetricSpec, Reading
from otel_reliability.model.row import BASELINE, Row


class WindowRuns(Metric):
    """The number of undisturbed runs in the window, whatever evidence they carry.

    Runs whose tools cannot be observed, and incomplete ones, count too; perturbed ones do not. An empty window has 0 runs:
    that is known, so it is a value. State: one integer.

    References: the design's `min_runs`, below which there is no score.
    """

    __slots__ = ("_runs",)

    wants = UNDISTURBED

    spec = MetricSpec(
        name="window.runs",
        title="Runs in the window",
        family="window",
        unit="{run}",
        low=0.0,
        high=None,
        direction="neutral",
        description="How many runs stand in the window; each metric may rest on fewer of them.",
        formula="n",
        evidence="none",
        source="this project",
        improve="Send more runs, or widen the window, until each metric rests on enough of them.",
    )

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._runs = 0

    def add(self, row: Row) -> None:
        self.count(row, 1)

    def evict(self, row: Row) -> None:
        self.count(row, -1)

    def count(self, row: Row, times: int) -> None:
        self._runs += times * (row.condition == BASELINE)

    def read(self) -> Reading:
        return Reading(float(self._runs), self._runs)
