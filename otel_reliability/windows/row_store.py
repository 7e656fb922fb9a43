"""Rows in order, and those of them that a window holds.

A row is kept in about 140 bytes: an agent keeps hundreds, and metrics read a row only when it enters or leaves. The order of
runs is (end time, run id), as bytes that compare alike and from which both can be read.
"""

from __future__ import annotations

import marshal
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Container, MutableSequence
from operator import itemgetter
from typing import Any, Final, TypeAlias

from otel_reliability.config import WindowSettings
from otel_reliability.model.row import Path, Row

Facts: TypeAlias = tuple[Any, ...]

END_BYTES: Final = 10
_BIAS: Final = 1 << 79
"""Added to an end time, so that earlier ends than 1970 compare as they should."""
_HEX_ID, _TEXT_ID = b"\1", b"\2"
_HEX_LENGTH: Final = 49
_TRACE_LENGTH: Final = 32
_HEX_END: Final = END_BYTES + 1 + 24
_STOP: Final = b"\0"
"""What ends the id of text, so that a shorter id compares as the lesser."""

MAX_SHARED: Final = 8_192
"""Distinct facts that rows to come can share; rows that are kept keep theirs."""

_OWN: Final = ("pressure", "tokens", "latency_ns", "confidence", "cost", "session_id", "signals", "step_growth")
"""Fields in which nearly every two rows differ, besides their times, id and path."""
_FACTS: Final = tuple(name for name in Row._fields if name not in {"end_ns", "run_id", "start_ns", "path", *_OWN})
_own = itemgetter(*map(Row._fields.index, _OWN))
_facts = itemgetter(*map(Row._fields.index, _FACTS))
_in_order = itemgetter(*map(("end_ns", "run_id", "start_ns", "path", *_OWN, *_FACTS).index, Row._fields))
_shared: dict[Facts, Facts] = {}


class RowStore:
    """Rows sorted by (end time, run id).

    Of each row it keeps its path, the facts that it shares with other rows, and a record: its order and its own values.

    >>> from otel_reliability.testing import row
    >>> store, first, second = RowStore(), row(["search"], 1), row(["book"], 2)
    >>> (
    ...     store.insert(second, order_of(second.end_ns, second.run_id)),
    ...     store.insert(first, order_of(first.end_ns, first.run_id)),
    ... )
    (0, 0)
    >>> store.rows() == [first, second], store.index(order_of(second.end_ns, second.run_id))
    (True, 1)
    """

    __slots__ = ("_facts", "_paths", "_records")

    def __init__(self) -> None:
        self._records: list[bytes] = []
        self._paths: list[Path | None] = []
        self._facts: list[Facts] = []

    def __len__(self) -> int:
        return len(self._records)

    def insert(self, row: Row, order: bytes) -> int:
        """Insert a row of this order (`order_of` its end and id); return its index."""
        record = order + marshal.dumps((row.end_ns - row.start_ns, *_own(row)))
        records = self._records
        at = len(records) if not records or records[-1] < record else bisect_left(records, record)
        records.insert(at, record)
        self._paths.insert(at, row.path)
        self._facts.insert(at, _share(_facts(row)))
        return at

    def index(self, order: bytes) -> int | None:
        """Return the index of the row of this order; None without one."""
        at = bisect_left(self._records, order)
        return at if at < len(self._records) and self._records[at].startswith(order) else None

    def find(self, run_id: str) -> int | None:
        """Return the index of the row of a run, whenever it ended; None without one. Takes time for every row."""
        wanted = id_bytes(run_id)
        return next((at for at, record in enumerate(self._records) if record.startswith(wanted, END_BYTES)), None)

    def after(self, end_ns: int) -> int:
        """Return the index of the first row that ended later."""
        return bisect_left(self._records, end_bytes(end_ns + 1))

    def end_ns(self, at: int) -> int:
        """Return the end time of a row."""
        return end_in(self._records[at])

    def run_id(self, at: int) -> str:
        """Return the run id of a row."""
        return run_id_in(self._records[at])[0]

    def row(self, at: int) -> Row:
        """Return a row."""
        record = self._records[at]
        run_id, begin = run_id_in(record)
        lasted, *own = marshal.loads(record[begin:])  # noqa: S302 (we wrote it)
        end_ns = end_in(record)
        return Row._make(_in_order((end_ns, run_id, end_ns - lasted, self._paths[at], *own, *self._facts[at])))

    def rows(self, first: int = 0, last: int | None = None) -> list[Row]:
        """Return the rows from an index on, up to another."""
        return [self.row(at) for at in range(first, len(self) if last is None else last)]

    def delete(self, first: int, number: int = 1) -> None:
        """Delete so many rows."""
        gone = slice(first, first + number)
        del self._records[gone], self._paths[gone], self._facts[gone]


def _share(facts: Facts) -> Facts:
    """Return equal facts that other rows have, if there are any."""
    found = _shared.get(facts)
    if found is None:
        if len(_shared) >= MAX_SHARED:
            _shared.clear()
        found = _shared[facts] = facts
    return found


def order_of(end_ns: int, run_id: str) -> bytes:
    """Return the bytes of a run's order: 35 for the id of a trace and a span in lower-case hexadecimal, more for any other.

    >>> order_of(5, "b") < order_of(6, "a"), order_of(5, "a") < order_of(5, "aa")
    (True, True)
    """
    return end_bytes(end_ns) + id_bytes(run_id)


