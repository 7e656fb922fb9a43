"""Metrics that are a ratio of two sums over all runs together: each is a declaration."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS, Metric
from otel_reliability.model.reading import NO_DATA, Reading
from otel_reliability.model.row import Row


class Part(NamedTuple):
    """A number of one run, and the number of which it is a part: failed calls and all calls."""

    number: int
    whole: int


class Ratio(Metric):
    """The sum of a number of each run over the sum of the whole that it is a part of.

    A long run counts for more than a short one; `PerRun` is the mean in which all count alike. A
    metric of this kind is its `spec`, the data that it `requires`, and `of_run`. Runs whose whole
    is 0 are not behind the reading. State: three integers.

    >>> from otel_reliability.testing import row
    >>> class FailedCallShare(Ratio):
    ...     def of_run(self, row: Row) -> Part | None:
    ...         return Part(row.failed_calls or 0, row.tool_calls or 0)
    >>> share = FailedCallShare()
    >>> for path, failed in (("a b c", 1), ("a", 1), ("", 0)):
    ...     share.add(row(path, failed_calls=failed))
    >>> share.value()
    Reading(value=0.5, runs=2, parts=(), note='')
    """

    __slots__ = ("_number", "_runs", "_whole")

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._number = self._whole = self._runs = 0

    @abstractmethod
    def of_run(self, row: Row) -> Part | None:
        """Return the number of a run with the required data, and its whole; None leaves the run
        out.
        """

    def count(self, row: Row, sign: int) -> None:
        part = self.of_run(row)
        if part is not None and part.whole:
            self._number += sign * part.number
            self._whole += sign * part.whole
            self._runs += sign

    def value(self) -> Reading:
        return Reading(self._number / self._whole, self._runs) if self._whole else NO_DATA
