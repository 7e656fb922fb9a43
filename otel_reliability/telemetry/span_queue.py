"""The queue between the host's threads and the engine: what is kept of a span until it is read.

The SDK calls `on_end` on the thread of the user's agent, so a span is only copied there: names,
numbers, times, and the text of tool arguments and of the request of a run, up to a limit. A span
with text of messages is read at once, but for that request, and only hashes of it are kept.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from sys import getsizeof
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace
from opentelemetry.sdk.resources import Resource as SdkResource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, StatusCode, TraceState

from otel_reliability.conventions import requests
from otel_reliability.conventions.keys import Keys, ToolMark
from otel_reliability.conventions.reader import Reader
from otel_reliability.engine import Engine, Opened
from otel_reliability.errors import MalformedSpan
from otel_reliability.model.remembered import Remembered
from otel_reliability.model.span import (
    AgentSpan,
    InvocationFacts,
    Kind,
    ModelFacts,
    RawSpan,
    Resource,
    SpanRef,
)
from otel_reliability.sources import sdk
from otel_reliability.sources.batch import SPAN_ID_BYTES, TRACE_ID_BYTES
from otel_reliability.sources.sdk import LAST_SPAN, LAST_TRACE
from otel_reliability.telemetry.guard import Guard
from otel_reliability.telemetry.open_spans import MAX_OPEN, OpenSpans

SMALL_TEXT: Final = 128
"""Maximum characters of arguments that are held without a slot: a full queue of them takes a few
MiB.
"""
MAX_TEXT_BYTES: Final = 16 * 1024
"""Maximum bytes of arguments or a result that are held until the queue is drained; longer ones are
hashed at once.
"""
MAX_TEXTS: Final = 1_920
"""Slots: texts that may be held at a time. They take 30 MiB, with the small ones about 32."""
MAX_MESSAGE: Final = 64 * 1024
"""Maximum characters of messages that are searched for tool calls."""
MAX_NON_AGENT: Final = 4_096
"""Keys, names and scopes of non-agent spans that are remembered, of each so many."""
MAX_NON_AGENT_CHARACTERS: Final = 256
"""Maximum length of one that is remembered."""
MAX_PLANS: Final = 2_048
"""Sets of keys that are remembered. When there are more, all are forgotten and decided again."""
NEVER: Final = 2**63
"""A time in nanoseconds that no span starts at."""

_READ: Final = Guard("reading a span")
_NUMBERS: Final = frozenset({bool, int, float})


Attributes: TypeAlias = dict[str, Any]
Values: TypeAlias = tuple[Any, ...]


class AttributePlan:
    """The attributes to keep of a span with certain keys, in their order.

    An instrumentation sets the same keys in the same order on every span of one kind: one lookup
    by these keys finds the plan, and one call of `get` reads the values. `keys` are all that a
    convention reads; `arguments` those that may hold a tool's arguments or result, `messages` those
    that may hold text of prompts or answers, unless a tool mark is on the span; `texts` are both.
    `requests` are all that may hold the request of a run.
    """

    __slots__ = ("arguments", "get", "keys", "messages", "requests", "texts", "tool_marks")

    def __init__(self, keys: tuple[str, ...], known: Keys, requests: tuple[str, ...] = ()) -> None:
        self.keys = keys
        self.requests = requests
        self.get = _getter(keys)
        self.arguments = tuple(key for key in keys if key in known.content)
        self.messages = tuple(
            key for key in keys if key not in known.content and not known.are_plain(key)
        )
        self.texts = self.messages + self.arguments
        self.tool_marks: tuple[ToolMark, ...] = tuple(
            mark
            for mark in known.tool_marks
            if mark.key in keys and not mark.content.isdisjoint(keys)
        )

    def messages_of(self, attributes: Attributes) -> tuple[str, ...]:
        """Return the keys of a span that may hold text of prompts or answers."""
        for mark in self.tool_marks:
            if mark.is_on(attributes):
                return tuple(key for key in self.messages if key not in mark.content)
        return self.messages


class AttributePlans(Remembered[tuple[str, ...], AttributePlan]):
    """Plans by the keys of a span, in their order; a missing one is made."""

    def __init__(self, reader: Reader) -> None:
        super().__init__(MAX_PLANS)
        self._known = reader.keys
        self._reads_requests = reader.reads_requests

    def __missing__(self, keys: tuple[str, ...]) -> AttributePlan:
        read = tuple(key for key in keys if self._known.are_read(key))
        possible = requests.keys_of(keys, self._known.requests) if self._reads_requests else ()
        of_request = tuple(key for key in possible if key in keys)
        plan = self[keys] = AttributePlan(read, self._known, of_request)
        return plan


def _getter(keys: tuple[str, ...]) -> Callable[[Attributes], Values]:
    """Return a reader of these keys' values. (`itemgetter` returns a tuple for two keys or more
    only.)
    """
    if len(keys) > 1:
        return itemgetter(*keys)
    return (lambda attributes: (attributes[keys[0]],)) if keys else (lambda _: ())


class KeptSpan(Struct, gc=False):
    """An ended span as the hook keeps it: the SDK's own objects. `values` are those of the keys of
    its plan, `slots` how many its texts take.
    """

    plan: AttributePlan
    slots: int
    links: Sequence[Link]
    trace_id: int
    span_id: int
    trace_state: TraceState | None
    parent: SpanContext | None
    name: str
    kind: SpanKind
    start_ns: int | None
    end_ns: int | None
    status: StatusCode
    resource: SdkResource
    scope: InstrumentationScope | None
    values: Values


class Requested(NamedTuple):
    """A kept span with the texts that hold its request (none where there was no room for
    them), and their slots.
    """

    span: KeptSpan | AgentSpan
    texts: Attributes
    slots: int


Waiting: TypeAlias = KeptSpan | AgentSpan | Requested
"""An entry of the queue."""


def with_request(span: AgentSpan, texts: Attributes) -> AgentSpan:
    """Return a span with the sketch of the request that these texts hold."""
    facts = span.facts
    if not isinstance(facts, ModelFacts | InvocationFacts):
        return span
    found = requests.of_attributes(texts, texts, is_model=isinstance(facts, ModelFacts))
    return replace(span, facts=replace(facts, request=found))


class SpanQueue:
    """Spans of one processor that wait for the engine.

    Any thread may call `start`, `put` and `refuse`; one thread at a time may call the rest.

    Most spans of a host are of web servers and databases. A *non-agent span* carries no key that a
    convention reads, no event, and a name and a scope that no convention knows. All that matters of
    it is its parent, which was noted when it started. So `non_agent` keeps its id only. The hook
    recognizes one by `keys`, `names` and `scopes`, which are learnt from earlier spans. Spans that
    started before `since` (nanoseconds) take the general path: it is not known whether their start
    was noted.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._reader: Reader = engine.reader.without_requests()
        self._reads_requests = engine.reader.reads_requests
        self._plans = AttributePlans(engine.reader)
        self._queue: deque[Waiting] = deque()
        self._open = OpenSpans()
        self._lost: deque[tuple[int, int]] = deque(maxlen=MAX_OPEN)
        self._slots = deque(range(MAX_TEXTS))
        self.started = self._open.started
        self.non_agent: deque[int] = deque()
        self.keys: set[str] = set()
        self.names: set[str] = set()
        self.scopes: set[str] = set()
        self.since = NEVER
        self.latest_ns = 0
        """When one of the last non-agent spans ended."""

    def __len__(self) -> int:
        return len(self._queue) + len(self.non_agent)

    # --- On the host's threads --------------------------------------------------------------------

    def start(self, context: SpanContext | None, parent: SpanContext | None) -> None:
        if context is not None:
            self.started.extend((context.span_id, parent or context))

    def put(self, span: Any) -> int:
        """Keep a span and return how many wait beside the non-agent ones. One that cannot be read
        is counted.

        The fields are read where the SDK keeps them, under names with an underscore: the public
        properties copy and lock, which would cost ten times as much. Spans of other SDKs are read
        by their public names.
        """
        try:
            context = span._context
            parent = span._parent
            scope = span._instrumentation_scope
            name = span._name
            kind = span._kind
            start = span._start_time
            end = span._end_time
            status = span._status._status_code
            message = span._status._description
            resource = span._resource
            events = span._events._dq
            attributes = span._attributes._dict
            is_cut = span._attributes.dropped or span._events.dropped
        except AttributeError:
            context, parent, scope, name, kind, start, end, status, resource, events, attributes = (
                _public_fields(span)
            )
            message = span.status.description
            is_cut = getattr(span, "dropped_attributes", 0) or getattr(span, "dropped_events", 0)
        waiting = self._queue
        keys = tuple(attributes)
        plan = self._plans[keys]
        slots = 0
        for key in plan.texts:
            if (
                attributes[key].__class__ is not str
                or len(attributes[key]) > SMALL_TEXT
                or plan.messages
            ):
                slots = self._slots_for(attributes, plan)
                break
        if slots is None or events or message or is_cut:
            self._slots.extend(range(slots or 0))
            self._read_now(
                span, {key: attributes[key] for key in plan.keys}, plan, attributes, events
            )
            return len(waiting)
        if not plan.keys and self.started and scope is not None and name.__class__ is str:
            self._learn(scope.name, name, keys)
        kept = KeptSpan(
            plan=plan,
            slots=slots,
            links=() if parent is not None else [Link(link.context) for link in span.links],
            trace_id=context[0],
            span_id=context[1],
            trace_state=context[4],
            parent=parent,
            name=name,
            kind=kind,
            start_ns=start,
            end_ns=end,
            status=status,
            resource=resource,
            scope=scope,
            values=plan.get(attributes),
        )
        waiting.append(self._with_request(kept, plan, attributes) if plan.requests else kept)
        return len(waiting)

    def refuse(self, span: ReadableSpan) -> None:
        """Note that a span ended and will never be read: its run need not wait for it."""
        context = span.context
        if context is not None:
            self._lost.append((context.trace_id, context.span_id))

    def _learn(self, scope: str, name: str, keys: Iterable[str]) -> None:
        """Remember the keys, the name and the scope of a span without any key that a convention
        reads.
        """
        if self.since == NEVER:
            self.since = time.time_ns()
        if self._reader.is_ordinary(scope, name):
            for known, new in ((self.keys, keys), (self.names, (name,)), (self.scopes, (scope,))):
                known.update(
                    one
                    for one in new
                    if len(known) < MAX_NON_AGENT and len(one) <= MAX_NON_AGENT_CHARACTERS
                )

    def _read_now(
        self,
        span: ReadableSpan,
        attributes: Attributes,
        plan: AttributePlan,
        given: Attributes,
        events: Iterable[Any],
    ) -> None:
        read = _read(self._engine, partial(sdk.read, span), self._reader, attributes)
        if read is None:
            self.refuse(span)
        elif isinstance(read.facts, ModelFacts | InvocationFacts):
            self._queue.append(self._with_request(read, plan, given, events))
        else:
            self._queue.append(read)

    def _with_request(
        self,
        kept: KeptSpan | AgentSpan,
        plan: AttributePlan,
        attributes: Attributes,
        events: Iterable[Any] = (),
    ) -> Waiting:
        """Return what is kept of a span together with the texts that hold its request, which are
        read when the queue is drained.
        """
        given = {key: attributes[key] for key in plan.requests}
        if not given and self._reads_requests:
            given = requests.in_events(events)
        texts = {
            key: text
            for key, value in given.items()
            if (text := requests.needed_of(value)) is not None
        }
        if not texts:
            return kept
        slots = sum(
            [not isinstance(text, str) or len(text) > SMALL_TEXT for text in texts.values()]
        )
        return Requested(kept, texts, slots) if self._take(slots) else Requested(kept, {}, 0)

    def _slots_for(self, attributes: Attributes, plan: AttributePlan) -> int | None:
        """Take slots for the arguments and return how many; None if the span has text that must be
        read at once.
        """
        messages = plan.messages_of(attributes)
        for key in messages:
            if attributes[key].__class__ not in _NUMBERS:
                return None
        slots = 0
        for key in plan.texts:
            if key in messages:
                continue
            value = attributes[key]
            if value.__class__ is str:
                if len(value) > SMALL_TEXT:
                    slots += 1
                    if getsizeof(value) > MAX_TEXT_BYTES:
                        return None
            elif value.__class__ not in _NUMBERS:
                return None
        return slots if self._take(slots) else None

    def _take(self, slots: int) -> bool:
        """Take so many slots, or none where there are fewer."""
        for taken in range(slots):
            try:
                self._slots.pop()
            except IndexError:
                self._slots.extend(range(taken))
                return False
        return True

    # --- On the thread that drains ----------------------------------------------------------------

    def read_all(self, limit: int) -> Iterator[AgentSpan]:
        """Remove and read up to `limit` non-agent spans and up to `limit` others."""
        # Counted before `update`: of spans that end later it may not be known yet that they
        # started.
        counts = len(self.non_agent), len(self._queue)
        self._open.update()
        for read, count in zip((self._read_non_agent, self._read), counts, strict=True):
            for _ in range(min(limit, count)):
                try:
                    span = read()
                except IndexError:
                    break
                if span is not None:
                    yield span

    @property
    def starts_waiting(self) -> bool:
        """True if `opened_since` has spans that were started before its last call."""
        return self._open.has_new

    def opened_since(self) -> Iterator[Opened]:
        """Yield the spans that have started since the last call and have not ended."""
        self._open.update()
        yield from self._open.report()

    def lost_since(self) -> Iterator[SpanRef]:
        """Yield the spans that have ended since the last call and will never be read."""
        self._open.update()
        for _ in range(len(self._lost)):
            trace_id, span_id = self._lost.popleft()
            self._open.end(span_id)
            yield trace_id.to_bytes(TRACE_ID_BYTES), span_id.to_bytes(SPAN_ID_BYTES)

    def _read_non_agent(self) -> AgentSpan | None:
        """Read the next non-agent span; None, and counted, if its start was forgotten. `IndexError`
        if there is none.
        """
        span_id = self.non_agent.popleft()
        above = self._open.end(span_id)
        found = None if above is None else non_agent_span(span_id, above, self.latest_ns)
        if found is None:
            self._engine.count("refused", "place_unknown")
        return found

    def _read(self) -> AgentSpan | None:
        """Read the next other span; None, and counted, if it cannot be read. `IndexError` if there
        is none.
        """
        kept = self._queue.popleft()
        if isinstance(kept, Requested):
            self._slots.extend(range(kept.slots))
            if not kept.texts:
                self._engine.refused_attributes["request", "no_room"] += 1
            span = self._made_of(kept.span)
            return None if span is None else with_request(span, kept.texts)
        return self._made_of(kept)

    def _made_of(self, kept: KeptSpan | AgentSpan) -> AgentSpan | None:
        """Return the span that was kept; None, and counted, if it cannot be read."""
        if isinstance(kept, AgentSpan):
            self._open.end(int.from_bytes(kept.span_id))
            return kept
        self._slots.extend(range(kept.slots))
        found = _read(self._engine, partial(_raw_of, kept), self._reader)
        if found is None:
            self._lost.append((kept.trace_id, kept.span_id))
        else:
            self._open.end(kept.span_id)
        return found


