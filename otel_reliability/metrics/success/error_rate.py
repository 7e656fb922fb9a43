"""error_rate: how many runs ended in an error?"""

from __future__ import annotations

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS, END, UNDISTURBED, Metric
from otel_reliability.model.reading import NO_DATA, MetricSpec, Reading
from otel_reliability.model.row import Row


class ErrorRate(Metric):
    """Runs that ended in an error over the runs whose end was observed. State: two integers.

    It needs no label, because an error is seen. An end without an error is no success, so
    1 − error_rate is no more than an upper bound of the success rate.

    >>> from otel_reliability.testing import row
    >>> rate = ErrorRate()
    >>> for ended_in_error in (True, False, None, False, False):
    ...     rate.add(row(ended_in_error=ended_in_error))
    >>> rate.value()
    Reading(value=0.25, runs=4, parts=(), note='')
    """

    __slots__ = ("_errors", "_runs")

    requires = UNDISTURBED | END

    spec = MetricSpec(
        name="error_rate",
        title="Error rate",
        family="success",
        direction="lower",
        description="How many runs end in an error. It needs no label, because an error is seen.",
        formula="runs that ended in an error / runs whose end was observed",
        required_data="1 run whose root span arrived",
        source="this project",
        improve="Open the runs that ended in an error: their last failed step says what was "
        "raised.",
        interval="share",
    )

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._runs = 0
        self._errors = 0

    def count(self, row: Row, sign: int) -> None:
        self._runs += sign
        self._errors += sign * (row.ended_in_error is True)

    def value(self) -> Reading:
        return Reading(self._errors / self._runs, self._runs) if self._runs else NO_DATA
