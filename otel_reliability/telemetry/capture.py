"""What is kept of a span in the host's process until it is read: names, numbers, times; never the text of a prompt.

The SDK calls `on_end` on the thread of the user's agent, so taking is all that happens there. A span that carries text of
messages is read at once instead, and what is kept of it are hashes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from operator import attrgetter
from sys import getsizeof
from typing import Any, Final, NamedTuple, cast

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, StatusCode, TraceState

from otel_reliability.conventions.reader import Reader
from otel_reliability.engine import Engine, Opened
from otel_reliability.errors import MalformedSpan
from otel_reliability.model.span import AgentSpan, ModelFacts, RawSpan, SpanRef
from otel_reliability.sources import sdk
from otel_reliability.sources.batch import SPAN_ID_BYTES, TRACE_ID_BYTES
from otel_reliability.telemetry.guard import Guard
from otel_reliability.telemetry.plans import Attributes, Plan, Plans, Values

MAX_OPEN: Final = 100_000
"""Spans noted as begun; beyond, none is noted: then runs close by time."""
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

_OF_A_SPAN: Final = (
    "name", "context", "parent", "kind", "start_time", "end_time", "status.status_code", "resource", "instrumentation_scope",
)  # fmt: skip
_within: Final[Callable[[ReadableSpan], tuple[Any, ...]]] = attrgetter(
    *(f"_{name}" for name in _OF_A_SPAN), "_events._dq", "_attributes._dict"
)
"""What is looked at of a span, in one call made in C.

The SDK keeps each field under its name with an underscore. Asked for there, without the properties, copies and locks of the
public names, they cost a quarter, and that is half of all that `on_end` may cost. Spans that keep them elsewhere (made by hand,
or by another SDK) are asked in public.
"""
_in_public: Final[Callable[[ReadableSpan], tuple[Any, ...]]] = attrgetter(*_OF_A_SPAN, "events", "attributes")


class Kept(NamedTuple):
    """What is kept of a span until it is read: what `sources.sdk` looks at, in the SDK's own words, and no text."""

    plan: Plan
    slots: int
    links: Sequence[Link]
    trace_id: int
    span_id: int
    trace_state: TraceState
    parent_id: int | None
    parent_remote: bool
    name: str
    kind: SpanKind
    start_time: int | None
    end_time: int | None
    status_code: StatusCode
    resource: Resource
    instrumentation_scope: InstrumentationScope | None
    values: Values

    @property
    def context(self) -> SpanContext:
        """Its place."""
        return SpanContext(self.trace_id, self.span_id, is_remote=False, trace_state=self.trace_state)

    @property
    def parent(self) -> SpanContext | None:
        """Its parent's place."""
        return None if self.parent_id is None else SpanContext(self.trace_id, self.parent_id, self.parent_remote)

    @property
    def attributes(self) -> Attributes:
        """What was wanted of them."""
        return dict(zip(self.plan.keys, self.values, strict=True))

    @property
    def status(self) -> Kept:
        """Where the status code is. A status has a description too, which may be anybody's text."""
        return self

    @property
    def events(self) -> tuple[Event, ...]:
        """A span that has any is read at once."""
        return ()


_FIRST: Final = (Plan, AgentSpan)
"""What the fields of a span begin with."""
_FLAT: Final = len(Kept._fields) - 1
"""Fields of a span that lie in the queue one by one: all but its values."""


