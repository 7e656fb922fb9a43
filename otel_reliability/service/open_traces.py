"""Which stored spans are still needed: those of traces whose runs are not all final."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Protocol

from otel_reliability.config import Settings
from otel_reliability.model.span import TraceId
from otel_reliability.service.parts import ClosedTraces

MARGIN_S = 1.0
"""Seconds after `linger` when a trace without runs is certainly put aside."""


class Holds(Protocol):
    """The engine, or an assembler, as far as open traces go."""

    def holds(self, trace_id: TraceId) -> bool: ...


class _Stored:
    """The rows in which the spans of a trace are stored, and when the last came."""

    __slots__ = ("last", "rows")

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.last = 0.0


class OpenTraces:
    """The rows of stored spans by trace. `due`: traces of which runs have become final, or were withdrawn, since `over`.

    A trace that grows stands in `_new`, in the order of arrival. When it has lingered it has runs, and moves to `_old` until
    they are final, or it has none, and its spans go.
    """

    def __init__(self, engine: Holds, closed: ClosedTraces, settings: Settings) -> None:
        self.due: dict[TraceId, None] = {}
        self._engine, self._closed = engine, closed
        self._linger = settings.assembly.linger + MARGIN_S
        self._wait = settings.assembly.idle_timeout + settings.assembly.reopen
        self._new: OrderedDict[TraceId, _Stored] = OrderedDict()
        self._old: OrderedDict[TraceId, _Stored] = OrderedDict()
        self._firsts: OrderedDict[int, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._new) + len(self._old)

    @property
    def first(self) -> float:
        """The first row that is needed; infinite where there is none."""
        return next(iter(self._firsts), float("inf"))

    def add(self, trace_id: TraceId, row: int, now: float) -> None:
        """Note a row of spans of a trace. Rows only rise."""
        stored = self._new.pop(trace_id, None) or self._old.pop(trace_id, None) or _Stored()
        if not stored.rows:
            self._firsts[row] = None
        stored.rows.append(row)
        stored.last = now
        self._new[trace_id] = stored

    def over(self, now: float) -> Iterator[int]:
        """Yield the rows that are needed no longer, once."""
        due, self.due = self.due, {}
        for kept, wait in ((self._new, self._linger), (self._old, self._wait)):
            while kept:
                trace_id, stored = next(iter(kept.items()))
                if stored.last > now - wait:
                    break
                del kept[trace_id]
                if wait == self._wait:
                    stored.last = now
                self._old[trace_id] = stored
                due[trace_id] = None
        for trace_id in due:
            self._closed.change(trace_id)
            if not self._engine.holds(trace_id):
                stored = self._old.pop(trace_id, None) or self._new.pop(trace_id, None)
                if stored is not None:
                    del self._firsts[stored.rows[0]]
                    yield from stored.rows
