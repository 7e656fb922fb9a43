"""The rows of a window and its spares in order: those that may change as they are, those that will not packed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable

from otel_reliability.model.row import Row
from otel_reliability.windows.store import PackedRows


class OrderedRows:
    """Rows by (end time, run id): `packed` of them packed, and then the `fresh` ones.

    A row is packed when neither it nor any before it will change any more, unless it is a spare already. So what a busy agent
    turns over within `assembly.reopen` is never packed, and what lies for long takes little room.
    """

    __slots__ = ("_blocked", "_leaving", "_store", "fresh", "packed")

    def __init__(self) -> None:
        self.packed = 0
        self.fresh: list[Row] = []
        self._store = PackedRows()
        self._blocked: dict[str, Row] | None = None
        """Rows that are settled and not packed, because one before them is not."""
        self._leaving: Row | None = None
        """The first row, if it is packed and was asked for to leave."""

    def __len__(self) -> int:
        return self.packed + len(self.fresh)

    # --- Looking ------------------------------------------------------------------------------------------------------

    def end_ns(self, at: int) -> int:
        """When a run ended."""
        packed = self.packed
        return self.fresh[at - packed].end_ns if at >= packed else self._store.end_ns(at)

    def run_id(self, at: int) -> str:
        """Which run it is."""
        packed = self.packed
        return self.fresh[at - packed].run_id if at >= packed else self._store.run_id(at)

    def row(self, at: int) -> Row:
        """A row."""
        packed = self.packed
        return self.fresh[at - packed] if at >= packed else self._store.row(at)

    def leaving(self, at: int) -> Row:
        """A row that leaves the window. (The first will soon be asked for again, to be let go of.)"""
        if at or not self.packed:
            return self.row(at)
        row = self._leaving = self._store.row(0)
        return row

    def rows(self, first: int = 0) -> list[Row]:
        """The rows from some place on."""
        packed = self.packed
        return [*self._store.rows(first), *self.fresh] if first < packed else self.fresh[first - packed :]

    def ends_before(self, row: Row) -> bool:
        """Whether all rows, none of them fresh, sort before that one."""
        return not self.packed or self._store.place(row.end_ns, row.run_id) == self.packed

    def beyond(self, end_ns: int) -> int:
        """The place of the first row that ended later than then."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self.end_ns(middle) > end_ns:
                high = middle
            else:
                low = middle + 1
        return low

    def index(self, row: Row) -> int | None:
        """The place of a row that is here."""
        fresh = self.fresh
        at = bisect_left(fresh, row)
        if at < len(fresh) and fresh[at].run_id == row.run_id:
            return self.packed + at
        return self._store.index(row) if not at else None

    def find(self, run_id: str) -> Row | None:
        """The row of a settled run."""
        row = None if self._blocked is None else self._blocked.get(run_id)
        if row is not None or not self.packed:
            return row
        at = self._store.find(run_id)
        return None if at is None else self._store.row(at)

    # --- Coming and going ---------------------------------------------------------------------------------------------

    def insert(self, row: Row) -> int:
        """A row comes. Gives its place."""
        fresh = self.fresh
        at = len(fresh)
        if not at or row < fresh[-1]:
            if self.packed and self._store.place(row.end_ns, row.run_id) < self.packed:
                self.packed += 1
                self._leaving = None
                return self._store.insert(row)
            at = bisect_left(fresh, row)
        fresh.insert(at, row)
        return self.packed + at

    def extend(self, rows: Iterable[Row], reopenable: Collection[str]) -> None:
        """Rows come that sort after all that are here, in their order."""
        for row in rows:
            self.fresh.append(row)
            if row.run_id not in reopenable:
                self.settled(len(self) - 1, row, 0, reopenable)

    def take(self, number: int) -> list[Row]:
        """So many rows go from the beginning: these."""
        if self.packed:
            first = self._leaving or self._store.row(0)
            gone = [first, *[self.row(at) for at in range(1, number)]]
            self.delete(0, number)
            return gone
        gone, blocked = self.fresh[:number], self._blocked
        del self.fresh[:number]
        if blocked:
            for row in gone:
                blocked.pop(row.run_id, None)
        return gone

    def delete(self, first: int, number: int = 1) -> None:
        """So many rows go."""
        packed, self._leaving = self.packed, None
        if first < packed:
            packed_gone = min(number, packed - first)
            self._store.delete(first, packed_gone)
            self.packed -= packed_gone
        gone = slice(max(first - packed, 0), max(first + number - packed, 0))
        blocked = self._blocked
        if blocked:
            for row in self.fresh[gone]:
                blocked.pop(row.run_id, None)
        del self.fresh[gone]

    def settled(self, at: int, row: Row, start: int, reopenable: Collection[str]) -> None:
        """The row at this place will not change any more: pack what can be. The window begins at `start`."""
        if at < self.packed:
            return
        first, may_pack = self.fresh[0], start <= self.packed
        if first is not row or not may_pack:
            blocked = self._blocked
            if blocked is None:
                blocked = self._blocked = {}
            blocked[row.run_id] = row
        if may_pack and first.run_id not in reopenable:
            self._pack(reopenable)

    def _pack(self, reopenable: Collection[str]) -> None:
        fresh, append, blocked = self.fresh, self._store.append, self._blocked
        number = 0
        for row in fresh:
            if row.run_id in reopenable:
                break
            append(row)
            number += 1
            if blocked:
                blocked.pop(row.run_id, None)
        self.packed += number
        self._blocked = blocked or None
        del fresh[:number]
