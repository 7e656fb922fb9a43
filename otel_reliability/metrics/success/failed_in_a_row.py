"""failed_in_a_row: how many runs have failed, one after another, up to the latest?"""

from __future__ import annotations

from typing import Final

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS, UNDISTURBED, WindowMetric
from otel_reliability.model.reading import NO_DATA, MetricSpec, Reading
from otel_reliability.model.row import Row

FAILS_NOW: Final = 10
"""Failed runs in a row from which an agent fails now, whatever share of the window they are. One
that succeeds in six of ten runs has so many by chance after one of 10,000 runs.
"""


class FailedInARow(WindowMetric):
    """Runs that failed since the latest that did not, by the order of their ends.

    A run of which nothing says whether it failed neither counts nor ends the row. Nor does one of a
    task at which no run of the window succeeded: that task may be hard, or comes last in the order
    of a test suite.

    >>> from otel_reliability.testing import row
    >>> latest = FailedInARow()
    >>> for ended_in_error in (True, False, True, None, True):
    ...     latest.add(row(ended_in_error=ended_in_error))
    >>> latest.value()
    Reading(value=2.0, runs=4, parts=(), note='')
    """

    __slots__ = ("_known",)

    requires = UNDISTURBED

    spec = MetricSpec(
        name="failed_in_a_row",
        title="Failed runs in a row",
        family="success",
        unit="{run}",
        high=None,
        direction="lower",
        description="How many runs have failed, one after another, up to the latest: the agent "
        f"fails now from {FAILS_NOW} on, however well it did before.",
        formula="runs after the latest that did not fail, of tasks (if known) at which a run of "
        "the window succeeded",
        required_data="1 run whose outcome is known, or whose root span arrived",
        source="this project",
        improve="Find what changed before the first of them: a deployment, a model, a tool, a "
        "credential.",
    )

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._known = 0
        """Runs of which it is known whether they failed."""

    def count(self, row: Row, sign: int) -> None:
        super().count(row, sign)
        self._known += sign * (row.failed is not None)

    def value(self) -> Reading:
        if not self._known:
            return NO_DATA
        rows = self.newest_first()
        failed: list[Row] = []
        succeeded_at: set[str | None] = set()
        for row in rows:
            if row.failed:
                failed.append(row)
            elif row.failed is False:
                succeeded_at.add(row.task)
                break
        if any(row.task is not None for row in failed):
            succeeded_at |= {row.task for row in rows if row.failed is False}
        counted = [row for row in failed if row.task is None or row.task in succeeded_at]
        return Reading(float(len(counted)), self._known)
