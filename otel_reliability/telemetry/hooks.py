"""The two hooks that the SDK calls for every span: in Python, and compiled where `otel-reliability-native` is installed.

What is compiled is the usual span. Of any other it asks the hooks in Python, which are the judge of both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from otel_reliability.sources.batch import LATEST_NS
from otel_reliability.telemetry.capture import Capture
from otel_reliability.telemetry.guard import Guard
from otel_reliability.telemetry.queues import NATIVE

_ON_START: Final = Guard("ReliabilitySpanProcessor.on_start")
_ON_END: Final = Guard("ReliabilitySpanProcessor.on_end")


class PlainHooks(SpanProcessor):
    """The hooks in Python. `hindered`: spans may have no place in the queue, so each is asked for.

    They are called for every span: a `try` costs nothing there, a `with` a twentieth of what they may take. They look at fields
    where the SDK keeps them, under their names with an underscore: a property is a call. What most spans fail at is asked first.
    """

    _queue: Capture
    _hindered: bool

    def on_start(self, span: Any, parent_context: Context | None = None) -> None:
        """Note that a span is open: its run will not be closed before it ends."""
        try:
            context, parent = span._context, span._parent
            self._begun.extend((context[1], context if parent is None else parent))
        except Exception:  # noqa: BLE001 (no span as the SDK makes them)
            with _ON_START:
                self._queue.begin(span.context, span.parent)

    def on_end(self, span: Any) -> None:
        """Take what is needed of a span and leave at once. Of one that is ordinary at a glance that is its id."""
        try:
            ordinary = self._ordinary
            if (
                span._name in ordinary.names
                and span._instrumentation_scope._name in ordinary.scopes
                and ordinary.keys.issuperset(span._attributes._dict)
                and not span._events._dq
                and (span._parent is not None or not span._links._dq)
                and ordinary.since <= span._start_time <= span._end_time <= LATEST_NS
                and not self._hindered
            ):
                ended = ordinary.ended
                ended.append(span._context[1])
                if len(ended) > ordinary.mark:
                    self._look_guarded(span)
                return
        except Exception:  # noqa: BLE001, S110 (no span as the SDK makes them)
            pass
        try:
            if self._hindered and not self._may_take(span):
                return
            queue = self._queue
            if queue.take(span) > queue.mark:
                self._look(span)
        except Exception as error:
            if not _ON_END.stops(error):
                raise

    def _fill(self, queue: Capture) -> None:
        """From now on spans are kept in this queue."""
        self._queue, self._begun, self._ordinary = queue, queue.begun, queue.ordinary

    def _look_after(self, stride: int) -> None:
        """Let somebody look around once so many more spans wait."""
        self._queue.look_after(stride)

    def _look_guarded(self, span: ReadableSpan) -> None:
        with _ON_END:
            self._look(span)

    def _look(self, span: ReadableSpan) -> None:
        raise NotImplementedError

    def _may_take(self, span: ReadableSpan) -> bool:
        raise NotImplementedError


def _compiled(native: Any) -> type[PlainHooks]:
    """The compiled hooks, and those in Python below them."""

    class CompiledHooks(native.Hooks, PlainHooks):
        _begin_closely, _end_closely = PlainHooks.on_start, PlainHooks.on_end

        def _fill(self, queue: Capture) -> None:
            PlainHooks._fill(self, queue)
            self._serve(*queue.parts())

        def _look_after(self, stride: int) -> None:
            self._queue.look_after(stride)
            self._aim(self._ordinary.since, self._ordinary.mark, self._queue.mark)

    return CompiledHooks


if TYPE_CHECKING:
    Hooks = PlainHooks
else:
    Hooks = PlainHooks if NATIVE is None else _compiled(NATIVE)
