"""The rows of one window in order: those that count, and below them the spares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Container
from functools import lru_cache
from math import inf
from operator import attrgetter
from typing import NamedTuple

from otel_reliability.config import WindowSettings
from otel_reliability.model.row import Row

_end_ns = attrgetter("end_ns")


class Rule(NamedTuple):
    """The rows a window holds: the n with the greatest (end time, run id); with a period p, those of them in (T − p, T].

    T is the greatest end time of the agent's runs. Time stands still while no run comes: the clock never empties a window.
    """

    n: int
    period_ns: int | None = None

    def start(self, rows: list[Row]) -> int:
        """Return the index of the first row in the window, of rows sorted by (end time, run id)."""
        begin = max(len(rows) - self.n, 0)
        if self.period_ns is None or not rows:
            return begin
        return max(begin, bisect_right(rows, rows[-1].end_ns - self.period_ns, key=_end_ns))


@lru_cache
def rule_of(window: WindowSettings, max_rows: int) -> Rule:
    """Return the rule of a window, which holds at most `max_rows` runs.

    >>> rule_of(WindowSettings("hour", last=None, period=3600.0), 100_000)
    Rule(n=100000, period_ns=3600000000000)
    """
    last = max_rows if window.last is None else min(window.last, max_rows)
    return Rule(last, None if window.period is None else round(window.period * 1e9))


class RowRange(ABC):
    """The runs of one agent that are in one window now.

    Rows are sorted by (end time, run id); the window is the part from `_start` on. Rows below are spares: they return when a
    run of the window is withdrawn. Only runs in `reopenable` can be withdrawn, so spares are kept until n final rows are above
    them, and, with a period, those that the window would hold if T were the latest end of a final run. Hence which rows count
    is a function of the rows, not of their order of arrival.

    A subclass defines what happens when a row enters (`add`) and leaves (`evict`); either is called while the row is in
    `rows()`. Rows that the window keeps no more are appended to `dropped`.
    """

    __slots__ = ("_dropped", "_final_ns", "_forgotten", "_kept", "_open", "_reopenable", "_rule", "_start", "refused")

    def __init__(self, rule: Rule, reopenable: Container[str], dropped: list[Row]) -> None:
        self._rule = rule
        self._reopenable = reopenable
        self._dropped = dropped
        self._kept: list[Row] = []
        self._start = 0
        self._open = 0
        """Number of kept rows in `reopenable`."""
        self._forgotten = 0
        self._final_ns: int | None = None
        self.refused = 0
        """Runs that came too late to count: they sorted below the window and its spares."""

    @abstractmethod
    def add(self, row: Row) -> None:
        """Count the row from now on."""

    @abstractmethod
    def evict(self, row: Row) -> None:
        """Count the row, which was added, no more."""

    # --- Reading ------------------------------------------------------------------------------------------------------

    def __contains__(self, row: Row) -> bool:
        """Return whether the row is kept at all, in the window or as a spare."""
        return self._index(row) is not None

    @property
    def runs(self) -> int:
        """Number of runs in the window, under any condition."""
        return len(self._kept) - self._start

    @property
    def spares(self) -> int:
        """Number of runs kept below the window, in case one of it is withdrawn."""
        return self._start

    @property
    def newest_ns(self) -> int | None:
        """End of the last run; None without a run."""
        return self._kept[-1].end_ns if self._kept else None

    @property
    def oldest_ns(self) -> float:
        """End of the first run or spare; infinity without one. Runs that ended earlier are not here."""
        return self._kept[0].end_ns if self._kept else inf

    @property
    def turnover(self) -> int:
        """Number of runs, not counting refused ones, that newer runs have replaced."""
        return self._start + self._forgotten - self.refused

    def rows(self) -> list[Row]:
        """Return the rows in the window, by (end time, run id)."""
        return self._kept[self._start :]

    def kept(self) -> list[Row]:
        """Return the rows in the window, and the spares before them."""
        return self._kept[:]

    def counts(self, row: Row) -> bool:
        """Return whether the row is in the window, and no spare below it."""
        at = self._index(row)
        return at is not None and at >= self._start

    # --- Changes ------------------------------------------------------------------------------------------------------

    def insert(self, row: Row) -> bool:
        """Take in the row of a closed run; False: it sorts below all rows worth keeping, and was refused."""
        kept = self._kept
        if not kept or kept[-1] < row:
            at = len(kept)
            kept.append(row)
        else:
            at = bisect_left(kept, row)
            kept.insert(at, row)
        self._open += row.run_id in self._reopenable
        if at <= self._start:
            self._start += 1  # `_move` lets it enter if the window begins there
        else:
            self.add(row)
        accepted = at >= self._move()
        self.refused += not accepted
        return accepted

    def remove(self, row: Row) -> None:
        """Remove a run that was withdrawn, or is about to be closed again; do nothing if it is not here."""
        at = self._index(row)
        if at is None:
            return
        if at >= self._start:
            self.evict(row)
        else:
            self._start -= 1
        del self._kept[at]
        self._drop([row])
        self._move()

    def settle(self, row: Row) -> None:
        """Note that a run is final: it is no longer in `reopenable`."""
        if self._index(row) is None:
            return
        self._open -= 1
        if self._final_ns is None or row.end_ns > self._final_ns:
            self._final_ns = row.end_ns
        self._drop_spent()

    def _index(self, row: Row) -> int | None:
        kept = self._kept
        at = bisect_left(kept, row)
        return at if at < len(kept) and kept[at].run_id == row.run_id else None

    def _move(self) -> int:
        """Let rows leave or return until the window begins where the rule says; return the number of rows dropped."""
        kept, begin = self._kept, self._rule.start(self._kept)
        while self._start < begin:
            self.evict(kept[self._start])
            self._start += 1
        while self._start > begin:
            self._start -= 1
            self.add(kept[self._start])
        return self._drop_spent()

    def _drop_spent(self) -> int:
        """Drop the spares that can never be in the window again; return their number."""
        spent = self._spent() if self._start else 0
        if spent:
            self._drop(self._kept[:spent])
            del self._kept[:spent]
            self._start -= spent
            self._forgotten += spent
        return spent

    def _spent(self) -> int:
        """Return the number of spares, from the first, above which n final rows are (and, with a period, that are too old)."""
        kept, most, reopenable, period_ns = self._kept, self._rule.n, self._reopenable, self._rule.period_ns
        horizon = None if period_ns is None or self._final_ns is None else self._final_ns - period_ns
        final = len(kept) - self._open
        if final < most and horizon is None:
            return 0
        for at in range(self._start):
            final -= kept[at].run_id not in reopenable
            if final < most and (horizon is None or kept[at].end_ns > horizon):
                return at
        return self._start

    def _drop(self, rows: list[Row]) -> None:
        self._open -= sum([row.run_id in self._reopenable for row in rows])
        self._dropped += rows
