"""Size of the window: how many runs its numbers rest on."""

from __future__ import annotations

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS, SumMetric
from otel_reliability.metrics.data import UNDISTURBED
from otel_reliability.model.reading import NO_EVIDENCE, MetricSpec, Reading
from otel_reliability.model.row import BASELINE, Row


class WindowRuns(SumMetric):
    """The number of undisturbed runs in the window, whatever evidence they carry.

    Runs whose tools cannot be observed, and incomplete ones, count too; perturbed ones do not. An empty window has 0 runs:
    that is known, so it is a value. State: one integer.

    References: the design's `min_runs`, below which there is no score.
    """

    __slots__ = ("_runs",)

    requires = UNDISTURBED

    spec = MetricSpec(
        name="window.runs",
        title="Runs in the window",
        family="window",
        unit="{run}",
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

    def count(self, row: Row, sign: int) -> None:
        self._runs += sign * (row.condition == BASELINE)

    def value(self) -> Reading:
        return Reading(float(self._runs), self._runs)


class EffectiveRuns(SumMetric):
    """(Σ w)² / Σ w², w being how many runs a sampled run stands for: Kish's effective sample size.

    Equal weights give the number of runs. Where sampling rates were mixed it is less: the metrics, which use the runs as
    they are, then say less about all runs than their number suggests. State: three integers.

    References: L. Kish, *Survey Sampling*, Wiley (1965), §11.7.
    """

    __slots__ = ("_runs", "_squares", "_weights")

    requires = UNDISTURBED

    spec = MetricSpec(
        name="window.effective_runs",
        title="Effective runs",
        family="window",
        unit="{run}",
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

    def count(self, row: Row, sign: int) -> None:
        if row.condition == BASELINE:
            self._runs += sign
            self._weights += sign * row.weight
            self._squares += sign * row.weight * row.weight

    def value(self) -> Reading:
        return Reading(self._weights**2 / self._squares, self._runs) if self._squares else NO_EVIDENCE


ROWS = (WindowRuns, EffectiveRuns)
