"""window.effective_runs: what the window's runs are worth under head sampling."""

from __future__ import annotations

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS, Metric
from otel_reliability.metrics.evidence import UNDISTURBED
from otel_reliability.model.reading import NO_EVIDENCE, MetricSpec, Reading
from otel_reliability.model.row import BASELINE, Row


class EffectiveRuns(Metric):
    """(Σ w)² / Σ w², w being how many runs a sampled run stands for: Kish's effective sample size.

    Equal weights give the number of runs. Where sampling rates were mixed it is less: the metrics, which use the runs as
    they are, then say less about all runs than their number suggests. State: three integers.

    References: L. Kish, *Survey Sampling*, Wiley (1965), §11.7.
    """

    __slots__ = ("_runs", "_squares", "_weights")

    wants = UNDISTURBED

    spec = MetricSpec(
        name="window.effective_runs",
        title="Effective runs",
        family="window",
        unit="{run}",
        low=0.0,
        high=None,
        direction="neutral",
        description="How many equally sampled runs the window is worth; less than its runs where sampling rates were mixed.",
        formula="(Σ w)² / Σ w²",
        evidence="1 run",
        source="Kish, Survey Sampling (1965)",
        improve="Sample all runs of an agent at one rate, or measure before any sampler.",
    )

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._runs = self._weights = self._squares = 0

    def add(self, row: Row) -> None:
        self.count(row, 1)

    def evict(self, row: Row) -> None:
        self.count(row, -1)

    def count(self, row: Row, times: int) -> None:
        if row.condition == BASELINE:
            self._runs += times
            self._weights += times * row.weight
            self._squares += times * row.weight * row.weight

    def read(self) -> Reading:
        return Reading(self._weights**2 / self._squares, self._runs) if self._squares else NO_EVIDENCE
