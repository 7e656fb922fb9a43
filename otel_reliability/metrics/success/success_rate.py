"""success_rate: how many of the runs with a known outcome succeeded?"""

from __future__ import annotations

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS, OUTCOME, UNDISTURBED, Metric, noted
from otel_reliability.model.reading import NO_DATA, MetricSpec, Reading
from otel_reliability.model.row import Row


class SuccessRate(Metric):
    """Succeeded runs over the runs whose outcome is known. State: three integers.

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

    __slots__ = ("_by_status", "_passed", "_runs")

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

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._runs = 0
        self._passed = 0
        self._by_status = 0

    def count(self, row: Row, sign: int) -> None:
        self._runs += sign
        self._passed += sign * (row.success is True)
        self._by_status += sign * row.by_status

    def value(self) -> Reading:
        if not self._runs:
            return NO_DATA
        return noted(Reading(self._passed / self._runs, self._runs), self._by_status)
