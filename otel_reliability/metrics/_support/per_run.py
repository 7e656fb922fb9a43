"""Metrics that are a mean of one number per run: each is a declaration."""

from __future__ import annotations

from abc import abstractmethod

from otel_reliability.config import Settings
from otel_reliability.metrics._support.sums import ExactSum, FixedSum
from otel_reliability.metrics.base import DEFAULTS, OUTCOME, Metric, noted
from otel_reliability.model.reading import NO_DATA, Reading
from otel_reliability.model.row import Row


class PerRun(Metric):
    """The mean over runs of a number that each run has; of yes and no, the share of runs.

    A metric of this kind is its `spec`, the data that it `requires`, and `of_run`. State: an exact
    sum and two integers. Where outcomes are required, a note says so if some of them are no more
    than ends without error.

    >>> from otel_reliability.model.reading import MetricSpec
    >>> from otel_reliability.testing import row
    >>> class Turns(PerRun):
    ...     def of_run(self, row: Row) -> float | None:
    ...         return row.retries and row.retries.number
    >>> turns = Turns()
    >>> for retries in (2, None, 1):
    ...     turns.add(row(retries=retries))
    >>> turns.value().value, turns.value().runs
    (1.5, 2)
    """

    __slots__ = ("_by_status", "_runs", "_sum")

    small = True
    """True if its numbers are ratios, or whole numbers below 2^60: their sum is cheaper."""

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._runs = self._by_status = 0
        self._sum = FixedSum() if self.small else ExactSum()

    @abstractmethod
    def of_run(self, row: Row) -> float | None:
        """Return the number of a run with the required data; None leaves the run out."""

    def count(self, row: Row, sign: int) -> None:
        number = self.of_run(row)
        if number is not None:
            self._runs += sign
            self._sum.add(number, sign)
            self._by_status += sign * row.by_status

    def value(self) -> Reading:
        if not self._runs:
            return NO_DATA
        reading = Reading(self._sum.mean(self._runs), self._runs)
        return noted(reading, self._by_status) if self.requires & OUTCOME else reading
