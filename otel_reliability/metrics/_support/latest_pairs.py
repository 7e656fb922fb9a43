"""The distances of runs two by two, of the latest runs of a group."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Sequence
from operator import mul
from typing import Final, Generic, TypeAlias, TypeVar

from otel_reliability.metrics._support.run_group import RunGroup, Share
from otel_reliability.metrics._support.sums import Counts
from otel_reliability.metrics.base import Rows, RunKind
from otel_reliability.model.reading import NO_DATA, Reading
from otel_reliability.model.row import Row
from otel_reliability.statistics.edits import edit_distances

K = TypeVar("K", bound=Hashable)

ONE: Final = 1 << 52
"""Distances are whole numbers of 2^-52, so that sums of them are exact and can be undone."""

KNOWN: Final = 65
SHARES: Final = [
    [edits * ONE // (longer or 1) for edits in range(longer + 1)] for longer in range(KNOWN)
]
"""The share that each number of edits is of each longer length, for most paths: a lookup costs less
than a division.
"""

Distances: TypeAlias = Callable[[K, list[K]], list[int]]
"""The distance of one code to each of some others, in units of 2^-52; symmetric, and 0 to itself.
"""


def order(row: Row) -> tuple[int, str]:
    """Return the order of runs: by end, then by run id."""
    return row.end_ns, row.run_id


def path_code(row: Row) -> str:
    """Return the code of the path of a run."""
    return "" if row.path is None else row.path.code


def edit_units(code: str, others: list[str]) -> list[int]:
    """Return the edit distance of a path to each other over the longer length of the two, in units
    of 2^-52.

    Insert, delete and replace cost 1; two empty paths are equal.

    >>> [share / ONE for share in edit_units("ab", ["ab", "abcd", ""])]
    [0.0, 0.5, 1.0]
    """
    length = len(code)
    edits = edit_distances(code, others)
    # a call of max takes five times as long
    longer = [size if size > length else length for size in map(len, others)]  # noqa: FURB136
    return [
        SHARES[size][edit] if size < KNOWN else edit * ONE // size
        for size, edit in zip(longer, edits, strict=True)
    ]


class LatestPairs(RunGroup, Generic[K]):
    """Pairs of the latest runs of a group, in the order of their ends, that have at most `limit`
    different codes.

    A run is known by the code of what it did; one that enters or leaves costs one distance to each
    different code. The limit bounds that. Below it all runs count; above it the latest, as many as
    the limit admits. Which they are depends on the runs alone, not on their order of arrival. Rows
    are kept only while the limit is reached: `rows` returns those of the group, given one of them.
    Without it they are kept from the start. `by_runs`: the group weighs as many as it has runs,
    else as much as any other.

    >>> from otel_reliability.testing import rows_of
    >>> pairs = LatestPairs(2, edit_units, path_code)
    >>> for row in rows_of("a", "a b", "a", "c"):
    ...     pairs.count(row, 1)
    >>> len(pairs), pairs.left_out, pairs.mean()
    (2, 2, 1.0)
    """

    __slots__ = (
        "_by_runs",
        "_code",
        "_codes",
        "_distances",
        "_limit",
        "_read_rows",
        "_rows",
        "_total",
        "left_out",
    )

    def __init__(
        self,
        limit: int,
        distances: Distances[K],
        code: Callable[[Row], K],
        rows: Callable[[Row], list[Row]] | None = None,
        *,
        by_runs: bool = True,
    ) -> None:
        super().__init__()
        self._by_runs = by_runs
        self._limit = limit
        self._code = code
        self._read_rows = rows
        self._rows: list[Row] | None = [] if rows is None else None
        self._distances = distances
        self._codes = Counts[K]()
        self._total = 0
        """Sum of the distances over all pairs, in units of 2^-52."""
        self.left_out = 0
        """The number of runs, the earliest ones, that the limit excludes."""

    def __len__(self) -> int:
        return self._codes.total

    def count(self, row: Row, sign: int) -> None:
        rows = self._rows
        if rows is None:
            self._count_code(self._code(row), sign)
            if len(self._codes) <= self._limit or self._read_rows is None:
                return
            rows = self._rows = self._read_rows(row)
        else:
            at = bisect_left(rows, order(row), key=order)
            if sign > 0:
                rows.insert(at, row)
            else:
                del rows[at]
            if at < self.left_out or (sign > 0 and at == self.left_out > 0):
                self.left_out += sign
            else:
                self._count_code(self._code(row), sign)
        self._fit(rows)
        if self._read_rows and not self.left_out and len(self._codes) <= self._limit // 2:
            self._rows = None

    def mean(self) -> float | None:
        """Return the mean distance over all pairs; None for fewer than 2 runs."""
        runs = len(self)
        return self._total / (ONE * (runs * (runs - 1) // 2)) if runs >= 2 else None

    def fill(self, kinds: Sequence[RunKind], rows: Rows) -> None:
        self._read_rows = None
        if len({self._code(kind.row) for kind in kinds}) <= self._limit:
            self._rows = None
            super().fill(kinds, rows)
            return
        self._rows = []
        for row in rows():
            self.runs += 1
            self.count(row, 1)

    def share(self) -> Share | None:
        """Return 1 − the mean distance."""
        distance = self.mean()
        runs = len(self)
        return (
            None
            if distance is None
            else Share((1.0 - distance,), runs if self._by_runs else 1, runs, self.left_out)
        )

    def distance(self, row: Row, *, inside: bool) -> Reading:
        """Return the mean distance of a run to the other runs here; no value without another run.

        `inside`: the run is in the window, so that it is not one of the others.
        """
        counts = (
            self._rows is None or bisect_left(self._rows, order(row), key=order) >= self.left_out
        )
        others = len(self) - (inside and counts)
        return (
            Reading(self._distance_to_all(self._code(row)) / (ONE * others), others)
            if others
            else NO_DATA
        )

    def _count_code(self, code: K, sign: int) -> None:
        self._total += sign * self._distance_to_all(code)
        self._codes.count(code, sign)

    def _distance_to_all(self, code: K) -> int:
        """Return the sum of the distances of a code to all runs, in units of 2^-52."""
        return sum(map(mul, self._distances(code, list(self._codes)), self._codes.values()))

    def _fit(self, rows: list[Row]) -> None:
        """Exclude the earliest runs while there are too many codes, and admit earlier ones while
        there are not.
        """
        codes = self._codes
        while len(codes) > self._limit:
            self._count_code(self._code(rows[self.left_out]), -1)
            self.left_out += 1
        while self.left_out and (
            len(codes) < self._limit or self._code(rows[self.left_out - 1]) in codes
        ):
            self.left_out -= 1
            self._count_code(self._code(rows[self.left_out]), 1)