def _raw_of(kept: KeptSpan) -> RawSpan:
    return sdk.raw(
        trace_id=kept.trace_id,
        span_id=kept.span_id,
        parent=kept.parent,
        name=kept.name,
        kind=kept.kind,
        start_ns=kept.start_ns,
        end_ns=kept.end_ns,
        status=kept.status,
        attributes=dict(zip(kept.plan.keys, kept.values, strict=True)),
        events=(),
        links=kept.links,
        scope=kept.scope,
        resource=kept.resource,
        state=kept.trace_state,
    )


def non_agent_span(span_id: int, above: SpanContext, end_ns: int) -> AgentSpan | None:
    """Return the span below `above` (its parent, or itself: a root); None if one of the ids is out
    of range.

    >>> non_agent_span(7, SpanContext(5, 7, is_remote=False), 1).parent_id
    >>> non_agent_span(8, SpanContext(5, 7, is_remote=True), 1).parent_id.hex()
    '0000000000000007'
    """
    trace_id = above[0]
    above_id = above[1]
    remote = above[2]
    if not (0 < trace_id <= LAST_TRACE and 0 < span_id <= LAST_SPAN and 0 < above_id <= LAST_SPAN):
        return None
    return AgentSpan(
        trace_id.to_bytes(TRACE_ID_BYTES),
        span_id.to_bytes(SPAN_ID_BYTES),
        None if above_id == span_id else above_id.to_bytes(SPAN_ID_BYTES),
        parent_remote=remote and above_id != span_id,
        start_ns=end_ns,
        end_ns=end_ns,
        span_kind=0,
        kind=Kind.OTHER,
        failed=False,
        facts=None,
        scope="",
        resource=_NO_RESOURCE,
    )


