"""Sums, counts and means of what comes and goes: each can be undone exactly."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable
from typing import ClassVar, Final, Self, TypeVar

UNIT_BITS: Final = 1074
"""Every finite float is a whole number of 2^-1074."""
_PARTS_OF_ONE: Final = 2.0**60

V = TypeVar("V", bound=Hashable)


class _Sum:
    """A sum of numbers that come and go, in whole units of 2^-`bits`: adding a number −1 times
    undoes adding it exactly.
    """

    __slots__ = ("_units",)

    bits: ClassVar[int]

    def __init__(self) -> None:
        self._units = 0

    def __add__(self, other: Self) -> Self:
        """Return the sum of both."""
        found = type(self)()
        found._units = self._units + other._units
        return found

    @property
    def value(self) -> float:
        """The sum, rounded once."""
        return self.mean(1)

    def mean(self, count: int) -> float:
        """Return the sum divided by `count`, rounded once."""
        return self._units / (count << self.bits)


class ExactSum(_Sum):
    """The sum of numbers that come and go, without any rounding until it is asked for.

    Each float is a whole number of 2^-1074, and Python's integers have no limit, so adding and
    removing are exact: a number added −1 times is gone whatever came in between, and the order does
    not matter. (A rolling sum of floats drifts: after 1e16 has come and gone, 0.1 is 0.0.) The
    value is the true sum, rounded once.

    >>> total = ExactSum()
    >>> for value, times in ((0.1, 1), (1e16, 1), (0.2, 1), (1e16, -1)):
    ...     total.add(value, times)
    >>> total.value == 0.1 + 0.2 and total.mean(2)
    0.15
    """

    __slots__ = ()

    bits = UNIT_BITS

    def add(self, value: float, times: int = 1) -> None:
        """Add a finite number, so many times (negative: remove it)."""
        self._units += units(value) * times


class FixedSum(_Sum):
    """The sum of numbers that come and go, each rounded to a whole number of 2^-60: five times as
    fast as an `ExactSum`.

    What is cut off is less than 1e-18 a number, and adding a number −1 times is exact here too. For
    ratios, and whole numbers below 2^60; not for costs or tokens.

    >>> total = FixedSum()
    >>> for value, times in ((0.25, 3), (0.1, 1), (0.1, -1)):
    ...     total.add(value, times)
    >>> total.value, total.mean(2)
    (0.75, 0.375)
    """

    __slots__ = ()

    bits = 60

    def add(self, value: float, times: int = 1) -> None:
        """Add a number, so many times (negative: remove it)."""
        self._units += int(value * _PARTS_OF_ONE) * times


def units(value: float) -> int:
    """Return the number in units of 2^-1074.

    >>> units(1.0) == 2**1074, units(5e-324)
    (True, 1)
    """
    numerator, denominator = value.as_integer_ratio()
    return numerator << (UNIT_BITS + 1 - denominator.bit_length())


class Counts(dict[V, int]):
    """Counts of values, by value; values whose count is 0 are not here.

    >>> paths = Counts[str]()
    >>> for path in ("A", "B", "C", "A"):
    ...     paths.count(path)
    >>> paths.total, len(paths), paths.modal, paths.bits()
    (4, 3, 2, 1.5)
    >>> paths.count("A", -1)
    >>> paths.modal, round(paths.evenness(), 3)
    (1, 1.0)
    """

    __slots__ = ()

    def count(self, value: V, times: int = 1) -> None:
        """Count a value so many times more (negative: less)."""
        count = self.get(value, 0) + times
        if count:
            self[value] = count
        else:
            del self[value]

    @property
    def total(self) -> int:
        """Number of values, each counted as often as it occurs."""
        return sum(self.values())

    @property
    def modal(self) -> int:
        """Count of the most frequent value."""
        return max(self.values(), default=0)

    def bits(self) -> float:
        """Return the Shannon entropy in bits: log2 n − (Σ c log2 c) / n. 0 for one
        value or none.
        """
        if len(self) <= 1:
            return 0.0
        total = self.total
        spread = math.fsum(
            many * (count * math.log2(count)) for count, many in Counter(self.values()).items()
        )
        return math.log2(total) - spread / total

    def evenness(self) -> float:
        """Return the entropy over its maximum log2 n: 0 if all values are equal, 1 if all are
        different.
        """
        total = self.total
        return clamp(self.bits() / math.log2(total)) if total > 1 else 0.0


def mean_of_present(values: Iterable[float | None]) -> float | None:
    """Return the arithmetic mean of the values that exist, for a part without data is neither 0 nor
    1; None where none does.

    >>> mean_of_present([1.0, None, 0.5]), mean_of_present([None])
    (0.75, None)
    """
    found = [value for value in values if value is not None]
    return math.fsum(found) / len(found) if found else None


def clamp(value: float, low: float = 0.0, high: float = 1.0) -> float:
    """Return the value cut to [low, high]."""
    return min(max(value, low), high)
