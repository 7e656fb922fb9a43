"""One group of runs: its sums, and what it gives to a mean over groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
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


class GroupShares:
    """Contributions of groups, by the number of each, and their totals.

    They are packed numbers: as objects they would take as much as the rows that they are about.
    """

    __slots__ = ("_packed", "_values", "totals")

    def __init__(self, values: int) -> None:
        self.totals = Totals(values)
        self._values = values
        self._packed = array("d")

    def replace(self, number: int, share: Share | None) -> None:
        """Put a contribution in the place of that which the group of this number made."""
        before = self._share(number)
        if share != before:
            self.totals.count(before, -1)
            self.totals.count(share, 1)
            self._keep(number, share)

    def _share(self, number: int) -> Share | None:
        """Return what the group of this number gave; None for a number that no group had."""
        packed = self._packed[self._place(number)]
        if not packed:
            return None
        *values, weight, runs, left_out = packed.tolist()
        return Share(tuple(values), int(weight), int(runs), int(left_out)) if runs else None

    def _keep(self, number: int, share: Share | None) -> None:
        place = self._place(number)
        missing = place.stop - len(self._packed)
        if missing > 0:
            self._packed.extend([0.0] * missing)
        if share is None:
            packed = [0.0] * (place.stop - place.start)
        else:
            packed = [*share.values, share.weight, share.runs, share.left_out]
        self._packed[place] = array("d", packed)

    def _place(self, number: int) -> slice:
        """Return where the contribution of a group is: its values, weight, runs, left out."""
        size = self._values + len(Share._fields) - 1
        return slice(number * size, (number + 1) * size)
