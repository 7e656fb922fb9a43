"""The rows of one window in order: those that count, and below them the spares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from math import inf
from typing import Protocol

from otel_reliability.model.row import Row
from otel_reliability.windows.kept import Standing
from otel_reliability.windows.ordered import OrderedRows
from otel_reliability.windows.rule import Rule


class Dropped(Protocol):
    """Who is told that a window let go of a row."""

    def __call__(self, row: Row) -> None: ...


class Roster(ABC):
    """Which of an agent's runs are in one window now.

    Rows stand sorted by (end time, run id); the window is the part from `_start` on, as its rule says. Rows below are spares:
    they return when a run of the window is withdrawn. So which rows count is a function of the rows told, not of their order
    of arrival, for as long as `reopenable` runs are the only ones that go.

    Whoever measures the window says what happens when a row enters (`add`) and leaves (`evict`). `dropped` is told of rows
    that are kept no more.
    """

    __slots__ = (
        "_dropped",
        "_forgotten",
        "_kept",
        "_most",
        "_period_ns",
        "_reopenable",
        "_rule",
        "_settled_ns",
        "_start",
        "_unsettled",
        "refused",
    )

    def __init__(self, rule: Rule, reopenable: Collection[str], dropped: Dropped) -> None:
        self._rule = rule
        self._most, self._period_ns = rule
        self._reopenable = reopenable
        self._dropped = dropped
        self._kept = OrderedRows()
        self._start = 0
        self._unsettled = 0
        self._forgotten = 0
        self._settled_ns: int | None = None
        self.refused = 0
        """How many runs came too late to count: they sorted below the window and its spares."""

    @abstractmethod
    def add(self, row: Row) -> None:
        """The row counts from now on."""

    @abstractmethod
    def evict(self, row: Row) -> None:
        """The row, which was added, counts no more."""

    # --- Looking ------------------------------------------------------------------------------------------------------

    def __contains__(self, row: Row) -> bool:
        """Whether the row is kept at all, in the window or as a spare."""
        return self._kept.index(row) is not None

    @property
    def runs(self) -> int:
        """How many runs are in the window, under whatever condition."""
        return len(self._kept) - self._start

    @property
    def spares(self) -> int:
        """How many runs below the window are kept, in case one of it is withdrawn."""
        return self._start

    @property
    def newest_ns(self) -> int | None:
        """When the last of its runs ended; None while it has none."""
        return self._kept.end_ns(len(self._kept) - 1) if self._kept else None

    @property
    def oldest_ns(self) -> float:
        """When the first of its runs or spares ended; infinity while it has none. What ended earlier is not here."""
        return self._kept.end_ns(0) if self._kept else inf

    @property
    def left_behind(self) -> int:
        """How many runs, of those that were told and not withdrawn, sort below the window."""
        return self._start + self._forgotten

    def rows(self) -> list[Row]:
        """The rows in the window, by (end time, run id)."""
        return self._kept.rows(self._start)

    def kept(self) -> list[Row]:
        """The rows in the window, and the spares before them."""
        return self._kept.rows()

    def counts(self, row: Row) -> bool:
        """Whether the row is in the window, and no spare below it."""
        at = self._kept.index(row)
        return at is not None and at >= self._start

    def find(self, run_id: str) -> Row | None:
        """The row of a settled run, if it is kept."""
        return self._kept.find(run_id)

    # --- Coming and going ---------------------------------------------------------------------------------------------

    def insert(self, row: Row) -> bool:
        """A run was closed. False: it sorts below all that is worth keeping, and is refused."""
        kept = self._kept
        fresh = kept.fresh
        if row < fresh[-1] if fresh else not kept.ends_before(row):
            return self._insert(row)
        fresh.append(row)
        self._unsettled += row.run_id in self._reopenable
        self.add(row)
        self._go_on(row.end_ns)
        return True

    def remove(self, row: Row) -> None:
        """A run is gone: it was withdrawn, or is about to be told anew. Nothing happens if it is not here."""
        at = self._kept.index(row)
        if at is None:
            return
        if at >= self._start:
            self.evict(row)
        else:
            self._start -= 1
        self._kept.delete(at)
        self._move()
        self._let_go(row)

    def settle(self, row: Row) -> None:
        """A run, no longer among the reopenable ones, will not change any more."""
        kept, unsettled = self._kept, self._unsettled
        fresh = kept.fresh
        at = len(fresh) - unsettled
        if 0 <= at < len(fresh) and fresh[at] is row:  # most often, runs settle in the order in which they ended
            at += kept.packed
        else:
            found = kept.index(row)
            if found is None:
                return
            at = found
        self._unsettled = unsettled - 1
        settled_ns, end_ns = self._settled_ns, row.end_ns
        if settled_ns is None or end_ns > settled_ns:
            self._settled_ns = end_ns
        if self._start:
            at -= self._forget_spent()
        if at >= 0:
            kept.settled(at, row, self._start, self._reopenable)

    # --- Over a restart -----------------------------------------------------------------------------------------------

    def refill(self, rows: Iterable[Row]) -> None:
        """Take over the rows that another window kept, in their order, while there are none. `trim` follows."""
        self._kept.extend(rows, self._reopenable)
        kept = self._kept
        self._unsettled = len([None for at in range(len(kept)) if kept.run_id(at) in self._reopenable])
        self._start, begin = len(kept), self._rule.start(kept)
        while self._start > begin:
            self._start -= 1
            self.add(kept.row(self._start))

    def trim(self) -> None:
        """Let go of what other rules have kept and these do not."""
        self._forget_spent()

    @property
    def standing(self) -> Standing:
        """What it remembers beside its rows."""
        return Standing(self._forgotten, self._settled_ns, self.refused)

    def restore(self, standing: Standing) -> None:
        """Take over what another window of this name remembered."""
        self._forgotten, self._settled_ns, self.refused = standing

    # --- Keeping order ------------------------------------------------------------------------------------------------

    def _insert(self, row: Row) -> bool:
        """As `insert`, wherever the row belongs."""
        at = self._kept.insert(row)
        self._unsettled += row.run_id in self._reopenable
        if at <= self._start:
            self._start += 1
        else:
            self.add(row)
        kept = at >= self._move()
        self.refused += not kept
        return kept

    def _go_on(self, newest_ns: int) -> None:
        """The newest run has come: let rows leave.

        A spare that was worth keeping before still is, since no run has settled. So only where there was none is there
        anything to forget.
        """
        kept, start = self._kept, self._start
        had_spares, number = start > 0, len(kept)
        while number - start > self._most:
            self.evict(kept.leaving(start))
            start = self._start = start + 1
        if self._period_ns is not None:
            horizon = newest_ns - self._period_ns
            while start < number and kept.end_ns(start) <= horizon:
                self.evict(kept.row(start))
                start = self._start = start + 1
        if start and not had_spares:
            self._forget_spent()

    def _move(self) -> int:
        """Let rows leave or return until the window begins where the rule says; forget what cannot return, and say how many."""
        kept, begin = self._kept, self._rule.start(self._kept)
        while self._start < begin:
            self.evict(kept.row(self._start))
            self._start += 1
        while self._start > begin:
            self._start -= 1
            self.add(kept.row(self._start))
        return self._forget_spent()

    def _forget_spent(self) -> int:
        """Forget the spares that can never be in the window again, and say how many."""
        spent = self._spent() if self._start else 0
        if spent:
            self._start -= spent
            self._forgotten += spent
            for row in self._kept.take(spent):
                self._let_go(row)
        return spent

    def _spent(self) -> int:
        kept, most, unsettled = self._kept, self._most, self._unsettled
        fresh, packed, reopenable = kept.fresh, kept.packed, self._reopenable
        settled = packed + len(fresh) - unsettled
        horizon = None if self._period_ns is None or self._settled_ns is None else self._settled_ns - self._period_ns
        if settled < most and horizon is None:
            return 0
        for at in range(self._start):
            if not unsettled or (fresh[at - packed].run_id if at >= packed else kept.run_id(at)) not in reopenable:
                settled -= 1
            if settled < most and (horizon is None or kept.end_ns(at) > horizon):
                return at
        return self._start

    def _let_go(self, row: Row) -> None:
        if row.run_id in self._reopenable:
            self._unsettled -= 1
        self._dropped(row)
