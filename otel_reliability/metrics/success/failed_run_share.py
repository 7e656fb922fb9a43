"""failed_run_share: how many runs are known to have failed?"""

from __future__ import annotations

from otel_reliability.metrics._support.per_run import PerRun
from otel_reliability.metrics.base import UNDISTURBED
from otel_reliability.model.reading import MetricSpec
from otel_reliability.model.row import Row


class FailedRunShare(PerRun):
    """Runs with the outcome failure, or of no known outcome that ended in an error, over the
    runs whose outcome or end is known.

    Where no success is reported, what fails is all that can be known: 1 − failed_run_share is no
    more than an upper bound of the success rate.

    >>> from otel_reliability.model.run import Outcome
    >>> from otel_reliability.testing import row
    >>> share = FailedRunShare()
    >>> for outcome in ("failure", "completed", "completed", "completed"):
    ...     share.add(row(outcome=Outcome(outcome), ended_in_error=False))
    >>> share.value()
    Reading(value=0.25, runs=4, parts=(), note='')
    """

    __slots__ = ()

    requires = UNDISTURBED

    spec = MetricSpec(
        name="failed_run_share",
        title="Share of failed runs",
        family="success",
        direction="lower",
        description="How many runs are known to have failed: by their outcome, or, where that is "
        "not known, by an error at their end.",
        formula="failed runs, and those of no known outcome that ended in an error / runs whose "
        "outcome or end is known",
        required_data="1 run whose outcome is known, or whose root span arrived",
        source="this project",
        improve="Open the failed runs, and begin with what they have in common: a tool, a task, an "
        "error.",
        interval="share",
    )

    def of_run(self, row: Row) -> bool | None:
        return row.failed