_NO_RESOURCE: Final = Resource()


def read_span(
    span: ReadableSpan, engine: Engine, attributes: Attributes | None = None
) -> AgentSpan | None:
    """Return the agent span; None, and counted, if it cannot be read. `attributes` replaces those
    of the span.
    """
    return _read(engine, partial(sdk.read, span), engine.reader, attributes)


def _read(
    engine: Engine,
    make: Callable[[], RawSpan],
    reader: Reader,
    attributes: Attributes | None = None,
) -> AgentSpan | None:
    try:
        raw = make()
        return reader.read(raw) if attributes is None else _read_messages(raw, attributes, reader)
    except MalformedSpan as error:
        engine.count("malformed", str(error.reason))
    except Exception as error:
        if not _READ.stops(error):
            raise
        engine.count("refused", "fault")
    return None


def _read_messages(raw: RawSpan, attributes: Attributes, reader: Reader) -> AgentSpan:
    """Read a span with messages up to a size. Whether a longer message asked for
    tools is unknown.
    """
    messages = [
        (key, text)
        for key, text in attributes.items()
        if key.startswith(reader.keys.asks) and isinstance(text, str)
    ]
    too_long = [key for key, text in messages if len(text) > MAX_MESSAGE]
    for key in too_long:
        del attributes[key]
    span = reader.read(replace(raw, attributes=attributes))
    facts = span.facts
    if (
        too_long
        and isinstance(facts, ModelFacts)
        and not facts.calls
        and not reader.keys.finish.intersection(attributes)
    ):
        return replace(span, facts=replace(facts, asked_for_tools=True))
    return span


def _public_fields(span: ReadableSpan) -> tuple[Any, ...]:
    return (
        span.context,
        span.parent,
        span.instrumentation_scope,
        span.name,
        span.kind,
        span.start_time,
        span.end_time,
        span.status.status_code,
        span.resource,
        span.events,
        dict(span.attributes or {}),
    )
