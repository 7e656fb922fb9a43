"""cost_per_run: what does a run cost?"""

from __future__ import annotations

from otel_reliability.metrics._support.per_run import PerRun
from otel_reliability.metrics.base import UNDISTURBED
from otel_reliability.model.reading import MetricSpec
from otel_reliability.model.row import Row


class CostPerRun(PerRun):
    """The mean cost of the runs whose cost is known.

    A run with a call of unknown cost has none, so a mean over few of the window's runs says little
    about the others.

    >>> from otel_reliability.testing import row
    >>> cost = CostPerRun()
    >>> for dollars in (0.25, None, 0.75):
    ...     cost.add(row(cost=dollars))
    >>> cost.value()
    Reading(value=0.5, runs=2, parts=(), note='')
    """

    __slots__ = ()

    requires = UNDISTURBED
    small = False

    spec = MetricSpec(
        name="cost_per_run",
        title="Cost per run",
        family="success",
        unit="{usd}",
        high=None,
        direction="lower",
        description=(
            "What a run costs in US dollars: as reported, else its tokens at list prices."
        ),
        formula="Σ cost / runs of known cost",
        required_data="1 run of which the cost of every model call is known",
        source="this project",
        improve=(
            "Shorten what goes to the model, cache it, or take a cheaper model; retries and loops "
            "have costs of their own."
        ),
        interval="runs",
        emitted=False,
    )

    def of_run(self, row: Row) -> float | None:
        return row.cost