class Capture:
    """A queue of spans for one engine.

    What is kept of a span lies flat in one deque: the fields of a `Kept`, then the values that its plan, the first of them, asks
    for. A tuple a span would cost more: it would be one more object for the garbage collector to look at. A span that was read
    at once lies there as it is. Any thread may `take`, one at a time may `read`.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._plans = Plans(engine.reader)
        self._queue: deque[Any] = deque()
        self._open: dict[int, tuple[SpanContext, SpanContext | None]] = {}
        self._lost: deque[tuple[int, int]] = deque(maxlen=MAX_OPEN)
        self._slots = deque(range(SLOTS))
        self._numbers = count()
        self._last = -1
        self._given = 0

    def __len__(self) -> int:
        return self._last + 1 - self._given

    def opened(self, context: SpanContext, parent: SpanContext | None) -> None:
        """A span has begun."""
        if len(self._open) < MAX_OPEN:
            self._open[context[1]] = (context, parent)

    def take(self, span: ReadableSpan) -> int:
        """Keep what is needed of a span, or read it at once; one that cannot be read is counted. Its running number."""
        try:
            name, context, parent, kind, start, end, status, resource, scope, events, attributes = _within(span)
        except AttributeError:
            name, context, parent, kind, start, end, status, resource, scope, events, attributes = _in_public(span)
            attributes = dict(attributes or {})
        trace_id, span_id, _, _, trace_state, _ = context
        self._open.pop(span_id, None)
        keys = tuple(attributes)
        plan = self._plans.known.get(keys) or self._plans.make(keys)
        slots = self._slots_for(attributes, plan) if plan.arguments or plan.suspects else 0
        if slots is None or events:
            return self._read_now(span, {key: attributes[key] for key in plan.keys})
        if parent is None:
            parent_id, remote, links = None, False, [Link(link.context) for link in span.links]
        else:
            _, parent_id, remote, _, _, _ = parent
            links = ()
        self._queue.extend(
            (
                plan, slots, links, trace_id, span_id, trace_state, parent_id, remote, name, kind, start, end, status, resource,
                scope, *plan.get(attributes),
            )
        )  # fmt: skip
        number = self._last = next(self._numbers)
        return number

    def refuse(self, span: ReadableSpan) -> None:
        """A span has no place in the queue; what waits for its end need not."""
        context = span.context
        if context is not None:
            self._open.pop(context.span_id, None)
            self._lost.append((context.trace_id, context.span_id))

    def opened_since(self) -> Iterator[Opened]:
        """The spans that began since last asked and have not ended."""
        for _ in range(len(self._open)):
            try:
                _, (context, parent) = self._open.popitem()
            except KeyError:
                return
            parent_id = None if parent is None else parent.span_id.to_bytes(SPAN_ID_BYTES)
            yield context.trace_id.to_bytes(TRACE_ID_BYTES), context.span_id.to_bytes(SPAN_ID_BYTES), parent_id

    def lost_since(self) -> Iterator[SpanRef]:
        """The spans that ended since last asked and will never be read."""
        for _ in range(len(self._lost)):
            trace_id, span_id = self._lost.popleft()
            yield trace_id.to_bytes(TRACE_ID_BYTES), span_id.to_bytes(SPAN_ID_BYTES)

    def read(self) -> AgentSpan | None:
        """Read the next span in the queue; None, and counted, if it cannot be read. IndexError: there is none."""
        pop = self._queue.popleft
        first = pop()
        while not isinstance(first, _FIRST):
            first = (
                pop()
            )  # a signal handler's exception broke off the reading of the span before, and its rest lies here
        self._given += 1
        if isinstance(first, AgentSpan):
            return first
        fields = [pop() for _ in range(1, _FLAT)]
        kept = Kept._make((first, *fields, tuple([pop() for _ in first.keys])))
        self._slots.extend(range(kept.slots))
        return self._read(cast("ReadableSpan", kept))

    def _read(self, span: ReadableSpan, attributes: Attributes | None = None) -> AgentSpan | None:
        found = read_span(span, self._engine, attributes)
        if found is None:
            self.refuse(span)
        return found

    def _read_now(self, span: ReadableSpan, attributes: Attributes) -> int:
        read = self._read(span, attributes)
        if read is not None:
            self._queue.append(read)
            self._last = next(self._numbers)
        return self._last

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
    with _READ:
        try:
            raw = sdk.read(span)
        except MalformedSpan as error:
            engine.count("malformed", str(error.reason))
            return None
        return engine.reader.read(raw) if attributes is None else _read_at_once(raw, attributes, engine.reader)
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
