"""The rows of one window in order: those that count, and below them the spares."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from otel_reliability.model.row import Row
from otel_reliability.windows.base import Listener, Rule
from otel_reliability.windows.kept import Standing
from otel_reliability.windows.ordered import OrderedRows


class Roster:
    """Which of an agent's runs are in one window now.

    Rows stand sorted by (end time, run id); the window is the part from `_start` on, as its rules say (all of them must
    hold). Rows below are spares: they return when a run of the window is withdrawn. So which rows count is a function of
    the rows told, not of their order of arrival, for as long as `reopenable` runs are the only ones that go.
    """

    __slots__ = ("_forgotten", "_kept", "_listener", "_reopenable", "_rules", "_settled_ns", "_start", "_unsettled")

    def __init__(self, rules: Sequence[Rule], listener: Listener, reopenable: Collection[str]) -> None:
        self._rules = tuple(rules)
        self._listener = listener
        self._reopenable = reopenable
        self._kept = OrderedRows()
        self._start = 0
        self._unsettled = 0
        self._forgotten = 0
        self._settled_ns: int | None = None

    def __len__(self) -> int:
        return len(self._kept) - self._start

    def __contains__(self, row: Row) -> bool:
        """Whether the row is kept at all, in the window or as a spare."""
        return self._kept.index(row) is not None

    @property
    def spares(self) -> int:
        """How many runs below the window are kept."""
        return self._start

    @property
    def newest_ns(self) -> int | None:
        """The greatest end time; None while there is no row."""
        return self._kept.end_ns(len(self._kept) - 1) if self._kept else None

    @property
    def left_behind(self) -> int:
        """How many runs, of those that were told and not withdrawn, sort below the window."""
        return self._start + self._forgotten

    def rows(self) -> list[Row]:
        """The rows that count now, in order."""
        return self._kept.rows(self._start)

    def kept(self) -> list[Row]:
        """The rows that count now, and the spares before them."""
        return self._kept.rows()

    def counts(self, row: Row) -> bool:
        """Whether the row is in the window."""
        at = self._kept.index(row)
        return at is not None and at >= self._start

    def find(self, run_id: str) -> Row | None:
        """The row of that run, if it is kept."""
        return self._kept.find(run_id)

    def insert(self, row: Row) -> bool:
        """A run is told. False: it sorts below all that is worth keeping, and is refused."""
        at = self._kept.insert(row)
        self._unsettled += row.run_id in self._reopenable
        if at <= self._start:
            self._start += 1
        else:
            self._listener.add(row)
        return at >= self._move()

    def remove(self, row: Row) -> None:
        """A run that was told is gone: withdrawn, or about to be told anew."""
        at = self._kept.index(row)
        if at is None:
            return
        if at >= self._start:
            self._listener.evict(row)
        else:
            self._start -= 1
        self._kept.delete(at)
        self._move()
        self._let_go(row)

    def settle(self, row: Row) -> None:
        """A run, no longer among the reopenable ones, will not change any more."""
        at = self._kept.index(row)
        if at is None:
            return
        self._unsettled -= 1
        self._settled_ns = row.end_ns if self._settled_ns is None else max(self._settled_ns, row.end_ns)
        at -= self._forget_spent()
        if at >= 0:
            self._kept.settled(at, row, self._start, self._reopenable)

    def standing(self, refused: int) -> Standing:
        """What is remembered beside the rows."""
        return Standing(self._forgotten, self._settled_ns, refused)

    def restore(self, standing: Standing) -> None:
        """Take over what `standing` gave."""
        self._forgotten, self._settled_ns = standing.forgotten, standing.settled_ns

    def refill(self, rows: Iterable[Row]) -> None:
        """Take over rows that another roster kept, in their order, while there are none. `trim` follows."""
        self._kept.extend(rows, self._reopenable)
        kept = self._kept
        self._unsettled = len([None for at in range(len(kept)) if kept.run_id(at) in self._reopenable])
        self._start = len(kept)
        begin = self._begin()
        while self._start > begin:
            self._start -= 1
            self._listener.add(kept.row(self._start))

    def trim(self) -> None:
        """Let go of what other rules have kept and these do not."""
        self._forget_spent()

    def _move(self) -> int:
        """Let rows leave or return until the window begins where the rules say; forget what cannot return, and say how many."""
        kept, begin = self._kept, self._begin()
        while self._start < begin:
            self._listener.evict(kept.row(self._start))
            self._start += 1
        while self._start > begin:
            self._start -= 1
            self._listener.add(kept.row(self._start))
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
        kept = self._kept
        settled = len(kept) - self._unsettled
        for at in range(self._start):
            settled -= kept.run_id(at) not in self._reopenable
            ended = kept.end_ns(at)
            if not self._is_spent(ended, settled):
                return at
        return self._start

    def _is_spent(self, end_ns: int, settled: int) -> bool:
        for rule in self._rules:  # noqa: SIM110 (`any` takes three times as long)
            if rule.is_spent(end_ns, settled, self._settled_ns):
                return True
        return False

    def _forget(self, number: int) -> None:
        gone = [self._kept.row(at) for at in range(number)]
        self._kept.delete(0, number)
        self._start -= number
        self._forgotten += number
        for row in gone:
            self._let_go(row)

    def _let_go(self, row: Row) -> None:
        self._unsettled -= row.run_id in self._reopenable
        self._listener.drop(row)
