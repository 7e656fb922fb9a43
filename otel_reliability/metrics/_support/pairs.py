"""Distances of runs two by two, kept up to date as runs enter and leave."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable
from operator import mul
from typing import Final, Generic, TypeAlias, TypeVar

from otel_reliability.metrics._support.groups import RunGroup, Share
from otel_reliability.model.row import Row
from otel_reliability.statistics.edits import edit_distances

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


def edit_units(code: str, others: list[str]) -> list[int]:
    """Return the edit distance of a path to each other over the longer length of the two, in units of 2^-52.

    Insert, delete and replace cost 1; two empty paths are equal.

    >>> [share / ONE for share in edit_units("ab", ["ab", "abcd", ""])]
    [0.0, 0.5, 1.0]
    """
    length, edits = len(code), edit_distances(code, others)
    longer = [size if size > length else length for size in map(len, others)]  # noqa: FURB136 (a call of max takes five times as long)
    return [
        SHARES[size][edit] if size < KNOWN else edit * ONE // size for size, edit in zip(longer, edits, strict=True)
    ]


class PairSums(Generic[K]):
    """Sum of the distances over all pairs of runs, where a run is known by the code of what it did.

    A run that enters or leaves costs one distance to each different code. State: an integer for each different code.
    """

    __slots__ = ("_distances", "_runs", "total")

    def __init__(self, distances: Distances[K]) -> None:
        self._distances = distances
        self._runs: dict[K, int] = {}
        """Runs of each code."""
        self.total = 0
        """The sum over all pairs, in units of 2^-52."""

    def __len__(self) -> int:
        return sum(self._runs.values())

    def __contains__(self, code: K) -> bool:
        """Return whether a run has this code."""
        return code in self._runs

    @property
    def distinct(self) -> int:
        """Number of different codes."""
        return len(self._runs)

    def add(self, code: K) -> None:
        """Add a run."""
        self.total += self.distance(code)
        self._runs[code] = self._runs.get(code, 0) + 1

    def remove(self, code: K) -> None:
        """Remove a run that was added."""
        self.total -= self.distance(code)
        self._runs[code] -= 1
        if not self._runs[code]:
            del self._runs[code]

    def distance(self, code: K) -> int:
        """Return the sum of the distances of a code to all runs, in units of 2^-52."""
        return sum(map(mul, self._distances(code, list(self._runs)), self._runs.values()))


class LatestPairs(RunGroup, Generic[K]):
    """Pairs of the latest runs of a group, in the order of their ends, that have at most `limit` different codes.

    The limit bounds the cost of one run. Below it all runs count; above it the latest, as many as the limit admits. Which
    they are depends on the runs alone, not on their order of arrival. Rows are kept only while the limit is reached: `rows`
    returns those of the group, given one of them. Without it they are kept from the start.

    >>> from otel_reliability.metrics.examples import rows_of
    >>> pairs = LatestPairs(2, edit_units, path_code)
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
        """The number of runs, the earliest ones, that the limit excludes."""

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
