"""success_rate: how many of the runs with a known outcome succeeded?"""

from __future__ import annotations

from otel_reliability.metrics._support.per_run import PerRun
from otel_reliability.metrics.base import OUTCOME, UNDISTURBED
from otel_reliability.model.reading import MetricSpec
from otel_reliability.model.row import Row


class SuccessRate(PerRun):
    """Succeeded runs over the runs whose outcome is known.

    An end without an error is no success: where that is all that is known of some runs, and none is
    known to have succeeded, there is no value (`error_rate` needs no outcome).

    >>> from otel_reliability.model.run import Outcome
    >>> from otel_reliability.testing import row
    >>> rate = SuccessRate()
    >>> for outcome in ("success", "failure", "success", "completed"):
    ...     rate.add(row(outcome=Outcome(outcome)))
    >>> rate.value()
    Reading(value=0.6666666666666666, runs=3, parts=(), note='')
    """

    __slots__ = ()

    requires = UNDISTURBED | OUTCOME
    of_outcomes = True

    spec = MetricSpec(
        name="success_rate",
        title="Success rate",
        family="success",
        direction="higher",
        description="How many runs succeed, of those whose outcome is known.",
        formula="succeeded runs / runs with a known outcome",
        required_data="1 run with a known outcome",
        source="this project",
        improve="Open the failed runs, and begin with what they have in common: a tool, a task, an "
        "error.",
        interval="share",
    )

    def of_run(self, row: Row) -> bool:
        return row.success is True
