"""Distances of runs two by two, kept up to date as runs enter and leave."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable
from itertools import repeat
from operator import add
from typing import Final, Generic, TypeAlias, TypeVar

from otel_reliability.metrics._support.groups import RunGroup, Share
from otel_reliability.model.row import Row
from otel_reliability.statistics.edits import edit_distance

K = TypeVar("K", bound=Hashable)

ONE: Final = 1 << 52
"""Distances are whole numbers of 2^-52, so that sums of them are exact and can be undone."""

KNOWN: Final = 65
SHARES: Final = [[edits * ONE // (longer or 1) for edits in range(longer + 1)] for longer in range(KNOWN)]
"""The share that each number of edits is of each longer length, for most paths: a lookup costs less than a division."""

Distances: TypeAlias = Callable[[K, list[K]], list[int]]
"""The distance of one code to each of some others, in units of 2^-52; symmetric, and 0 to itself."""


def order(row: Row) -> tuple[int, str]:
    """Return the order of runs: by end, then by run id."""
    return row.end_ns, row.run_id


def path_code(row: Row) -> str:
    """Return the code of the path of a run."""
    return "" if row.path is None else row.path.code


def edit_shares(code: str, others: list[str]) -> list[int]:
    """Return the edit distance of a path to each other over the longer length of the two, in units of 2^-52.

    Insert, delete and replace cost 1; two empty paths are equal.

    >>> [share / ONE for share in edit_shares("ab", ["ab", "abcd", ""])]
    [0.0, 0.5, 1.0]
    """
    length, sizes = len(code), map(len, others)
    edits = map(edit_distance, repeat(code), others)
    longer = [size if size > length else length for size in sizes]  # noqa: FURB136 (a call of max takes five times as long)
    return [
        SHARES[size][edit] if size < KNOWN else edit * ONE // size for size, edit in zip(longer, edits, strict=True)
    ]


class PairSums(Generic[K]):
    """Sum of the distances over all pairs of runs, where a run is known by the code of what it did.

    For each code there is the sum of its distances to all runs that entered since the code is here; a run notes that sum
    when it enters. So the run that has been here longest leaves at no cost, while any other, like a run that enters, costs
    one distance to each code. Runs with equal codes are interchangeable. State: integers, two for each code and one for
    each run.
    """

    __slots__ = ("_at", "_codes", "_distances", "_entered", "_later", "_more", "_noted", "total")

    def __init__(self, distances: Distances[K]) -> None:
        self._distances = distances
        self._at: dict[K, int] = {}
        self._codes: list[K] = []
        self._more: dict[K, int] = {}
        """For codes of several runs, how many more than one."""
        self._later: list[int] = []
        self._entered: list[K] = []
        self._noted: list[int] = []
        self.total = 0
        """The sum over all pairs, in units of 2^-52."""

    def __len__(self) -> int:
        return len(self._entered)

    def __contains__(self, code: K) -> bool:
        """Return whether a run has this code."""
        return code in self._at

    @property
    def distinct(self) -> int:
        """How many different codes there are."""
        return len(self._codes)

    def add(self, code: K) -> None:
        """A run enters."""
        distances = self._distances(code, self._codes)
        self.total += self._weighted(distances)
        self._later = list(map(add, self._later, distances))
        at = self._at.get(code)
        if at is None:
            at = self._at[code] = len(self._codes)
            self._codes.append(code)
            self._later.append(0)
        else:
            self._more[code] = self._more.get(code, 0) + 1
        self._entered.append(code)
        self._noted.append(self._later[at])

    def remove(self, code: K) -> None:
        """A run that entered leaves."""
        if self._entered[0] == code:
            self.total -= self._later[self._at[code]] - self._noted[0]
            del self._entered[0], self._noted[0]
        else:
            self._take_out(code)
        more = self._more.pop(code, 0)
        if more > 1:
            self._more[code] = more - 1
        elif not more:
            self._forget(code)

    def distance(self, code: K) -> int:
        """Return the sum of the distances of a code to all runs, in units of 2^-52."""
        return self._weighted(self._distances(code, self._codes))

    def _weighted(self, distances: list[int]) -> int:
        """Return the sum of distances to all codes, each as often as it has runs."""
        return sum(distances) + sum([distances[self._at[code]] * more for code, more in self._more.items()])

    def _take_out(self, code: K) -> None:
        """Subtract a run from the total, and from the sums of the runs that entered before it."""
        distances = self._distances(code, self._codes)
        self.total -= self._weighted(distances)
        position = self._entered.index(code)
        for earlier in range(position):
            self._noted[earlier] += distances[self._at[self._entered[earlier]]]
        del self._entered[position], self._noted[position]

    def _forget(self, code: K) -> None:
        """Remove a code that no run has any more: the last one takes its position."""
        at, last, later = self._at.pop(code), self._codes.pop(), self._later.pop()
        if at < len(self._codes):
            self._codes[at], self._later[at], self._at[last] = last, later, at


class LatestPairs(RunGroup, Generic[K]):
    """Pairs of the latest runs of a group, in the order of their ends, that have at most `limit` different codes.

    The limit bounds the cost of one run. Below it all runs count; above it the latest, as many as the limit admits. Which
    they are depends on the runs alone, not on their order of arrival. Rows are kept only while the limit is reached: `rows`
    returns those of the group, given one of them. Without it they are kept from the start.

    >>> from otel_reliability.metrics.examples import rows_of
    >>> pairs = LatestPairs(2, edit_shares, path_code)
    >>> for row in rows_of("a", "a b", "a", "c"):
    ...     pairs.add(row)
    >>> len(pairs), pairs.left_out, pairs.mean()
    (2, 2, 1.0)
    """

    __slots__ = ("_code", "_limit", "_read_rows", "_rows", "_sums", "left_out")

    def __init__(
        self,
        limit: int,
        distances: Distances[K],
        code: Callable[[Row], K],
        rows: Callable[[Row], list[Row]] | None = None,
    ) -> None:
        super().__init__()
        self._limit = limit
        self._code = code
        self._read_rows = rows
        self._rows: list[Row] | None = [] if rows is None else None
        self._sums = PairSums(distances)
        self.left_out = 0
        """How many runs, the earliest, the limit excludes."""

    def __len__(self) -> int:
        return len(self._sums)

    def add(self, row: Row) -> None:
        rows = self._rows
        if rows is None:
            self._sums.add(self._code(row))
            if self._sums.distinct <= self._limit or self._read_rows is None:
                return
            rows = self._rows = self._read_rows(row)
        else:
            at = bisect_left(rows, order(row), key=order)
            rows.insert(at, row)
            if at < self.left_out or (at == self.left_out and at > 0):
                self.left_out += 1
            else:
                self._sums.add(self._code(row))
        self._fit(rows)

    def evict(self, row: Row) -> None:
        rows = self._rows
        if rows is None:
            self._sums.remove(self._code(row))
            return
        at = bisect_left(rows, order(row), key=order)
        del rows[at]
        if at < self.left_out:
            self.left_out -= 1
        else:
            self._sums.remove(self._code(row))
        self._fit(rows)
        if self._read_rows and not self.left_out and self._sums.distinct <= self._limit // 2:
            self._rows = None

    def mean(self) -> float | None:
        """Return the mean distance over all pairs; None for fewer than 2 runs."""
        runs = len(self)
        return self._sums.total / (ONE * (runs * (runs - 1) // 2)) if runs >= 2 else None

    def share(self) -> Share | None:
        """Return 1 − the mean distance, weighing as many as there are runs."""
        distance, runs = self.mean(), len(self)
        return None if distance is None else Share((1.0 - distance,), runs, runs, self.left_out)

    def distance(self, row: Row, *, inside: bool) -> tuple[float, int] | None:
        """Return (mean distance of a run to the other runs here, how many they are); None if there is no other.

        `inside`: the run is in the window, so that it is not one of the others.
        """
        others = len(self) - (inside and self._counts(row))
        return (self._sums.distance(self._code(row)) / (ONE * others), others) if others else None

    def _counts(self, row: Row) -> bool:
        return self._rows is None or bisect_left(self._rows, order(row), key=order) >= self.left_out

    def _fit(self, rows: list[Row]) -> None:
        """Exclude the earliest runs while there are too many codes, and admit earlier ones while there are not."""
        sums = self._sums
        while sums.distinct > self._limit:
            sums.remove(self._code(rows[self.left_out]))
            self.left_out += 1
        while self.left_out and self._fits(self._code(rows[self.left_out - 1])):
            self.left_out -= 1
            sums.add(self._code(rows[self.left_out]))

    def _fits(self, code: K) -> bool:
        return self._sums.distinct < self._limit or code in self._sums
