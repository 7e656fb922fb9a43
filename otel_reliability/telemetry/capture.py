"""What is kept of a span in the host's process until it is read: names, numbers, times; never the text of a prompt.

The SDK calls `on_end` on the thread of the user's agent, so taking is all that happens there. A span that carries text of
messages is read at once instead, and what is kept of it are hashes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from sys import getsizeof
from typing import Any, Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import Link, SpanContext

from otel_reliability.conventions.reader import Reader
from otel_reliability.engine import Engine, Opened
from otel_reliability.errors import MalformedSpan
from otel_reliability.model.attributes import HeldAttributes
from otel_reliability.model.span import AgentSpan, ModelFacts, RawSpan, SpanRef
from otel_reliability.sources import sdk
from otel_reliability.sources.batch import LATEST_NS, SPAN_ID_BYTES, TRACE_ID_BYTES
from otel_reliability.telemetry.guard import Guard
from otel_reliability.telemetry.open_spans import MAX_OPEN, OpenSpans
from otel_reliability.telemetry.ordinary import Ordinary, place
from otel_reliability.telemetry.plans import Attributes, Plan, Plans
from otel_reliability.telemetry.queues import queue

SMALL_TEXT: Final = 128
"""Characters up to which arguments are held without a slot: a full queue of them is a few MiB."""
LARGEST_TEXT: Final = 16 * 1024
"""Bytes of arguments or a result that may be held by reference until the queue is emptied."""
SLOTS: Final = 1_920
"""So many texts may be held: 30 MiB, and with the small ones about 32."""
LARGEST_MESSAGE: Final = 64 * 1024
"""Characters of messages that are searched for tool calls."""

MESSAGES: Final = ("gen_ai.output.messages", "gen_ai.completion.", "llm.output_messages.", "ai.response.toolCalls")
"""Prefixes of the keys of messages, in which tool calls are looked for."""
FINISH: Final = frozenset({"gen_ai.response.finish_reasons", "gen_ai.response.finish_reason", "llm.finish_reason"})

_READ: Final = Guard("reading a span")
_NUMBERS: Final = frozenset({bool, int, float})


def _in_public(span: ReadableSpan) -> tuple[Any, ...]:
    return (
        span.context, span.parent, span.instrumentation_scope, span.name, span.kind, span.start_time, span.end_time,
        span.status.status_code, span.resource, span.events, dict(span.attributes or {}),
    )  # fmt: skip


class Capture:
    """A queue of spans for one engine.

    What is kept of a span is one tuple: its plan, what else there is of it, and the values that the plan asks for. A span that
    was read at once lies there as it is. Any thread may `begin`, `take` and `refuse`, one at a time may do the rest.

    The ids of spans that are told as ordinary at a glance lie apart, in `ordinary`; what begins, in `begun`. `mark`: so many
    spans may wait, beside the ordinary ones, before somebody looks around.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._plans = Plans(engine.reader)
        self._queue = queue()
        self._open = OpenSpans()
        self.begun = self._open.begun
        self.ordinary = Ordinary(engine.reader)
        self._lost: deque[tuple[int, int]] = deque(maxlen=MAX_OPEN)
        self._slots = deque(range(SLOTS))
        self.mark = 0

    def __len__(self) -> int:
        return len(self._queue) + len(self.ordinary.ended)

    @property
    def waiting(self) -> tuple[int, int]:
        """How many ordinary spans wait, and how many others."""
        return len(self.ordinary.ended), len(self._queue)

    # --- Where spans begin and end ------------------------------------------------------------------------------------

    def begin(self, context: SpanContext | None, parent: SpanContext | None) -> None:
        """A span has begun."""
        if context is not None:
            self.begun.extend((context.span_id, parent or context))

    def take(self, span: Any) -> int:
        """Keep what is needed of a span, or read it at once; one that cannot be read is counted. How many wait now.

        It is asked where the SDK keeps it: under each field's name with an underscore. Without the properties, copies and locks
        of the public names that costs a tenth, and it is most of what `on_end` may cost. Spans that keep it elsewhere (made by
        hand, or by another SDK) are asked in public.
        """
        try:
            context, parent, scope, name = span._context, span._parent, span._instrumentation_scope, span._name
            kind, start, end, status = span._kind, span._start_time, span._end_time, span._status._status_code
            resource, events, attributes = span._resource, span._events._dq, span._attributes._dict
        except AttributeError:
            context, parent, scope, name, kind, start, end, status, resource, events, attributes = _in_public(span)
        waiting, keys = self._queue, tuple(attributes)
        plan = self._plans.known.get(keys) or self._plans.make(keys)
        slots = 0
        for key in plan.texts:
            if attributes[key].__class__ is not str or len(attributes[key]) > SMALL_TEXT or plan.suspects:
                slots = self._slots_for(attributes, plan)
                break
        if slots is None or events:
            self._slots.extend(range(slots or 0))  # it is not held
            self._read_now(span, {key: attributes[key] for key in plan.keys})
            return len(waiting)
        if not plan.keys and self.begun and scope is not None and name.__class__ is str:
            self.ordinary.meet(scope.name, name, keys)
        waiting.append(
            (
                plan, slots, () if parent is not None else [Link(link.context) for link in span.links],
                context[0], context[1], context[4], parent, name, kind, start, end, status, resource, scope, plan.get(attributes),
            )
        )  # fmt: skip
        return len(waiting)

    def refuse(self, span: ReadableSpan) -> None:
        """A span has no place in the queue; what waits for its end need not."""
        context = span.context
        if context is not None:
            self._lost.append((context.trace_id, context.span_id))

    def parts(self) -> tuple[Any, ...]:
        """What compiled hooks fill, and what they judge by."""
        return self.begun, self.ordinary, self._queue, self._plans.known, SMALL_TEXT, LATEST_NS

    def look_after(self, stride: int) -> None:
        """Let somebody look around once so many more spans wait, ordinary ones or others."""
        self.mark = len(self._queue) + stride
        self.ordinary.mark = len(self.ordinary.ended) + stride

    # --- Where they are read ------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Take in what has begun, before anything is read that has ended."""
        self._open.settle()

    def opened_since(self) -> Iterator[Opened]:
        """The spans that began since last asked and have not ended."""
        self._open.settle()
        yield from self._open.tell()

    def lost_since(self) -> Iterator[SpanRef]:
        """The spans that ended since last asked and will never be read."""
        self._open.settle()
        for _ in range(len(self._lost)):
            trace_id, span_id = self._lost.popleft()
            self._open.end(span_id)
            yield trace_id.to_bytes(TRACE_ID_BYTES), span_id.to_bytes(SPAN_ID_BYTES)

    def read_ordinary(self) -> AgentSpan | None:
        """The next ordinary span; None, and counted, if nothing is known of it. IndexError: there is none."""
        span_id = self.ordinary.ended.popleft()
        above = self._open.end(span_id)
        found = None if above is None else place(span_id, above, self.ordinary.latest)
        if found is None:
            self._engine.count("refused", "place_unknown")
        return found

    def read(self) -> AgentSpan | None:
        """Read the next span in the queue; None, and counted, if it cannot be read. IndexError: there is none."""
        kept = self._queue.popleft()
        if isinstance(kept, AgentSpan):
            self._open.end(int.from_bytes(kept.span_id))
            return kept
        (
            plan, slots, links, trace_id, span_id, state, parent, name, kind, start, end, status, resource, scope, values,
        ) = kept  # fmt: skip
        attributes = HeldAttributes(zip(plan.keys, values, strict=True))
        if slots:
            self._slots.extend(range(slots))
        parts = (
            trace_id, span_id, parent, name, kind, start, end, status, attributes, (), links, scope, resource, state,
        )  # fmt: skip
        found = _read(self._engine, sdk.raw, parts)
        if found is None:
            self._lost.append((trace_id, span_id))
        else:
            self._open.end(span_id)
        return found

    def _read_now(self, span: ReadableSpan, attributes: Attributes) -> None:
        read = read_span(span, self._engine, attributes)
        if read is None:
            self.refuse(span)
        else:
            self._queue.append(read)

    def _slots_for(self, attributes: Attributes, plan: Plan) -> int | None:
        """How many slots the arguments take, which are taken; None: the span carries text that must be read at once."""
        for key in plan.suspects:
            if attributes[key].__class__ not in _NUMBERS:
                return None
        slots = 0
        for key in plan.arguments:
            value = attributes[key]
            if value.__class__ is str:
                if len(value) > SMALL_TEXT:
                    slots += 1
                    if getsizeof(value) > LARGEST_TEXT:
                        return None
            elif value.__class__ not in _NUMBERS:
                return None
        return self._held(slots) if slots else 0

    def _held(self, slots: int) -> int | None:
        """Take so many slots, or none."""
        taken = 0
        try:
            while taken < slots:
                self._slots.pop()
                taken += 1
        except IndexError:
            self._slots.extend(range(taken))
            return None
        return slots


