"""The in-process door: one line beside the user's own exporters, and every recording span counts.

    provider.add_span_processor(ReliabilitySpanProcessor())

`on_end` takes what is needed of a span and appends it to a queue. The queue is emptied by whoever comes first: a collection of
metrics, `force_flush`, a reading, or, when it is full, the thread that ends the next root, one run at a time. No hook waits
for a lock, and no exception leaves one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import count
from typing import Final

from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import SpanContext

from otel_reliability.config import Settings
from otel_reliability.engine import Opened
from otel_reliability.model.run import CloseReason
from otel_reliability.model.span import AgentSpan
from otel_reliability.telemetry.capture import Capture, Queued
from otel_reliability.telemetry.guard import Guard
from otel_reliability.telemetry.live import PATIENCE, live_of
from otel_reliability.telemetry.options import settings_from

CAPACITY: Final = 4_096
"""Spans in the queue from which the threads of the host help, one run at every root they end."""
HARD_CAPACITY: Final = 8 * CAPACITY
"""Spans in the queue from which further ones are refused, and counted."""
STRIDE: Final = 256
"""Every so many spans a thread looks whether a deadline may have passed."""
HELPING: Final = 512
"""Spans that one thread takes from the queue at most, while a span of the host waits for it."""
MAX_OPEN: Final = 100_000
"""Spans noted as begun; beyond, the notes are dropped: then runs close by time."""

_ON_START: Final = Guard("ReliabilitySpanProcessor.on_start")
_ON_END: Final = Guard("ReliabilitySpanProcessor.on_end")
_FLUSH: Final = Guard("ReliabilitySpanProcessor.force_flush")
_SHUTDOWN: Final = Guard("ReliabilitySpanProcessor.shutdown")


class ReliabilitySpanProcessor(SpanProcessor):
    """Watches the spans of a `TracerProvider` and tells how reliable its agents are, through a `MeterProvider`.

    Args:
        settings: how to count; from the environment and `options` where absent.
        meter_provider: where the numbers go; the global one where absent, whether it is set before or after.
        options: settings by name: `window=50`, `metrics={"min_runs": 10}`.

    """

    def __init__(
        self, settings: Settings | None = None, *, meter_provider: MeterProvider | None = None, **options: object
    ) -> None:
        self._live = live_of(meter_provider, settings_from(options) if settings is None else settings)
        self._engine = self._live.engine
        self._stopped = False
        self.restart()
        self._live.attach(self)

    def restart(self) -> None:
        """Begin anew, as a forked child does."""
        self._capture = Capture(self._engine)
        self._queue: deque[Queued] = deque()
        self._fresh: dict[int, tuple[SpanContext, SpanContext | None]] = {}
        self._seen = count(1)

    # --- Hooks --------------------------------------------------------------------------------------------------------

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Note that a span is open: its run will not be closed before it ends."""
        with _ON_START:
            fresh, context = self._fresh, span.context
            if len(fresh) >= MAX_OPEN:
                fresh.clear()
            if context is not None:
                fresh[context.span_id] = (context, span.parent)

    def on_end(self, span: ReadableSpan) -> None:
        """Take what is needed of a span and leave at once."""
        with _ON_END:
            length, context, parent = len(self._queue), span.context, span.parent
            if context is not None:
                self._fresh.pop(context.span_id, None)
            if length >= HARD_CAPACITY or self._stopped:
                self._engine.count("refused", "shutdown" if self._stopped else "queue_full")
            elif (taken := self._capture.take(span, context, parent)) is not None:
                self._queue.append(taken)
            seen = next(self._seen)
            if length >= CAPACITY and (parent is None or parent.is_remote or length >= 2 * CAPACITY):
                self._help()
            elif not seen % STRIDE:
                self._look()
            elif seen == 1:
                self._live.begin()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Close every run and record it, so that the next collection has all there is."""
        with _FLUSH:
            wait = min(PATIENCE, timeout_millis / 1e3)
            return self.drain(wait) if self._live.exiting else self._live.flush(CloseReason.FLUSH, wait)
        return False

    def shutdown(self) -> None:
        """No span will come."""
        with _SHUTDOWN:
            if not self._stopped:
                self._stopped = True
                self._live.detach(self)

    # --- The queue ----------------------------------------------------------------------------------------------------

    @property
    def queued(self) -> tuple[int, int]:
        """Length and capacity of the queue."""
        return len(self._queue), CAPACITY

    def drain(self, wait: float) -> bool:
        """Hand the engine all that is queued, and tell it what is open."""
        opened = self._engine.opened(self._opened(), wait=wait)
        return opened and self._engine.receive(self._read(len(self._queue)), wait=wait)

    def _help(self) -> None:
        """The queue is full: take one run off it, if nobody else is at it."""
        self._engine.receive(self._read(HELPING, until_root=True), wait=0)
        if self._live.due():
            self._live.tick(0)

    def _look(self) -> None:
        """Meet deadlines that nobody else met, after taking in what came before them."""
        if self._live.due() and self._engine.opened(self._opened(), wait=0):
            self._engine.receive(self._read(HELPING), wait=0)
            self._live.tick(0)

    def _opened(self) -> Iterator[Opened]:
        """The spans that began since last asked and have not ended."""
        for _ in range(len(self._fresh)):
            try:
                _, (context, parent) = self._fresh.popitem()
            except KeyError:
                return
            parent_id = parent.span_id.to_bytes(8) if parent is not None else None
            yield context.trace_id.to_bytes(16), context.span_id.to_bytes(8), parent_id

    def _read(self, number: int, *, until_root: bool = False) -> Iterator[AgentSpan]:
        """Take spans off the queue and read them."""
        for _ in range(number):
            try:
                item = self._queue.popleft()
            except IndexError:
                return
            span = self._capture.read(item)
            if span is not None:
                yield span
                if until_root and span.parent_id is None:
                    return
