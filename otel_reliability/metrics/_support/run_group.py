"""One group of runs: its sums, and what it gives to a mean over groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from otel_reliability.metrics._support.sums import FixedSum
from otel_reliability.metrics.base import Rows, RunKind
from otel_reliability.model.row import Row


class Share(NamedTuple):
    """Contribution of one group: its values, their weight, the runs they rest on, and how many of
    them a limit left out.
    """

    values: tuple[float, ...]
    weight: int
    runs: int
    left_out: int = 0


class RunGroup(ABC):
    """Sums of one group of runs. `runs`, `changed` and `counted` (what the sums contain of it) are
    those of its metric.
    """

    __slots__ = ("changed", "counted", "runs")

    def __init__(self) -> None:
        self.runs = 0
        self.changed = False
        self.counted: Share | None = None

    @abstractmethod
    def count(self, row: Row, sign: int) -> None:
        """Count a run that enters the group (1) or leaves it (-1); or so many of its kind."""

    @abstractmethod
    def share(self) -> Share | None:
        """Return the group's contribution; None without enough data."""

    def fill(self, kinds: Sequence[RunKind], rows: Rows) -> None:
        """Count the runs of an input group, of which this group had none. `rows` returns them one
        by one.
        """
        for row, runs, _ in kinds:
            self.runs += runs
            self.count(row, runs)


class Totals:
    """Weighted sums of the contributions of groups, their weight, and the runs behind them."""

    __slots__ = ("left_out", "runs", "sums", "weight")

    def __init__(self, values: int) -> None:
        self.sums = tuple([FixedSum() for _ in range(values)])
        self.weight = self.runs = self.left_out = 0

    def count(self, share: Share | None, sign: int) -> None:
        """Count a contribution that enters (1) or leaves (-1)."""
        if share is None:
            return
        values, weight, runs, left_out = share
        for total, value in zip(self.sums, values, strict=True):
            total.add(value, sign * weight)
        self.weight += sign * weight
        self.runs += sign * runs
        self.left_out += sign * left_out

    def __add__(self, other: Totals) -> Totals:
        """Return the sums of both."""
        found = Totals(0)
        found.sums = tuple([one + two for one, two in zip(self.sums, other.sums, strict=True)])
        found.weight = self.weight + other.weight
        found.runs = self.runs + other.runs
        found.left_out = self.left_out + other.left_out
        return found
