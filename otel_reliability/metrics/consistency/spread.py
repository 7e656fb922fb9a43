"""The spread of a few numbers, kept exactly: values come and go, and no rounding stays behind."""

from __future__ import annotations

import math
from collections.abc import Iterable

from otel_reliability.metrics._support.exact import units


class Spread:
    """Count, sum and sum of squares of whole numbers: enough for a coefficient of variation.

    The coefficient is a ratio, so the unit of the numbers (nanoseconds, `exact.units`) does not matter, as long as it is one.

    >>> spread = Spread()
    >>> for cost in (1, 2, 3):
    ...     spread.add(cost)
    >>> spread.variation()
    0.5
    >>> spread.evict(3)
    >>> round(spread.variation(), 6)
    0.471405
    """

    __slots__ = ("count", "squares", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0
        self.squares = 0

    def add(self, value: int) -> None:
        """A value enters."""
        self.count += 1
        self.total += value
        self.squares += value * value

    def evict(self, value: int) -> None:
        """A value that was added leaves."""
        self.count -= 1
        self.total -= value
        self.squares -= value * value

    def variation(self) -> float | None:
        """Sample standard deviation (K − 1) over mean; None with fewer than 2 values or without a mean above 0."""
        n, total = self.count, self.total
        if n < 2 or total <= 0:
            return None
        return math.sqrt(n * (n * self.squares - total * total) / ((n - 1) * total * total))


def variation(values: Iterable[float]) -> float | None:
    """Sample standard deviation (K − 1) over mean of plain numbers; None with fewer than 2 or without a mean above 0.

    >>> variation([1, 2, 3])
    0.5
    """
    spread = Spread()
    for value in values:
        spread.add(units(float(value)))
    return spread.variation()
