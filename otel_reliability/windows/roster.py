"""The rows of one window in order: those that count, and below them the spares."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from otel_reliability.model.row import Row
from otel_reliability.windows.base import Listener, Rule
from otel_reliability.windows.kept import Standing


class Roster:
    """Which of an agent's runs are in one window now.

    Rows stand sorted by (end time, run id); the window is the part from `_start` on, as its rules say (all of them must
    hold). Rows below are spares: they return when a run of the window is withdrawn. So which rows count is a function of
    the rows told, not of their order of arrival, for as long as `reopenable` runs are the only ones that go.
    """

    __slots__ = ("_forgotten", "_kept", "_listener", "_reopenable", "_rules", "_settled_ns", "_start", "_unsettled")

    def __init__(self, rules: Sequence[Rule], listener: Listener, reopenable: AbstractSet[str]) -> None:
        self._rules = tuple(rules)
        self._listener = listener
        self._reopenable = reopenable
        self._kept: list[Row] = []
        self._start = 0
        self._unsettled = 0
        self._forgotten = 0
        self._settled_ns: int | None = None

    def __len__(self) -> int:
        return len(self._kept) - self._start

    def __contains__(self, row: Row) -> bool:
        """Whether the row is kept at all, in the window or as a spare."""
        return self._index(row) is not None

    @property
    def spares(self) -> int:
        """How many runs below the window are kept."""
        return self._start

    @property
    def newest_ns(self) -> int | None:
        """The greatest end time; None while there is no row."""
        return self._kept[-1].end_ns if self._kept else None

    @property
    def left_behind(self) -> int:
        """How many runs, of those that were told and not withdrawn, sort below the window."""
        return self._start + self._forgotten

    def rows(self) -> list[Row]:
        """The rows that count now, in order."""
        return self._kept[self._start :]

    def insert(self, row: Row) -> bool:
        """A run is told. False: it sorts below all that is worth keeping, and is refused."""
        kept = self._kept
        at = len(kept) if not kept or kept[-1] < row else bisect_left(kept, row)
        kept.insert(at, row)
        self._unsettled += row.run_id in self._reopenable
        if at <= self._start:
            self._start += 1
        else:
            self._listener.add(row)
        return at >= self._move()

    def remove(self, row: Row) -> None:
        """A run that was told is gone: withdrawn, or about to be told anew."""
        at = self._index(row)
        if at is None:
            return
        if at >= self._start:
            self._listener.evict(row)
        else:
            self._start -= 1
        del self._kept[at]
        self._move()
        self._let_go(row)

    def settle(self, row: Row) -> None:
        """A run, no longer among the reopenable ones, will not change any more."""
        if row not in self:
            return
        self._unsettled -= 1
        self._settled_ns = row.end_ns if self._settled_ns is None else max(self._settled_ns, row.end_ns)
        self._move()

    def standing(self, refused: int) -> Standing:
        """What is remembered beside the rows."""
        return Standing(self._forgotten, self._settled_ns, refused)

    def restore(self, standing: Standing) -> None:
        """Take over what `standing` gave."""
        self._forgotten, self._settled_ns = standing.forgotten, standing.settled_ns

    def refill(self, rows: Iterable[Row]) -> None:
        """Take over rows that another roster kept, in their order, while there are none. `trim` follows."""
        self._kept = list(rows)
        self._unsettled = len([row for row in self._kept if row.run_id in self._reopenable])
        self._start = self._begin()
        for row in self._kept[self._start :]:
            self._listener.add(row)

    def trim(self) -> None:
        """Let go of what other rules have kept and these do not."""
        self._forget_spent()

    def _index(self, row: Row) -> int | None:
        kept = self._kept
        at = bisect_left(kept, row)
        return at if at < len(kept) and kept[at] is row else None

    def _move(self) -> int:
        """Let rows leave or return until the window begins where the rules say; forget what cannot return, and say how many."""
        kept, begin = self._kept, self._begin()
        while self._start < begin:
            self._listener.evict(kept[self._start])
            self._start += 1
        while self._start > begin:
            self._start -= 1
            self._listener.add(kept[self._start])
        return self._forget_spent()

    def _begin(self) -> int:
        """Where the window begins, as its rules say."""
        begin = 0
        for rule in self._rules:
            start = rule.start(self._kept)
            begin = max(begin, start)
        return begin

    def _forget_spent(self) -> int:
        spent = self._spent() if self._start else 0
        if spent:
            self._forget(spent)
        return spent

    def _spent(self) -> int:
        """How many of the lowest rows, none of them in the window, can never be in it again."""
        settled = len(self._kept) - self._unsettled
        for at in range(self._start):
            row = self._kept[at]
            settled -= row.run_id not in self._reopenable
            if not any(rule.is_spent(row, settled, self._settled_ns) for rule in self._rules):
                return at
        return self._start

    def _forget(self, number: int) -> None:
        gone = self._kept[:number]
        del self._kept[:number]
        self._start -= number
        self._forgotten += number
        for row in gone:
            self._let_go(row)

    def _let_go(self, row: Row) -> None:
        self._unsettled -= row.run_id in self._reopenable
        self._listener.drop(row)
