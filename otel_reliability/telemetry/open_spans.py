"""Which spans of the host are open: what has begun and has not ended, told once to whoever keeps their runs open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from opentelemetry.trace import SpanContext

from otel_reliability.engine import Opened
from otel_reliability.sources.batch import SPAN_ID_BYTES, TRACE_ID_BYTES
from otel_reliability.telemetry.queues import queue

MAX_OPEN: Final = 100_000
"""Spans that are noted as begun; beyond, the oldest are forgotten: then their runs close by time."""


class OpenSpans:
    """Spans that have begun, by id, with what stands above each: its parent's context, or its own where it has no parent.

    Any thread may add to `begun`, in one call: the id and what stands above. All else is for one thread at a time. Nothing is
    looked up, and nothing taken away, where spans begin and end: that is left to whoever reads them.
    """

    def __init__(self) -> None:
        self.begun = queue(2 * MAX_OPEN)
        self._fresh: dict[int, SpanContext] = {}
        self._told: dict[int, SpanContext] = {}

    def __len__(self) -> int:
        return len(self.begun) // 2 + len(self._fresh) + len(self._told)

    def settle(self) -> None:
        """Take in what has begun. Whoever does so before it looks at what has ended finds that all of it had begun."""
        fresh, pop = self._fresh, self.begun.popleft
        try:
            while True:
                span_id = pop()
                if type(span_id) is int:  # else a signal handler's exception broke in between the two
                    fresh[span_id] = pop()
        except IndexError:
            pass
        for notes in (fresh, self._told):
            while len(notes) > MAX_OPEN:
                del notes[next(iter(notes))]

    def end(self, span_id: int) -> SpanContext | None:
        """A span has ended: what stands above it, None where that was forgotten."""
        return self._fresh.pop(span_id, None) or self._told.pop(span_id, None)

    def tell(self) -> Iterator[Opened]:
        """The spans that began since last asked and have not ended."""
        fresh, told = self._fresh, self._told
        while fresh:
            span_id, above = fresh.popitem()
            told[span_id] = above
            parent_id = None if above[1] == span_id else above[1].to_bytes(SPAN_ID_BYTES)
            yield above[0].to_bytes(TRACE_ID_BYTES), span_id.to_bytes(SPAN_ID_BYTES), parent_id