def read_span(span: ReadableSpan, engine: Engine, attributes: Attributes | None = None) -> AgentSpan | None:
    """The span in our vocabulary; None, and counted, if it cannot be read. `attributes`: all that is wanted of its own."""
    return _read(engine, sdk.read, (span,), attributes)


def _read(
    engine: Engine, make: Callable[..., RawSpan], parts: tuple[Any, ...], attributes: Attributes | None = None
) -> AgentSpan | None:
    try:
        raw = make(*parts)
        return engine.reader.read(raw) if attributes is None else _read_at_once(raw, attributes, engine.reader)
    except MalformedSpan as error:
        engine.count("malformed", str(error.reason))
    except Exception as error:
        if not _READ.stops(error):
            raise
        engine.count("refused", "fault")
    return None


def _read_at_once(raw: RawSpan, attributes: Attributes, reader: Reader) -> AgentSpan:
    """Read messages up to a size; what a longer one asked for is not known."""
    long = [key for key in attributes if key.startswith(MESSAGES) and _length(attributes[key]) > LARGEST_MESSAGE]
    for key in long:
        del attributes[key]
    span = reader.read(raw._replace(attributes=attributes))
    facts = span.facts
    if long and isinstance(facts, ModelFacts) and not facts.calls and not FINISH.intersection(attributes):
        return span._replace(facts=facts._replace(asked_for_tools=True))
    return span


def _length(value: object) -> int:
    return len(value) if isinstance(value, str) else 0
