"""no_effect_share: how often does an agent that changes things change nothing at all?"""

from __future__ import annotations

from otel_reliability.metrics._support.per_run import PerRun
from otel_reliability.metrics.base import PATH, UNDISTURBED
from otel_reliability.model.reading import NO_DATA, MetricSpec, Reading
from otel_reliability.model.row import Row


class NoEffectShare(PerRun):
    """Runs without any effect over all runs with observable tools, of an agent of which at least
    one run has one.

    Doing nothing is a failure that no agreement shows: attempts that all change nothing agree
    perfectly. An agent that only reads has no value. Measured on recorded runs of a coding agent
    (validation page).

    >>> from otel_reliability.testing import row
    >>> share = NoEffectShare()
    >>> share.add(row("", effects=frozenset()))
    >>> share.value().value is None
    True
    >>> share.add(row("", effects=frozenset({("edit", b"1")})))
    >>> share.value()
    Reading(value=0.5, runs=2, parts=(), note='')
    """

    __slots__ = ()

    requires = UNDISTURBED | PATH

    spec = MetricSpec(
        name="no_effect_share",
        title="Share of runs without effect",
        family="stability",
        direction="lower",
        description=(
            "How many runs end without any change to the world, of an agent that makes "
            "changes in other runs."
        ),
        formula="runs without an effect / n",
        required_data="1 run with observable tools, and one run with an effect",
        source="this project",
        improve="Inspect runs without effect: the agent gave up, only searched, or its changes "
        "failed. If a tool is classified "
        "wrongly, name it in tools.effects or tools.reads.",
        interval="share",
    )

    def of_run(self, row: Row) -> bool:
        return row.effects is not None and not row.effects

    def value(self) -> Reading:
        reading = super().value()
        return NO_DATA if reading.value == 1.0 else reading
