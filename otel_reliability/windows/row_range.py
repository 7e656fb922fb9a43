"""The rows of one window in order: those that count, and below them the spares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, MutableSequence
from functools import lru_cache
from typing import NamedTuple

from otel_reliability.config import WindowSettings
from otel_reliability.model.row import Row
from otel_reliability.windows.row_store import RowStore


class Rule(NamedTuple):
    """The rows a window holds: the n with the greatest (end time, run id); with a period p, those of them in (T − p, T].

    T is the greatest end time of the agent's runs. Time stands still while no run comes: the clock never empties a window.
    """

    n: int
    period_ns: int | None = None

    def start(self, rows: RowStore) -> int:
        """Return the index of the first row in the window."""
        begin = max(len(rows) - self.n, 0)
        if self.period_ns is None or not len(rows):
            return begin
        return max(begin, rows.after(rows.end_ns(len(rows) - 1) - self.period_ns))


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

    The window is the part of the sorted rows from `_start` on. Rows below are spares: they return when a run of the window is
    withdrawn. Only runs in `reopenable` can be withdrawn, so spares are kept until n final rows are above them, and, with a
    period, those that the window would hold if T were the latest end of a final run. Hence which rows count is a function of
    the rows, not of their order of arrival.

    A subclass defines what happens when a row enters (`add`) and leaves (`evict`). Rows that the window keeps no more are
    appended to `dropped`.
    """

    __slots__ = ("_dropped", "_final_ns", "_forgotten", "_kept", "_open", "_reopenable", "_rule", "_start", "refused")

    def __init__(self, rule: Rule, reopenable: Container[str], dropped: MutableSequence[Row]) -> None:
        self._rule = rule
        self._reopenable = reopenable
        self._dropped = dropped
        self._kept = RowStore()
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
        return self._kept.end_ns(len(self._kept) - 1) if len(self._kept) else None

    @property
    def turnover(self) -> int:
        """Number of runs, not counting refused ones, that newer runs have replaced."""
        return self._start + self._forgotten - self.refused

    def rows(self) -> list[Row]:
        """Return the rows in the window, by (end time, run id)."""
        return self._kept.rows(self._start)

    def kept(self) -> list[Row]:
        """Return the rows in the window, and the spares before them."""
        return self._kept.rows()

    def find(self, run_id: str, end_ns: int | None) -> Row | None:
        """Return the row of a run that ended then (None: at any time), in the window or a spare; None without one."""
        at = self._kept.find(run_id) if end_ns is None else self._kept.index(end_ns, run_id)
        return None if at is None else self._kept.row(at)

    def keeps(self, row: Row) -> bool:
        """Return whether a row is kept, in the window or as a spare."""
        return self._kept.index(row.end_ns, row.run_id) is not None

    def counts(self, row: Row) -> bool:
        """Return whether a row is in the window, and no spare."""
        at = self._kept.index(row.end_ns, row.run_id)
        return at is not None and at >= self._start

    # --- Changes ------------------------------------------------------------------------------------------------------

    def insert(self, row: Row) -> bool:
        """Insert the row of a closed run; False: it sorts below all rows worth keeping, and was refused."""
        at = self._kept.insert(row)
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
        at = self._kept.index(row.end_ns, row.run_id)
        if at is None:
            return
        if at >= self._start:
            self.evict(row)
        else:
            self._start -= 1
        self._drop(at, 1)
        self._move()

    def finalize(self, end_ns: int, run_id: str) -> None:
        """Note that a run is final: it is no longer in `reopenable`."""
        if self._kept.index(end_ns, run_id) is None:
            return
        self._open -= 1
        if self._final_ns is None or end_ns > self._final_ns:
            self._final_ns = end_ns
        self._drop_spent()

    def _move(self) -> int:
        """Let rows leave or return until the window begins where the rule says; return the number of rows dropped."""
        kept, begin = self._kept, self._rule.start(self._kept)
        while self._start < begin:
            self.evict(kept.row(self._start))
            self._start += 1
        while self._start > begin:
            self._start -= 1
            self.add(kept.row(self._start))
        return self._drop_spent()

    def _drop_spent(self) -> int:
        """Drop the spares that can never be in the window again; return their number."""
        spent = self._spent() if self._start else 0
        if spent:
            self._drop(0, spent)
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
            final -= kept.run_id(at) not in reopenable
            if final < most and (horizon is None or kept.end_ns(at) > horizon):
                return at
        return self._start

    def _drop(self, first: int, number: int) -> None:
        rows = self._kept.rows(first, first + number)
        self._open -= sum([row.run_id in self._reopenable for row in rows])
        self._dropped.extend(rows)
        self._kept.delete(first, number)
