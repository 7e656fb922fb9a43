"""The in-process door: one line beside the user's own exporters, and every recording span counts.

    provider.add_span_processor(ReliabilitySpanProcessor())

`on_end` takes what is needed of a span and appends it to a queue. The queue is emptied by whoever comes first: a collection of
metrics, `force_flush`, a reading, or, when it is full, the thread that ends the next root, one run at a time. No hook waits
for a lock, and no exception leaves one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from opentelemetry.metrics import MeterProvider
from opentelemetry.sdk.trace import ReadableSpan

from otel_reliability.config import Settings
from otel_reliability.model.run import CloseReason
from otel_reliability.model.span import AgentSpan
from otel_reliability.telemetry.capture import Capture
from otel_reliability.telemetry.guard import Guard
from otel_reliability.telemetry.hooks import Hooks
from otel_reliability.telemetry.live import PATIENCE, live_of
from otel_reliability.telemetry.options import settings_from

CAPACITY: Final = 4_096
"""Spans in the queue from which the threads of the host help, one run at every root they end."""
HARD_CAPACITY: Final = 8 * CAPACITY
"""Spans in the queue from which further ones are refused, and counted."""
STRIDE: Final = 256
"""Every so many spans a thread looks whether a deadline may have passed."""
HELPING: Final = 512
"""Spans, ordinary ones and others, so many of each, that one thread takes from the queue at most while a span waits for it."""

_FLUSH: Final = Guard("ReliabilitySpanProcessor.force_flush")
_SHUTDOWN: Final = Guard("ReliabilitySpanProcessor.shutdown")


class ReliabilitySpanProcessor(Hooks):
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
        self._fill(Capture(self._engine))
        self._hindered = self._stopped

    # --- Ends ------------------------------------------------------------------------------------------------------------

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
        self._hindered = self._stopped or len(self._queue) >= CAPACITY
        self._look_after(STRIDE)
        self._live.begin(span.resource)
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
        ended, others = self._queue.waiting  # asked before: of what ended later it may not be known yet that it began
        self._queue.settle()
        try:
            for read, most in ((self._queue.read_ordinary, ended), (self._queue.read, others)):
                for _ in range(min(number, most)):
                    try:
                        span = read()
                    except IndexError:
                        break
                    if span is not None:
                        yield span
                        if until_root and span.parent_id is None:
                            break
        finally:
            self._look_after(0)
