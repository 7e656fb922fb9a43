"""Rows in order, each in about 140 bytes: an agent keeps hundreds, and metrics read a row only when it enters or leaves.

The order of runs is (end time, run id), as bytes that compare alike and from which both can be read.
"""

from __future__ import annotations

import marshal
from bisect import bisect_left
from operator import itemgetter
from typing import Any, Final, TypeAlias

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
    >>> store.insert(second), store.insert(first)
    (0, 0)
    >>> store.rows() == [first, second], store.index(second.end_ns, second.run_id)
    (True, 1)
    """

    __slots__ = ("_facts", "_paths", "_records")

    def __init__(self) -> None:
        self._records: list[bytes] = []
        self._paths: list[Path | None] = []
        self._facts: list[Facts] = []

    def __len__(self) -> int:
        return len(self._records)

    def insert(self, row: Row) -> int:
        """Insert a row; return its index."""
        own = (row.end_ns - row.start_ns, *_own(row))
        record = order_of(row.end_ns, row.run_id) + marshal.dumps(own)
        facts = _facts(row)
        records = self._records
        at = len(records) if not records or records[-1] < record else bisect_left(records, record)
        records.insert(at, record)
        self._paths.insert(at, row.path)
        self._facts.insert(at, _share(facts))
        return at

    def index(self, end_ns: int, run_id: str) -> int | None:
        """Return the index of the row of a run; None without one."""
        order = order_of(end_ns, run_id)
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
