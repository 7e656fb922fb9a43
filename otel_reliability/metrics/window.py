"""Size of the window: how many runs its numbers rest on."""

from __future__ import annotations

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS, UNDISTURBED, Metric
from otel_reliability.model.reading import NO_DATA, MetricSpec, Reading
from otel_reliability.model.row import Row


class WindowRuns(Metric):
    """The number of undisturbed runs in the window, whatever data they carry, and (Σ w)² / Σ w²,
    their effective number.

    Runs whose tools cannot be observed, and incomplete ones, count too. An empty window has 0 runs:
    that is known, so it is a value. w is how many runs a sampled run stands for. Where sampling
    rates were mixed, the metrics, which use the runs as they are, say less about all runs than
    their number suggests. State: three integers.

    References: L. Kish, *Survey Sampling*, Wiley (1965), §11.7.
    """

    __slots__ = ("_runs", "_squares", "_weights")

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
        required_data="none",
        source="this project",
        improve="Send more runs, or widen the window, until each metric rests on enough of them.",
    )
    companions = (
        spec._replace(
            name="window.effective_runs",
            title="Effective runs",
            description=(
                "How many equally sampled runs the window is worth; less than its runs where "
                "sampling rates were mixed."
            ),
            formula="(Σ w)² / Σ w²",
            required_data="1 run",
            source="Kish, Survey Sampling (1965)",
            improve="Sample all runs of an agent at one rate, or measure before any sampler.",
        ),
    )

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._runs = self._weights = self._squares = 0

    def count(self, row: Row, sign: int) -> None:
        self._runs += sign
        self._weights += sign * row.weight
        self._squares += sign * row.weight * row.weight

    def value(self) -> Reading:
        return Reading(float(self._runs), self._runs)

    def companion_values(self) -> tuple[Reading, ...]:
        return (
            Reading(self._weights**2 / self._squares, self._runs) if self._squares else NO_DATA,
        )
