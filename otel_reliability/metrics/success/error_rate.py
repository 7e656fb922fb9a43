"""error_rate: how many runs ended in an error?"""

from __future__ import annotations

from otel_reliability.metrics._support.per_run import PerRun
from otel_reliability.metrics.base import END, UNDISTURBED
from otel_reliability.model.reading import MetricSpec
from otel_reliability.model.row import Row


class ErrorRate(PerRun):
    """Runs that ended in an error over the runs whose end was observed.

    It needs no label, because an error is seen. An end without an error is no success, so
    1 − error_rate is no more than an upper bound of the success rate.

    >>> from otel_reliability.testing import row
    >>> rate = ErrorRate()
    >>> for ended_in_error in (True, False, None, False, False):
    ...     rate.add(row(ended_in_error=ended_in_error))
    >>> rate.value()
    Reading(value=0.25, runs=4, parts=(), note='')
    """

    __slots__ = ()

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

    def of_run(self, row: Row) -> bool:
        return row.ended_in_error is True
