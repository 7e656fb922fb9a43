"""Distances of runs two by two, kept up to date as runs enter and leave."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Hashable
from itertools import repeat
from operator import add, mul
from typing import Final, Generic, TypeAlias, TypeVar

from otel_reliability.metrics._support.groups import Group, Share
from otel_reliability.model.row import Row
from otel_reliability.statistics.edits import edit_distance

K = TypeVar("K", bound=Hashable)

ONE: Final = 1 << 52
"""Distances are whole numbers of 2^-52, so that sums of them are exact and can be undone."""

Distances: TypeAlias = Callable[[K, Collection[K]], list[int]]
"""The distance of one code to each of some others, in units of 2^-52; symmetric, and 0 to itself."""


def path_code(row: Row) -> str:
    """Return the code of the path of a run."""
    return "" if row.path is None else row.path.code


def edit_shares(code: str, others: Collection[str]) -> list[int]:
    """Return the edit distance of a path to each other over the longer length of the two, in units of 2^-52.

    Insert, delete and replace cost 1; two empty paths are equal.

    >>> [share / ONE for share in edit_shares("ab", ["ab", "abcd", ""])]
    [0.0, 0.5, 1.0]
    """
    length = len(code) or 1
    edits = map(edit_distance, repeat(code), others)
    return [
        edit * ONE // (size if size > length else length) for size, edit in zip(map(len, others), edits, strict=True)
    ]


class PairSums(Generic[K]):
    """Sum of the distances over all pairs of runs, where a run is known by the code of what it did.

    For each code there is the sum of its distances to all runs that entered since the code is here; a run notes that sum
    when it enters. So the run that has been here longest leaves at no cost, while any other, like a run that enters, costs
    one distance to each code. Runs with equal codes are interchangeable. State: integers, two for each code and one for
    each run.
    """

    __slots__ = ("_distances", "_entered", "_later", "_noted", "_runs", "total")

    def __init__(self, distances: Distances[K]) -> None:
        self._distances = distances
        self._runs: dict[K, int] = {}
        self._later: dict[K, int] = {}
        """In the same order as `_runs`."""
        self._entered: deque[K] = deque()
        self._noted: deque[int] = deque()
        self.total = 0
        """The sum over all pairs, in units of 2^-52."""

    def __len__(self) -> int:
        return len(self._entered)

    def __contains__(self, code: K) -> bool:
        """Return whether a run has this code."""
        return code in self._runs

    @property
    def distinct(self) -> int:
        """How many different codes there are."""
        return len(self._runs)

    def add(self, code: K) -> None:
        """A run enters."""
        runs, later = self._runs, self._later
        distances = self._distances(code, runs)
        self.total += sum(map(mul, distances, runs.values()))
        self._later = later = dict(zip(later, map(add, later.values(), distances), strict=True))
        runs[code] = runs.get(code, 0) + 1
        self._entered.append(code)
        self._noted.append(later.setdefault(code, 0))

    def remove(self, code: K) -> None:
        """A run that entered leaves."""
        if self._entered[0] == code:
            self._entered.popleft()
            self.total -= self._later[code] - self._noted.popleft()
        else:
            self._take_out(code)
        left = self._runs[code] - 1
        if left:
            self._runs[code] = left
        else:
            del self._runs[code], self._later[code]

    def distance(self, code: K) -> int:
        """Return the sum of the distances of a code to all runs, in units of 2^-52."""
        return sum(map(mul, self._distances(code, self._runs), self._runs.values()))

    def _take_out(self, code: K) -> None:
        """Subtract a run from the total, and from the sums of the runs that entered before it."""
        distances = dict(zip(self._runs, self._distances(code, self._runs), strict=True))
        self.total -= sum(map(mul, distances.values(), self._runs.values()))
        at = self._entered.index(code)
        for earlier in range(at):
            self._noted[earlier] += distances[self._entered[earlier]]
        del self._entered[at], self._noted[at]


class LatestPairs(Group, Generic[K]):
    """Pairs of the latest runs, in the order of their ends, that have at most `limit` different codes.

    The limit bounds the cost of one run. Below it all runs count; above it the latest, as many as the limit admits. Which
    they are depends on the runs alone, not on their order of arrival. State: the rows, and the sums of those that count.

    >>> from otel_reliability.metrics.examples import rows_of
    >>> pairs = LatestPairs(2, edit_shares, path_code)
    >>> for row in rows_of("a", "a b", "a", "c"):
    ...     pairs.add(row)
    >>> len(pairs), pairs.left_out, pairs.mean()
    (2, 2, 1.0)
    """

    __slots__ = ("_code", "_limit", "_rows", "_sums", "left_out")

    def __init__(self, limit: int, distances: Distances[K], code: Callable[[Row], K]) -> None:
        super().__init__()
        self._limit = limit
        self._code = code
        self._rows: list[Row] = []
        self._sums = PairSums(distances)
        self.left_out = 0
        """How many runs, the earliest, the limit excludes."""

    def __len__(self) -> int:
        return len(self._rows) - self.left_out

    def add(self, row: Row) -> None:
        rows = self._rows
        at = bisect_left(rows, row)
        rows.insert(at, row)
        if at < self.left_out or (at == self.left_out and at > 0):
            self.left_out += 1
        else:
            self._sums.add(self._code(row))
        self._fit()

    def evict(self, row: Row) -> None:
        rows = self._rows
        at = bisect_left(rows, row)
        del rows[at]
        if at < self.left_out:
            self.left_out -= 1
        else:
            self._sums.remove(self._code(row))
        self._fit()

    def mean(self) -> float | None:
        """Return the mean distance over all pairs; None for fewer than 2 runs."""
        runs = len(self)
        return self._sums.total / (ONE * (runs * (runs - 1) // 2)) if runs >= 2 else None

    def share(self) -> Share | None:
        """Return 1 − the mean distance, weighing as many as there are runs."""
        distance, runs = self.mean(), len(self)
        return None if distance is None else Share((1.0 - distance,), runs, runs, self.left_out)

    def distance(self, row: Row) -> tuple[float, int] | None:
        """Return (mean distance of a run to the other runs here, how many they are); None if there is no other."""
        others = len(self) - self._holds(row)
        return (self._sums.distance(self._code(row)) / (ONE * others), others) if others else None

    def _holds(self, row: Row) -> bool:
        at = bisect_left(self._rows, row)
        return self.left_out <= at < len(self._rows) and self._rows[at].run_id == row.run_id

    def _fit(self) -> None:
        """Exclude the earliest runs while there are too many codes, and admit earlier ones while there are not."""
        rows, sums = self._rows, self._sums
        while sums.distinct > self._limit:
            sums.remove(self._code(rows[self.left_out]))
            self.left_out += 1
        while self.left_out and self._fits(self._code(rows[self.left_out - 1])):
            self.left_out -= 1
            sums.add(self._code(rows[self.left_out]))

    def _fits(self, code: K) -> bool:
        return self._sums.distinct < self._limit or code in self._sums
