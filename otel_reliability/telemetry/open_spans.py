"""Spans that have started and not ended: their runs must not be closed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from opentelemetry.trace import SpanContext

from otel_reliability.engine import Opened
from otel_reliability.sources.batch import SPAN_ID_BYTES, TRACE_ID_BYTES

MAX_OPEN: Final = 100_000
"""Started spans that are remembered. Beyond, the oldest are forgotten, and their runs close by
time.
"""


class OpenSpans:
    """Spans that have started and not ended, by id: their runs must not be closed.

    Each has its parent's context, or its own where it has no parent. Any thread may extend
    `started` by an id and a context, in one call. Everything else is for one thread at a time: the
    hooks look nothing up and remove nothing.
    """

    def __init__(self) -> None:
        self.started: deque[int | SpanContext] = deque(maxlen=2 * MAX_OPEN)
        self._new: dict[int, SpanContext] = {}
        self._reported: dict[int, SpanContext] = {}

    def __len__(self) -> int:
        return len(self.started) // 2 + len(self._new) + len(self._reported)

    def update(self) -> None:
        """Read `started`. Every span that ended before this call is known to have
        started after it.
        """
        new = self._new
        pop = self.started.popleft
        try:
            while True:
                span_id = pop()
                # No number: the exception of a signal handler came between the two pops.
                if isinstance(span_id, int):
                    new[span_id] = pop()  # pyright: ignore[reportArgumentType]
        except IndexError:
            pass
        for spans in (new, self._reported):
            while len(spans) > MAX_OPEN:
                del spans[next(iter(spans))]

    def end(self, span_id: int) -> SpanContext | None:
        """Remove an ended span and return the context that was noted at its start; None if it was
        forgotten.
        """
        return self._new.pop(span_id, None) or self._reported.pop(span_id, None)

    @property
    def has_new(self) -> bool:
        """True if spans that have started and not ended wait to be reported."""
        return bool(self._new)

    def report(self) -> Iterator[Opened]:
        """Yield the spans that have started since the last call and have not ended."""
        new = self._new
        reported = self._reported
        while new:
            span_id, above = new.popitem()
            reported[span_id] = above
            parent_id = None if above[1] == span_id else above[1].to_bytes(SPAN_ID_BYTES)
            yield above[0].to_bytes(TRACE_ID_BYTES), span_id.to_bytes(SPAN_ID_BYTES), parent_id
