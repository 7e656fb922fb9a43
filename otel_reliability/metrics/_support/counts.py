"""Counted values, and how evenly they are spread."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Generic, TypeVar

V = TypeVar("V", bound=Hashable)


class Multiset(Generic[V]):
    """Counts of values, and the number of values with each count.

    State: integers, two for each distinct value at most. What is asked of it costs no more for many values than for few: the
    entropy needs only the counts that occur, of which there are at most √(2n).

    >>> paths = Multiset[str]()
    >>> for path in ("A", "B", "C", "A"):
    ...     paths.add(path)
    >>> paths.total, paths.distinct, paths.modal, paths.bits()
    (4, 3, 2, 1.5)
    >>> paths.remove("A")
    >>> paths.modal, round(paths.evenness(), 3)
    (1, 1.0)
    """

    __slots__ = ("_counts", "_sizes", "modal", "total")

    def __init__(self) -> None:
        self._counts: dict[V, int] = {}
        self._sizes: dict[int, int] = {}
        self.total = 0
        """How many values there are, each counted as often as it is there."""
        self.modal = 0
        """How often the most frequent value is there."""

    @property
    def distinct(self) -> int:
        """How many different values there are."""
        return len(self._counts)

    def add(self, value: V) -> None:
        """The value once more."""
        self.count(value, 1)

    def remove(self, value: V) -> None:
        """The value, which is there, once less."""
        self.count(value, -1)

    def count(self, value: V, times: int) -> None:
        """The value so many times more; as many less where it is below 0, which is no more than it is there."""
        counts, sizes = self._counts, self._sizes
        before = counts.get(value, 0)
        after = before + times
        self.total += times
        if after:
            counts[value] = after
            sizes[after] = sizes.get(after, 0) + 1
        else:
            del counts[value]
        if before:
            self._fewer(before)
        if after > self.modal:
            self.modal = after
        elif self.modal not in sizes:
            self.modal = max(sizes, default=0)

    def bits(self) -> float:
        """The Shannon entropy in bits: log2 n − (Σ c log2 c) / n. 0 for one value or none."""
        if self.distinct <= 1:
            return 0.0
        spread = math.fsum(many * (count * math.log2(count)) for count, many in self._sizes.items())
        return math.log2(self.total) - spread / self.total

    def evenness(self) -> float:
        """The entropy over its maximum log2 n: 0 if all values are equal, 1 if all are different."""
        return min(max(self.bits() / math.log2(self.total), 0.0), 1.0) if self.total > 1 else 0.0

    def _fewer(self, size: int) -> None:
        """One value less that is there so often."""
        sizes = self._sizes
        if sizes[size] == 1:
            del sizes[size]
        else:
            sizes[size] -= 1
