"""The distances of runs two by two, kept up to date as runs come and go."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Mapping, Sequence, Sized
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from otel_reliability.metrics.apart import ONE, Apart, Shares, column_of, edit_shares, total
from otel_reliability.metrics.base import Lender
from otel_reliability.metrics.compiled import path_sums, path_total
from otel_reliability.metrics.later_sums import LaterSums
from otel_reliability.model.row import Row


class Code(Hashable, Sized, Protocol):
    """What a run did."""


K = TypeVar("K", bound=Code)


class Ways(NamedTuple, Generic[K]):
    """Quicker ways to the same numbers."""

    begin: Callable[[Mapping[K, int]], LaterSums[K]]
    """Makes the sums of many different codes, of which so many runs are there."""
    total: Callable[[Mapping[K, int]], int]
    """The sum over all pairs, of few."""


PATHS: Final = Ways(path_sums, path_total)
"""Those of paths by their edits."""

HABITS: Final = 16
"""Up to so many distinct paths an agent has habits: then runs are counted, and compared when somebody asks."""
FEW_HABITS: Final = HABITS // 2
"""Where an agent that had more is taken to have habits again."""


class PairSums(Generic[K]):
    """The sum of the distances (edit shares, or others) over all pairs of runs, by what each of them did (its code).

    As long as there are few codes a run is only counted. Where there are many it costs one distance to each, once
    (`LaterSums`). State: an integer for each code; where there are many, columns of them for each code and each run.
    """

    __slots__ = ("_counts", "_many", "_number", "_shares", "_total", "_ways")

    def __init__(self, shares: Apart[K], ways: Ways[K] | None = None) -> None:
        self._shares = shares
        self._ways = ways
        self._counts: dict[K, int] = {}
        self._many: LaterSums[K] | None = None
        self._number = 0
        self._total: int | None = 0

    def __len__(self) -> int:
        return self._number

    def __contains__(self, code: K) -> bool:
        """Whether a run did so."""
        return code in (self._counts if self._many is None else self._many)

    @property
    def distinct(self) -> int:
        """How many distinct codes there are."""
        return len(self._counts if self._many is None else self._many)

    @property
    def total(self) -> int:
        """The sum over all pairs, in units of 2^-52."""
        if self._many is not None:
            return self._many.total
        if self._total is None:
            self._total = self._compared()
        return self._total

    def add(self, code: K) -> int:
        """A run comes. Gives how many distinct codes there are then."""
        self._number += 1
        many = self._many
        if many is not None:
            many.add(code)
            return len(many)
        counts = self._counts
        counts[code] = counts.get(code, 0) + 1
        self._total = None
        if len(counts) > HABITS:
            self._many, self._counts = self._sums_of(counts), {}
            return self.distinct
        return len(counts)

    def remove(self, code: K) -> None:
        """A run that came leaves."""
        self._number -= 1
        if self._many is not None:
            self._many.remove(code)
            if len(self._many) <= FEW_HABITS:
                self._many, self._counts = None, self._many.counts()
            return
        counts = self._counts
        counts[code] -= 1
        self._total = None
        if not counts[code]:
            del counts[code]

    def count_all(self, codes: Sequence[K], times: Sequence[int]) -> None:
        """Of each of these so many runs come, or as many leave as it is below 0."""
        self._number += sum(times)
        many, counts = self._many, self._counts
        if many is not None:
            many.count_all(codes, times)
            if len(many) <= FEW_HABITS:
                self._many, self._counts, self._total = None, many.counts(), None
            return
        self._total = None
        for code, number in zip(codes, times, strict=True):
            counts[code] = after = counts.get(code, 0) + number
            if not after:
                del counts[code]
        if len(counts) > HABITS:
            self._many, self._counts = self._sums_of(counts), {}

    def distance(self, code: K) -> int:
        """The sum of the distances of a code to all runs, in units of 2^-52."""
        if self._many is not None:
            return self._many.distance(code)
        return _weighted(self._shares(code, list(self._counts)), self._counts)

    def _sums_of(self, counts: Mapping[K, int]) -> LaterSums[K]:
        ways = self._ways
        return LaterSums(column_of(self._shares), counts) if ways is None else ways.begin(counts)

    def _compared(self) -> int:
        """The sum over all pairs, from how many runs did what."""
        return total(self._shares, self._counts) if self._ways is None else self._ways.total(self._counts)


def _weighted(shares: Sequence[int], counts: Mapping[K, int]) -> int:
    return sum([share * many for share, many in zip(shares, counts.values(), strict=True)])


class Fellows:
    """The rows of a group, looked up among those that a window keeps."""

    __slots__ = ("_group_of", "_lender", "_takes")

    def __init__(self, lender: Lender, takes: Callable[[Row], bool], group_of: Callable[[Row], Hashable]) -> None:
        self._lender = lender
        self._takes = takes
        self._group_of = group_of

    def of(self, row: Row) -> list[Row]:
        """The rows of one group with a row that counts, in order; it is among them."""
        group = self._group_of(row)
        return [other for other in self._lender.rows() if self._takes(other) and self._group_of(other) == group]

    def holds(self, row: Row) -> bool:
        """Whether a row is in the window."""
        return self._lender.counts(row)


class LatestBy(Generic[K]):
    """The pairs of the latest runs, in the order of their ends, that did at most `limit` different things (`code`).

    A ceiling on distinct paths bounds what one run may cost. Under it all runs count; above it the latest, as many as
    the ceiling lets in. Which they are depends on the runs alone, not on their order of arrival.

    Rows are kept only while the ceiling keeps any out, where `fellows` tells of them when that begins.
    """

    __slots__ = ("_code", "_fellows", "_limit", "_rows", "_start", "_sums")

    def __init__(self, limit: int, sums: PairSums[K], code: Callable[[Row], K], fellows: Fellows | None = None) -> None:
        self._limit = limit
        self._code = code
        self._fellows = fellows
        self._rows: list[Row] | None = [] if fellows is None else None
        self._start = 0
        self._sums = sums

    def __len__(self) -> int:
        return len(self._sums)

    @property
    def left_out(self) -> int:
        """How many runs the ceiling keeps out."""
        return self._start

    def add(self, row: Row) -> None:
        """A run comes."""
        if self._rows is not None:
            self._add_in_order(row, self._rows)
        elif self._sums.add(self._code(row)) > self._limit and self._fellows is not None:
            self._rows = self._fellows.of(row)
            self._fit(self._rows)

    def evict(self, row: Row) -> None:
        """A run that came leaves."""
        if self._rows is None:
            self._sums.remove(self._code(row))
            return
        self._evict_in_order(row, self._rows)
        if self._fellows is not None and not self._start and self._sums.distinct <= self._limit // 2:
            self._rows = None

    def count_all(self, codes: Sequence[K], times: Sequence[int]) -> None:
        """Of each of these so many runs come, or as many leave as it is below 0: where the ceiling cannot keep any out."""
        self._sums.count_all(codes, times)

    def mean(self) -> float | None:
        """The mean distance over all pairs; None for fewer than 2 runs."""
        runs = len(self._sums)
        return self._sums.total / (ONE * (runs * (runs - 1) // 2)) if runs >= 2 else None

    def distance(self, row: Row) -> tuple[float, int] | None:
        """(mean distance of a run to the other runs here, how many they are); None if there is no other."""
        others = len(self._sums) - self._holds(row)
        return (self._sums.distance(self._code(row)) / (ONE * others), others) if others else None

    def _holds(self, row: Row) -> bool:
        if self._rows is None:
            return self._fellows is not None and self._fellows.holds(row)
        at = bisect_left(self._rows, row)
        return self._start <= at < len(self._rows) and self._rows[at].run_id == row.run_id

    def _add_in_order(self, row: Row, rows: list[Row]) -> None:
        at = bisect_left(rows, row)
        rows.insert(at, row)
        if at < self._start or (at == self._start and at > 0):
            self._start += 1
        else:
            self._sums.add(self._code(row))
        self._fit(rows)

    def _evict_in_order(self, row: Row, rows: list[Row]) -> None:
        at = bisect_left(rows, row)
        del rows[at]
        if at < self._start:
            self._start -= 1
        else:
            self._sums.remove(self._code(row))
        self._fit(rows)

    def _fit(self, rows: list[Row]) -> None:
        """Let the earliest go while there are too many paths; let earlier ones back in while there are not."""
        while self._sums.distinct > self._limit:
            self._sums.remove(self._code(rows[self._start]))
            self._start += 1
        while self._start and self._has_room(rows[self._start - 1]):
            self._start -= 1
            self._sums.add(self._code(rows[self._start]))

    def _has_room(self, row: Row) -> bool:
        return self._sums.distinct < self._limit or self._code(row) in self._sums


class LatestPairs(LatestBy[str]):
    """The same by path: the pairs of the latest runs that took at most `limit` distinct paths. All of them have a path.

    >>> from otel_reliability.metrics.examples import rows_of
    >>> pairs = LatestPairs(limit=2)
    >>> for row in rows_of("a", "a b", "a", "c"):
    ...     pairs.add(row)
    >>> len(pairs), pairs.left_out, pairs.mean()
    (2, 2, 1.0)
    """

    __slots__ = ()

    def __init__(self, limit: int, shares: Shares = edit_shares, fellows: Fellows | None = None) -> None:
        ways = PATHS if shares is edit_shares else None
        super().__init__(limit, PairSums(shares, ways), path_code, fellows)


def path_code(row: Row) -> str:
    """The code of the path that a run took."""
    return row.path.code if row.path is not None else ""
