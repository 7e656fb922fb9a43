"""last_run: when the latest run of the window ended."""

from __future__ import annotations

from bisect import bisect_left, insort

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS, Metric
from otel_reliability.model.reading import NO_EVIDENCE, MetricSpec, Reading
from otel_reliability.model.row import Row


class LastRun(Metric):
    """The end of the latest run, in Unix seconds: an alert on its age finds agents that fell silent.

    Runs under any condition count. State: one integer a run, in order.

    References: the Prometheus convention of `..._timestamp_seconds` gauges, whose age is told by `time() - x`.
    """

    __slots__ = ("_ends",)

    spec = MetricSpec(
        name="last_run",
        title="Last run",
        family="window",
        unit="s",
        low=0.0,
        high=None,
        direction="neutral",
        description="When the latest run of the window ended, as Unix time.",
        formula="max end",
        evidence="1 run",
        source="this project",
        improve="If it stands still, look whether the agent runs and whether its spans arrive.",
    )

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._ends: list[int] = []

    def add(self, row: Row) -> None:
        insort(self._ends, row.end_ns)

    def evict(self, row: Row) -> None:
        del self._ends[bisect_left(self._ends, row.end_ns)]

    def read(self) -> Reading:
        return Reading(self._ends[-1] / 1e9, len(self._ends)) if self._ends else NO_EVIDENCE
