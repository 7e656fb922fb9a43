"""How far apart the paths of runs are, two by two, kept up to date as runs come and go."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Hashable, KeysView, Sequence
from typing import Final, Generic, TypeAlias, TypeVar

from rapidfuzz.distance.Levenshtein import distance
from rapidfuzz.process import cdist

from otel_reliability.model.row import Row

ONE: Final = 1 << 52
"""Distances are whole numbers of 2^-52, so that sums of them are exact and can be undone."""

K = TypeVar("K", bound=Hashable)

Apart: TypeAlias = Callable[[K, Sequence[K]], list[int]]
"""How far what a run did is from what each other did, in units of 2^-52; the same seen from either side."""

Shares: TypeAlias = Callable[[str, Sequence[str]], list[int]]
"""The same of paths, by their codes."""

FEW: Final = 10
"""Below so many paths, single calls are faster than one call for all."""

HABITS: Final = 16
"""Up to so many distinct paths an agent has habits: then distances are kept for the next time."""


def edit_shares(code: str, others: Sequence[str]) -> list[int]:
    """The edit distance of a path to each other over the longer length of the two, in units of 2^-52.

    Insert, delete and replace cost 1; two empty paths are equal.

    >>> [share / ONE for share in edit_shares("ab", ["ab", "abcd", ""])]
    [0.0, 0.5, 1.0]
    """
    length = len(code) or 1
    return [
        edits * ONE // (length if length > (theirs := len(other)) else theirs)
        for edits, other in zip(_distances(code, others), others, strict=True)
    ]


def _distances(code: str, others: Sequence[str]) -> list[int]:
    if len(others) < FEW:
        return [distance(code, other) for other in others]
    return cdist((code,), others, scorer=distance)[0].tolist()


class _Taken:
    """One distinct path: the runs that took it, and the sum of its distances to runs that came since it is here.

    `share` is a scratch value: the distance to the path in hand. `shares` are its distances to all paths in order, where they
    are kept, as of the change of paths that `known` counts.
    """

    __slots__ = ("known", "later", "runs", "share", "shares")

    def __init__(self) -> None:
        self.runs = 0
        self.later = 0
        self.share = 0
        self.known = -1
        self.shares: tuple[int, ...] = ()


class PairSums(Generic[K]):
    """The sum of the distances (edit shares, or others) over all pairs of runs.

    A run that comes costs one distance to each distinct path (or whatever runs are compared by). The run that has been here
    longest leaves at no cost: the sum of its distances to those that came later was kept all along. Any other run costs one
    distance to each distinct path. Where there are few paths, those that are taken again keep their distances to the others.
    State: integers, three for each distinct path and one for each run.
    """

    __slots__ = ("_changes", "_order", "_paths", "_shares", "_since", "_taken", "total")

    def __init__(self, shares: Apart[K]) -> None:
        self._shares = shares
        self._paths: dict[K, _Taken] = {}
        self._since: dict[str, int] = {}
        self._order: deque[str] = deque()
        self._taken: deque[_Taken] = deque()
        self._changes = 0
        self.total = 0
        """The sum over all pairs, in units of 2^-52."""

    def __len__(self) -> int:
        return len(self._since)

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._since

    @property
    def codes(self) -> KeysView[K]:
        """The distinct paths."""
        return self._paths.keys()

    def add(self, run_id: str, code: K) -> None:
        """A run comes."""
        taken = self._paths.get(code)
        if taken is None:
            taken = self._paths[code] = _Taken()
            self._changes += 1
        total = 0
        for share, other in zip(self._shares_of(code, taken), self._paths.values(), strict=True):
            if share:
                total += share * other.runs
                other.later += share
        self.total += total
        taken.runs += 1
        self._since[run_id] = taken.later
        self._order.append(run_id)
        self._taken.append(taken)

    def remove(self, run_id: str, code: K) -> None:
        """A run that came leaves."""
        taken = self._paths[code]
        if self._order[0] == run_id:
            self._order.popleft()
            self._taken.popleft()
            self.total -= taken.later - self._since.pop(run_id)
        else:
            self._take_out(run_id, code)
            at = self._order.index(run_id)
            del self._order[at], self._taken[at], self._since[run_id]
        taken.runs -= 1
        if not taken.runs:
            del self._paths[code]
            self._changes += 1

    def _shares_of(self, code: K, taken: _Taken) -> Sequence[int]:
        """The distances of a path that is here to all of them, kept where that is likely to pay."""
        if taken.known == self._changes:
            return taken.shares
        shares = self._shares(code, list(self._paths))
        if taken.runs and len(shares) <= HABITS:
            taken.known, taken.shares = self._changes, tuple(shares)
        return shares

    def distance(self, code: K) -> int:
        """The sum of the distances of a path to all runs, in units of 2^-52."""
        shares = self._shares(code, list(self._paths))
        return sum(share * other.runs for share, other in zip(shares, self._paths.values(), strict=True))

    def _take_out(self, run_id: str, code: K) -> None:
        """Subtract a run from the sums of all pairs, and from what those that came before it still hold of it."""
        for share, other in zip(self._shares(code, list(self._paths)), self._paths.values(), strict=True):
            other.share = share
            self.total -= share * other.runs
        for earlier, taken in zip(self._order, self._taken, strict=True):
            if earlier == run_id:
                return
            self._since[earlier] += taken.share


class LatestBy(Generic[K]):
    """The pairs of the latest runs that have at most `limit` distinct codes among them: what runs are compared by.

    The ceiling bounds what a run costs. Below it these are all runs; above it, as many of the latest, by (end, run id), as
    the ceiling lets in. Which they are depends on the runs alone, not on their order of arrival.
    """

    __slots__ = ("_code", "_limit", "_rows", "_start", "_sums")

    def __init__(self, limit: int, shares: Apart[K], code: Callable[[Row], K]) -> None:
        self._limit = limit
        self._code = code
        self._rows: list[Row] = []
        self._start = 0
        self._sums = PairSums(shares)

    def __len__(self) -> int:
        return len(self._sums)

    @property
    def left_out(self) -> int:
        """How many runs the ceiling keeps out."""
        return self._start

    def add(self, row: Row) -> None:
        """A run comes."""
        at = bisect_left(self._rows, row)
        self._rows.insert(at, row)
        if at < self._start or (at == self._start and at > 0):
            self._start += 1
        else:
            self._enter(row)
        self._fit()

    def evict(self, row: Row) -> None:
        """A run that came leaves."""
        at = bisect_left(self._rows, row)
        del self._rows[at]
        if at < self._start:
            self._start -= 1
        else:
            self._leave(row)
        self._fit()

    def mean(self) -> float | None:
        """The mean distance over all pairs; None for fewer than 2 runs."""
        runs = len(self._sums)
        return self._sums.total / (ONE * (runs * (runs - 1) // 2)) if runs >= 2 else None

    def distance(self, row: Row) -> tuple[float, int] | None:
        """(mean distance of a run to the other runs here, how many they are); None if there is no other."""
        others = len(self._sums) - (row.run_id in self._sums)
        return (self._sums.distance(self._code(row)) / (ONE * others), others) if others else None

    def _fit(self) -> None:
        """Let the earliest go while there are too many paths; let earlier ones back in while there are not."""
        while len(self._sums.codes) > self._limit:
            self._leave(self._rows[self._start])
            self._start += 1
        while self._start and self._has_room(self._rows[self._start - 1]):
            self._start -= 1
            self._enter(self._rows[self._start])

    def _has_room(self, row: Row) -> bool:
        return len(self._sums.codes) < self._limit or self._code(row) in self._sums.codes

    def _enter(self, row: Row) -> None:
        self._sums.add(row.run_id, self._code(row))

    def _leave(self, row: Row) -> None:
        self._sums.remove(row.run_id, self._code(row))


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

    def __init__(self, limit: int, shares: Shares = edit_shares) -> None:
        super().__init__(limit, shares, path_code)


def path_code(row: Row) -> str:
    """The code of the path that a run took."""
    return row.path.code if row.path is not None else ""
