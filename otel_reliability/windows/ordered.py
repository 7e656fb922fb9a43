"""The rows of a window and its spares in order: those that may change as they are, those that will not packed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable

from otel_reliability.model.row import Row
from otel_reliability.windows.store import PackedRows


class OrderedRows:
    """Rows by (end time, run id).

    A row is packed when neither it nor any before it will change any more, unless it is a spare already. So what a busy agent
    turns over within `assembly.reopen` is never packed, and what lies for long takes little room.
    """

    __slots__ = ("_blocked", "_fresh", "_number", "_packed")

    def __init__(self) -> None:
        self._packed = PackedRows()
        self._number = 0
        """How many are packed."""
        self._fresh: list[Row] = []
        self._blocked: dict[str, Row] | None = None
        """Rows that are settled and not packed, because one before them is not."""

    def __len__(self) -> int:
        return self._number + len(self._fresh)

    # --- Looking ------------------------------------------------------------------------------------------------------

    def end_ns(self, at: int) -> int:
        """When a run ended."""
        packed = self._number
        return self._fresh[at - packed].end_ns if at >= packed else self._packed.end_ns(at)

    def run_id(self, at: int) -> str:
        """Which run it is."""
        packed = self._number
        return self._fresh[at - packed].run_id if at >= packed else self._packed.run_id(at)

    def row(self, at: int) -> Row:
        """A row."""
        packed = self._number
        return self._fresh[at - packed] if at >= packed else self._packed.row(at)

    def rows(self, first: int = 0) -> list[Row]:
        """The rows from some place on."""
        packed = self._number
        return [*self._packed.rows(first), *self._fresh] if first < packed else self._fresh[first - packed :]

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
        fresh = self._fresh
        at = bisect_left(fresh, row)
        if at < len(fresh) and fresh[at].run_id == row.run_id:
            return self._number + at
        return self._packed.index(row) if not at else None

    def find(self, run_id: str) -> Row | None:
        """The row of a settled run."""
        row = None if self._blocked is None else self._blocked.get(run_id)
        if row is not None or not self._number:
            return row
        at = self._packed.find(run_id)
        return None if at is None else self._packed.row(at)

    # --- Coming and going ---------------------------------------------------------------------------------------------

    def insert(self, row: Row) -> int:
        """A row comes. Gives its place."""
        fresh = self._fresh
        at = len(fresh)
        if not at or row < fresh[-1]:
            if self._number and self._packed.place(row.end_ns, row.run_id) < self._number:
                self._number += 1
                return self._packed.insert(row)
            at = bisect_left(fresh, row)
        fresh.insert(at, row)
        return self._number + at

    def extend(self, rows: Iterable[Row], reopenable: Collection[str]) -> None:
        """Rows come that sort after all that are here, in their order."""
        for row in rows:
            self._fresh.append(row)
            if row.run_id not in reopenable:
                self.settled(len(self) - 1, row, 0, reopenable)

    def delete(self, first: int, number: int = 1) -> None:
        """So many rows go."""
        packed = self._number
        if first < packed:
            packed_gone = min(number, packed - first)
            self._packed.delete(first, packed_gone)
            self._number -= packed_gone
        gone = slice(max(first - packed, 0), max(first + number - packed, 0))
        if self._blocked:
            for row in self._fresh[gone]:
                self._blocked.pop(row.run_id, None)
        del self._fresh[gone]

    def settled(self, at: int, row: Row, start: int, reopenable: Collection[str]) -> None:
        """The row at this place will not change any more: pack what can be. The window begins at `start`."""
        packed = self._number
        if at < packed:
            return
        self._blocked = self._blocked or {}
        self._blocked[row.run_id] = row
        if start <= packed and self._fresh[0].run_id not in reopenable:
            self._pack(reopenable)

    def _pack(self, reopenable: Collection[str]) -> None:
        fresh = self._fresh
        number = next((at for at, row in enumerate(fresh) if row.run_id in reopenable), len(fresh))
        for row in fresh[:number]:
            self._packed.insert(row)
        self._number += number
        self._release(fresh[:number])
        del fresh[:number]

    def _release(self, rows: Iterable[Row]) -> None:
        if self._blocked is not None:
            for row in rows:
                self._blocked.pop(row.run_id, None)
            self._blocked = self._blocked or None