def end_bytes(end_ns: int) -> bytes:
    """Return the part of an order that holds the end: it compares as less than any order of the same end."""
    return (end_ns + _BIAS).to_bytes(END_BYTES)


def id_bytes(run_id: str) -> bytes:
    """Return the part of an order that holds the id."""
    if len(run_id) == _HEX_LENGTH and run_id[_TRACE_LENGTH] == "-" and run_id == run_id.lower():
        try:
            return _HEX_ID + bytes.fromhex(run_id[:_TRACE_LENGTH] + run_id[_TRACE_LENGTH + 1 :])
        except ValueError:
            pass
    return _TEXT_ID + run_id.encode("utf-8", "surrogatepass") + _STOP


def end_in(record: bytes) -> int:
    """Return the end time (ns) of bytes that begin with an order."""
    return int.from_bytes(record[:END_BYTES]) - _BIAS


def run_id_in(record: bytes) -> tuple[str, int]:
    """Return the run id of bytes that begin with an order, and the length of the order.

    >>> run_id_in(order_of(7, f"{'0af7' * 8}-{'b7ad' * 4}") + b"more")
    ('0af70af70af70af70af70af70af70af7-b7adb7adb7adb7ad', 35)
    """
    if record[END_BYTES] == _HEX_ID[0]:
        return record[END_BYTES + 1 : _HEX_END].hex("-", -16), _HEX_END
    stop = record.index(_STOP, END_BYTES + 1)
    return record[END_BYTES + 1 : stop].decode("utf-8", "surrogatepass"), stop + 1


# --- Windows --------------------------------------------------------------------------------------------------------------


class RowRange(ABC):
    """The runs of one agent that are in one window now.

    They are the n with the greatest (end time, run id); with a period p, those of them in (T − p, T], T being the greatest end of
    the agent's runs. Time stands still while no run comes: the clock never empties a window.

    The window is the part of the sorted rows from `_start` on. Rows below are spares: they return when a run of the window is
    withdrawn. Only runs in `reopenable` can be withdrawn, so spares are kept until n final rows are above them, and, with a
    period, those that the window would hold if T were the latest end of a final run. Hence which rows count is a function of
    the rows, not of their order of arrival.

    A subclass defines what happens when a row enters (`add`) and leaves (`evict`). Rows that the window keeps no more are
    appended to `dropped`.
    """

    __slots__ = (
        "_dropped",
        "_final_ns",
        "_forgotten",
        "_kept",
        "_last",
        "_open",
        "_period_ns",
        "_reopenable",
        "_start",
        "refused",
    )

    def __init__(
        self, window: WindowSettings, max_rows: int, reopenable: Container[str], dropped: MutableSequence[Row]
    ) -> None:
        self._last = max_rows if window.last is None else min(window.last, max_rows)
        self._period_ns = None if window.period is None else round(window.period * 1e9)
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

    def find(self, run_id: str, order: bytes | None = None) -> Row | None:
        """Return the row of a run of that order (None: whatever its end), in the window or a spare; None without one."""
        at = self._kept.find(run_id) if order is None else self._kept.index(order)
        return None if at is None else self._kept.row(at)

    def keeps(self, order: bytes) -> bool:
        """Return whether the row of this order is kept, in the window or as a spare."""
        return self._kept.index(order) is not None

    def counts(self, row: Row) -> bool:
        """Return whether a row is in the window, and no spare."""
        at = self._kept.index(order_of(row.end_ns, row.run_id))
        return at is not None and at >= self._start

    # --- Changes ------------------------------------------------------------------------------------------------------

    def insert(self, row: Row, order: bytes | None = None) -> bool:
        """Insert the row of a closed run; False: it sorts below all rows worth keeping, and was refused.

        `order` is its order, where that is known already.
        """
        at = self._kept.insert(row, order or order_of(row.end_ns, row.run_id))
        self._open += row.run_id in self._reopenable
        if at <= self._start:
            self._start += 1  # `_move` lets it enter if the window begins there
        else:
            self.add(row)
        accepted = at >= self._move()
        self.refused += not accepted
        return accepted

    def remove(self, order: bytes) -> None:
        """Remove the run of this order, which was withdrawn, or is about to be closed again; do nothing if it is not here."""
        at = self._kept.index(order)
        if at is None:
            return
        if at >= self._start:
            self.evict(self._kept.row(at))
        else:
            self._start -= 1
        self._drop(at, 1)
        self._move()

    def finalize(self, order: bytes) -> None:
        """Note that the run of this order is final: it is no longer in `reopenable`."""
        if self._kept.index(order) is None:
            return
        self._open -= 1
        end_ns = end_in(order)
        self._final_ns = end_ns if self._final_ns is None else max(end_ns, self._final_ns)
        self._drop_spent()

    def _move(self) -> int:
        """Let rows leave or return until the window begins where it should; return the number of rows dropped."""
        kept, begin = self._kept, self._begin()
        while self._start < begin:
            self.evict(kept.row(self._start))
            self._start += 1
        while self._start > begin:
            self._start -= 1
            self.add(kept.row(self._start))
        return self._drop_spent()

    def _begin(self) -> int:
        """Return the index of the first row that should be in the window."""
        kept = self._kept
        begin = max(len(kept) - self._last, 0)
        if self._period_ns is None or not len(kept):
            return begin
        return max(begin, kept.after(kept.end_ns(len(kept) - 1) - self._period_ns))

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
        kept, most, reopenable, period_ns = self._kept, self._last, self._reopenable, self._period_ns
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
