"""The span processor: one line next to the user's own exporters, and every recording span counts.

    provider.add_span_processor(ReliabilitySpanProcessor())

`on_end` copies what is needed of a span and appends it to a queue. The queue is drained by the
first of: a collection of metrics, `force_flush`, or the host's threads in their hooks, once a
second or when it is full. No hook waits for a lock or works for more than about a millisecond, and
no exception leaves one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import islice
from math import inf
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from otel_reliability.config import Settings
from otel_reliability.model.run import CloseReason
from otel_reliability.model.span import AgentSpan
from otel_reliability.telemetry.guard import Guard
from otel_reliability.telemetry.live import WAIT_TIMEOUT_S, SpanSource, live_of, settings_from
from otel_reliability.telemetry.span_queue import NEVER, SpanQueue
from otel_reliability.watch import Excess

CAPACITY: Final = 4_096
"""Queue length from which the host's threads help: one run at every root they end."""
HARD_CAPACITY: Final = 8 * CAPACITY
"""Queue length from which further spans are refused and counted."""
STRIDE: Final = 256
"""Spans after which a thread checks the queue's length and the deadlines."""
HELP_STRIDE: Final = 4
"""Spans after which it checks while there is work that no collection has done."""
MAX_HELP_S: Final = 0.15e-3
"""Seconds after which a host's thread begins no further work in one hook."""
MAX_REPORTED: Final = 64
"""Lost and open spans that a host's thread reports at a time, of each so many."""

_ON_START: Final = Guard("ReliabilitySpanProcessor.on_start")
_ON_END: Final = Guard("ReliabilitySpanProcessor.on_end")
_FLUSH: Final = Guard("ReliabilitySpanProcessor.force_flush")
_SHUTDOWN: Final = Guard("ReliabilitySpanProcessor.shutdown")


