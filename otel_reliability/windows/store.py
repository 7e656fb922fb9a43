"""Rows that will not change any more, in order, each in as few bytes as can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import nan
from struct import Struct, error
from typing import Any, Final, NamedTuple

from otel_reliability.model.row import Row
from otel_reliability.windows.ids import SIZE, Ids
from otel_reliability.windows.kind_column import KindColumn
from otel_reliability.windows.kinds import kind_of
from otel_reliability.windows.marks import Marks

_NONE: Final = -(2**31)
_LOW: Final = 2**32 - 1
_RECORD: Final = Struct(f"=q{SIZE}sIHIHid")
_ORDER: Final = Struct("=q")
_WIDTH: Final = _RECORD.size
_SMALL: Final = 2**14
"""Bytes that are copied in no time."""
_MANY: Final = 512
"""Rows among which none is looked for that is not there."""

_tuple: Final[Callable[..., Any]] = tuple.__new__  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]


class Rest(NamedTuple):
    """What few rows have: confidence, money, a session, scores."""

    confidence: float | None
    cost: float | None
    session_id: str | None
    signals: tuple[tuple[str, float], ...]


NO_REST: Final = Rest(None, None, None, ())


class PackedRows:
    """Rows by (end time, run id), as 56 bytes of numbers, and one that says of which kind they are and which path they took.

    A row is made anew each time it is asked for. One whose numbers do not fit (it took more than three days, or two thousand
    million tokens) is kept as it is.
    """

    __slots__ = ("_data", "_ids", "_kinds", "_marks", "_rests")

    def __init__(self) -> None:
        self._data = bytearray()
        self._ids = Ids()
        self._kinds = KindColumn()
        self._marks: Marks | None = None
        self._rests: list[Rest | Row | None] | None = None

    def __len__(self) -> int:
        return len(self._kinds)

    def __iter__(self) -> Iterator[Row]:
        return (self.row(at) for at in range(len(self)))

    # --- Looking ------------------------------------------------------------------------------------------------------

    def end_ns(self, at: int) -> int:
        """When a run ended."""
        if self._rests is not None:
            rest = self._rests[at]
            if isinstance(rest, Row):
                return rest.end_ns
        return _ORDER.unpack_from(self._data, at * _WIDTH)[0]

    def run_id(self, at: int) -> str:
        """Which run it is."""
        return self._ids.unpack(self._packed(at))

    def row(self, at: int) -> Row:
        """The row itself."""
        rest = NO_REST if self._rests is None else self._rests[at] or NO_REST
        if isinstance(rest, Row):
            return rest
        end_ns, packed, took, far_took, latency, far_latency, tokens, pressure = _RECORD.unpack_from(
            self._data, at * _WIDTH
        )
        kind = self._kinds.kind(at).row
        fields = (
            end_ns,
            self._ids.unpack(packed),
            end_ns - took - (far_took << 32),
            *kind[3:7],
            self._kinds.path(at),
            *kind[8:11],
            pressure if pressure == pressure else None,  # noqa: PLR0124 (not a number is none)
            kind.model_calls,
            None if tokens == _NONE else tokens,
            latency + (far_latency << 32) - 1 if latency or far_latency else None,
            kind.outcome,
            rest.confidence,
            rest.cost,
            kind.violations,
            rest.session_id,
            rest.signals,
            *kind[21:],
        )
        row: Row = _tuple(Row, fields)
        return row

    def rows(self, first: int = 0) -> list[Row]:
        """The rows from some place on."""
        return [self.row(at) for at in range(first, len(self))]

    def place(self, end_ns: int, run_id: str) -> int:
        """Where a row stands or would stand; most come last."""
        low, high = 0, len(self)
        if not high or self._is_before(high - 1, end_ns, run_id):
            return high
        while low < high:
            middle = (low + high) // 2
            if self._is_before(middle, end_ns, run_id):
                low = middle + 1
            else:
                high = middle
        return low

    def index(self, row: Row) -> int | None:
        """The place of a row that is here."""
        at = self.place(row.end_ns, row.run_id)
        return at if at < len(self) and self.end_ns(at) == row.end_ns and self.run_id(at) == row.run_id else None

    def find(self, run_id: str) -> int | None:
        """The place of the row of that run, looking through all, where it may be among them."""
        packed, begin = Ids.known_as(run_id), 0
        if self._marks is not None and not self._marks.may_have(packed):
            return None
        while (found := self._data.find(packed, begin)) >= 0:
            if found % _WIDTH == _ORDER.size:
                return found // _WIDTH
            begin = found + 1
        return None

    # --- Coming and going ---------------------------------------------------------------------------------------------

    def insert(self, row: Row) -> int:
        """A row comes. Gives its place."""
        at = self.place(row.end_ns, row.run_id)
        self._put(at, row)
        return at

    def append(self, row: Row) -> None:
        """A row comes that sorts after all that are here."""
        self._put(len(self._kinds), row)

    def delete(self, first: int, number: int = 1) -> None:
        """So many rows go."""
        last = first + number
        for at in range(first, last):
            packed = self._packed(at)
            self._ids.release(packed)
            if self._marks is not None:
                self._marks.discard(packed)
        del self._data[first * _WIDTH : last * _WIDTH]
        if len(self._data) <= _SMALL:
            self._data = bytearray(self._data)  # without the eighth more that it took to grow
        self._kinds.delete(first, last)
        if len(self) < _MANY // 2:
            self._marks = None
        if self._rests is not None:
            del self._rests[first:last]

    def _put(self, at: int, row: Row) -> None:
        packed, number = self._ids.pack(row.run_id), len(self._kinds)
        record, rest = _record(row, packed)
        if at == number:
            self._data += record
        else:
            self._data[at * _WIDTH : at * _WIDTH] = record
        self._kinds.insert(at, kind_of(row), row.path)
        if rest is not None and self._rests is None:
            self._rests = list[Rest | Row | None]([None] * number)
        if self._rests is not None:
            self._rests.insert(at, rest)
        if number >= _MANY or self._marks is not None:
            self._mark(packed)

    def _mark(self, packed: bytes) -> None:
        """One of many has come."""
        if self._marks is None or len(self) > self._marks.most:
            self._marks = Marks(self._packed(at) for at in range(len(self)))
        else:
            self._marks.add(packed)

    # --- Order --------------------------------------------------------------------------------------------------------

    def _packed(self, at: int) -> bytes:
        begin = at * _WIDTH + _ORDER.size
        return bytes(self._data[begin : begin + SIZE])

    def _is_before(self, at: int, end_ns: int, run_id: str) -> bool:
        ended = self.end_ns(at)
        return ended < end_ns or (ended == end_ns and self.run_id(at) < run_id)


def _record(row: Row, packed: bytes) -> tuple[bytes, Rest | Row | None]:
    """The numbers of a row, and what else is its own; the row itself where its numbers do not fit."""
    tokens, pressure = row.tokens, row.pressure
    took, latency = row.end_ns - row.start_ns, 0 if row.latency_ns is None else row.latency_ns + 1
    try:
        record = _RECORD.pack(
            row.end_ns,
            packed,
            took & _LOW,
            took >> 32,
            latency & _LOW,
            latency >> 32,
            _NONE if tokens is None else tokens,
            nan if pressure is None else pressure,
        )
    except (error, OverflowError):
        return _RECORD.pack(0, packed, 0, 0, 0, 0, 0, 0.0), row
    if tokens == _NONE or row.latency_ns == -1:  # what stands for none
        return record, row
    if row.confidence is None and row.cost is None and row.session_id is None and not row.signals:
        return record, None
    return record, Rest(row.confidence, row.cost, row.session_id, row.signals)
