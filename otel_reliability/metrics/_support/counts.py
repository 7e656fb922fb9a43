"""Counted values, and how evenly they are spread."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable
from typing import TypeVar

V = TypeVar("V", bound=Hashable)


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
        """Return the Shannon entropy in bits: log2 n − (Σ c log2 c) / n. 0 for one value or none."""
        if len(self) <= 1:
            return 0.0
        total = self.total
        spread = math.fsum(many * (count * math.log2(count)) for count, many in Counter(self.values()).items())
        return math.log2(total) - spread / total

    def evenness(self) -> float:
        """Return the entropy over its maximum log2 n: 0 if all values are equal, 1 if all are different."""
        total = self.total
        return min(max(self.bits() / math.log2(total), 0.0), 1.0) if total > 1 else 0.0
