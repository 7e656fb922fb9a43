"""The in-process door: one line beside the user's own exporters, and every recording span counts.

    provider.add_span_processor(ReliabilitySpanProcessor())

`on_end` takes what is needed of a span and appends it to a queue. The queue is emptied by whoever comes first: a collection of
metrics, `force_flush`, a reading, or, when it is full, the thread that ends the next root, one run at a time. No hook waits
for a lock, and no exception leaves one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from otel_reliability.config import Settings
from otel_reliability.model.run import CloseReason
from otel_reliability.model.span import AgentSpan
from otel_reliability.sources.batch import LATEST_NS
from otel_reliability.telemetry.capture import Capture
from otel_reliability.telemetry.guard import Guard
from otel_reliability.telemetry.live import PATIENCE, live_of
from otel_reliability.telemetry.options import settings_from

CAPACITY: Final = 4_096
"""Spans in the queue from which the threads of the host help, one run at every root they end."""
HARD_CAPACITY: Final = 8 * CAPACITY
"""Spans in the queue from which further ones are refused, and counted."""
STRIDE: Final = 64
"""Every so many spans a thread looks whether a deadline may have passed."""
HELPING: Final = 512
"""Spans, ordinary ones and others, so many of each, that one thread takes from the queue at most while a span waits for it."""

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
        self._queue = Capture(self._engine)
        self._begun, self._ordinary = self._queue.begun, self._queue.ordinary
        self._hindered = self._stopped

    # --- Hooks --------------------------------------------------------------------------------------------------------

    # These two are called for every span: a `try` costs nothing there, a `with` a twentieth of what they may take. They look at
    # fields where the SDK keeps them, under their names with an underscore: a property is a call.

    def on_start(self, span: Any, parent_context: Context | None = None) -> None:
        """Note that a span is open: its run will not be closed before it ends."""
        try:
            context, parent = span._context, span._parent
            self._begun.extend((context[1], context if parent is None else parent))
        except (AttributeError, TypeError):  # no span as the SDK makes them
            with _ON_START:
                self._queue.begin(span.context, span.parent)

    def on_end(self, span: Any) -> None:
        """Take what is needed of a span and leave at once. Of one that is ordinary at a glance that is its id."""
        try:
            ordinary = self._ordinary
            if (
                ordinary.keys.issuperset(span._attributes._dict)
                and span._name in ordinary.names
                and span._instrumentation_scope._name in ordinary.scopes
                and not span._events._dq
                and (span._parent is not None or not span._links._dq)
                and ordinary.since <= span._start_time <= span._end_time <= LATEST_NS
                and not self._hindered
            ):
                ended = ordinary.ended
                ended.append(span._context[1])
                if len(ended) > ordinary.mark:
                    with _ON_END:
                        self._look(span)
                return
        except (AttributeError, TypeError):
            pass  # no span as the SDK makes them
        try:
            if self._hindered and not self._may_take(span):
                return
            queue = self._queue
            if queue.take(span) > queue.mark:
                self._look(span)
        except Exception as error:
            if not _ON_END.stops(error):
                raise

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
                self._stopped = self._hindered = True
                self._live.detach(self)

    # --- The queue ----------------------------------------------------------------------------------------------------

    @property
    def queued(self) -> tuple[int, int]:
        """Length and capacity of the queue."""
        return len(self._queue), CAPACITY

    def drain(self, wait: float) -> bool:
        """Hand the engine all that is queued, and tell it what is open."""
        return self._engine.receive(self._read(len(self._queue)), wait=wait) and self._tell(wait)

    def _tell(self, wait: float) -> bool:
        lost = self._engine.lost(self._queue.lost_since(), wait=wait)
        return lost and self._engine.opened(self._queue.opened_since(), wait=wait)

    def _look(self, span: ReadableSpan) -> None:
        """Every now and then: see whether the queue is full, and meet deadlines that nobody else met."""
        self._live.begin(span.resource)
        self._hindered = self._stopped or len(self._queue) >= CAPACITY
        self._queue.look_after(STRIDE)
        self._ordinary.latest = span.end_time or 0
        if self._live.due() and self._engine.receive(self._read(HELPING), wait=0) and self._tell(0):
            self._live.tick(0)

    def _may_take(self, span: ReadableSpan) -> bool:
        """Take one run off a full queue, if nobody else is at it. False: this span has no place, and is counted."""
        if self._stopped:
            return self._refused(span, "shutdown")
        if span.parent is None or span.parent.is_remote or len(self._queue) >= 2 * CAPACITY:
            self._engine.receive(self._read(HELPING, until_root=True), wait=0)
        return len(self._queue) < HARD_CAPACITY or self._refused(span, "queue_full")

    def _refused(self, span: ReadableSpan, reason: str) -> bool:
        self._queue.refuse(span)
        self._engine.count("refused", reason)
        return False

    def _read(self, number: int, *, until_root: bool = False) -> Iterator[AgentSpan]:
        """Take spans off the queue and read them: so many ordinary ones, and so many others."""
        self._queue.settle()
        try:
            for read in (self._queue.read_ordinary, self._queue.read):
                for _ in range(number):
                    try:
                        span = read()
                    except IndexError:
                        break
                    if span is not None:
                        yield span
                        if until_root and span.parent_id is None:
                            break
        finally:
            self._queue.look_after(0)