class ReliabilitySpanProcessor(SpanProcessor, SpanSource):
    """Reads the spans of a `TracerProvider` and reports the reliability of its agents through a
    `MeterProvider`.

    Args:
        settings: how to count; from the environment and `options` where absent. meter_provider:
        where the numbers go; the global one where absent, whether it is set before or after.
        on_excess: called when an open run exceeds a bound, on a thread of ours that this starts.
        Stopping the agent is up to you. options: settings by name: `window=50`,
        `metrics={"min_runs": 10}`.

    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        meter_provider: MeterProvider | None = None,
        on_excess: Callable[[Excess], object] | None = None,
        **options: object,
    ) -> None:
        self._live = live_of(
            meter_provider, settings_from(options) if settings is None else settings
        )
        self._engine = self._live.engine
        self._stopped = False
        self.restart()
        self._live.attach(self)
        if on_excess is not None:
            self._live.on_excess(on_excess)

    def restart(self) -> None:
        """Drop everything that waits: a forked child starts empty."""
        queue = self._queue = SpanQueue(self._engine)
        self._started = queue.started
        self._non_agent = queue.non_agent
        self._keys = queue.keys
        self._names = queue.names
        self._scopes = queue.scopes
        self._hindered = self._stopped
        self._has_read = False
        self._check_after(0)

    # --- Hooks ------------------------------------------------------------------------------------
    # They are called for every span. A `try` is free there, a `with` takes a twentieth of their
    # time, and a property of the SDK is a call: fields are read where the SDK keeps them. The
    # condition that most spans fail comes first.

    def on_start(self, span: Any, parent_context: Context | None = None) -> None:
        """Note that a span is open: its run is not closed before the span ends."""
        try:
            context = span._context
            parent = span._parent
            self._started.extend((context[1], context if parent is None else parent))
        except Exception:  # noqa: BLE001  not a span of this SDK
            with _ON_START:
                self._queue.start(span.context, span.parent)

    def on_end(self, span: Any) -> None:
        """Copy what is needed of a span; of a non-agent span that is its id."""
        try:
            try:
                non_agent = (
                    span._name in self._names
                    and span._instrumentation_scope._name in self._scopes
                    and self._keys.issuperset(span._attributes._dict)
                    and not span._events._dq
                    and (span._parent is not None or not span._links._dq)
                    and span._start_time > self._since
                )
            except Exception:  # noqa: BLE001  not a span of this SDK
                non_agent = False
            if non_agent:
                waiting = self._non_agent
                waiting.append(span._context[1])
                if len(waiting) > self._check_non_agent_at:
                    self._check(span)
            elif (not self._hindered or self._may_put(span)) and self._queue.put(
                span
            ) > self._check_at:
                self._check(span)
        except Exception as error:
            if not _ON_END.stops(error):
                raise

    # --- Ends -------------------------------------------------------------------------------------

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Close every run and record it, so that the next collection includes all of them."""
        with _FLUSH:
            wait = min(WAIT_TIMEOUT_S, timeout_millis / 1e3)
            return (
                self.drain(wait)
                if self._live.exiting
                else self._live.flush(CloseReason.FLUSH, wait)
            )
        return False

    def shutdown(self) -> None:
        """Stop: spans that end later are refused and counted."""
        with _SHUTDOWN:
            if not self._stopped:
                self._stopped = self._hindered = True
                self._check_after(0)
                self._live.detach(self)

    # --- The queue --------------------------------------------------------------------------------

    @property
    def queued(self) -> tuple[int, int]:
        return len(self._queue), CAPACITY

    def drain(self, wait: float) -> bool:
        """Hand the engine all spans that wait, and report which are open."""
        return self._engine.receive(self._read(len(self._queue)), wait=wait) and self._report(wait)

    def _report(self, wait: float, most: int | None = None) -> bool:
        """Report the spans that are lost and those that are open, of each so many or all."""
        queue = self._queue
        lost = self._engine.lost(islice(queue.lost_since(), most), wait=wait)
        return lost and self._engine.opened(islice(queue.opened_since(), most), wait=wait)

    def _check_after(self, stride: int) -> None:
        """Let a hook call `_check` once `stride` more spans wait; while hindered, let every span
        take the general path.
        """
        self._since = NEVER if self._hindered else self._queue.since
        self._check_at = len(self._queue) - len(self._non_agent) + stride
        self._check_non_agent_at = len(self._non_agent) + stride

    def _check(self, span: ReadableSpan) -> None:
        """Check whether the queue is full, and help with deadlines that no collection met."""
        self._live.begin(span.resource)
        self._queue.latest_ns = span.end_time or 0
        self._help()
        self._hindered = self._stopped or len(self._queue) >= CAPACITY
        self._check_after(HELP_STRIDE if self._live.due() else STRIDE)

    def _help(self) -> None:
        """Drain the queue, then meet deadlines, for a short time. What is left waits for the next
        hook or collection. While the queue is full, both take turns.
        """
        engine = self._engine
        end = time.perf_counter() + MAX_HELP_S
        while self._live.due():
            waiting = len(self._queue)
            self._has_read = waiting > 0 and not (waiting >= CAPACITY and self._has_read)
            if self._has_read:
                is_free = engine.receive(self._read(waiting, until=end), wait=0)
            else:
                is_free = self._report(0, MAX_REPORTED)
                if is_free and not self._queue.starts_waiting:
                    is_free = self._live.help()
            if not is_free or time.perf_counter() >= end:
                return

    def _may_put(self, span: ReadableSpan) -> bool:
        """Drain a full queue for a short time if no other thread does. False: the span is refused
        and counted.
        """
        if self._stopped:
            return self._refuse(span, "shutdown")
        if span.parent is None or span.parent.is_remote or len(self._queue) >= 2 * CAPACITY:
            end = time.perf_counter() + MAX_HELP_S
            self._engine.receive(self._read(len(self._queue), until=end), wait=0)
        return len(self._queue) < HARD_CAPACITY or self._refuse(span, "queue_full")

    def _refuse(self, span: ReadableSpan, reason: str) -> bool:
        self._queue.refuse(span)
        self._engine.count("refused", reason)
        return False

    def _read(self, limit: int, *, until: float = inf) -> Iterator[AgentSpan]:
        """Read up to `limit` spans; `until`: the last at this time of `perf_counter`."""
        try:
            for span in self._queue.read_all(limit):
                yield span
                if until < inf and time.perf_counter() >= until:
                    return
        finally:
            self._check_after(0)
