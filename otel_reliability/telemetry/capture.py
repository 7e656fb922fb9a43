"""What is kept of a span in the host's process until it is read: names, numbers, times; never the text of a prompt.

The SDK calls `on_end` on the thread of the user's agent, so taking is all that happens there: one copy of the attributes, made
in C, less what nobody wants. A span that carries text is read at once instead, and what is kept of it are hashes.
"""

from __future__ import annotations

from collections import deque
from sys import getsizeof
from typing import Any, Final, NamedTuple, TypeAlias, cast

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, StatusCode

from otel_reliability.conventions.reader import Reader
from otel_reliability.engine import Engine
from otel_reliability.errors import MalformedSpan
from otel_reliability.model.span import AgentSpan, ModelFacts, RawSpan
from otel_reliability.sources import sdk
from otel_reliability.telemetry.guard import Guard

SMALL_TEXT: Final = 128
"""Characters up to which arguments are held without a slot: a full queue of them is a few MiB."""
LARGEST_TEXT: Final = 16 * 1024
"""Bytes of arguments or a result that may be held by reference until the queue is emptied."""
SLOTS: Final = 1_920
"""So many texts may be held: 30 MiB, and with the small ones about 32."""
LARGEST_MESSAGE: Final = 64 * 1024
"""Characters of messages that are searched for tool calls."""
MAX_KEYS: Final = 8_192
"""Attribute keys whose worth is remembered; beyond, it is worked out anew."""

_READ: Final = Guard("reading a span")
_MUCH: Final = 1 << 20

PLAIN: Final = frozenset(
    {
        "gen_ai.operation.name", "gen_ai.system", "gen_ai.provider.name", "gen_ai.agent.name", "gen_ai.workflow.name",
        "gen_ai.tool.name", "gen_ai.tool.call.id", "gen_ai.request.model", "gen_ai.response.model", "gen_ai.response.id",
        "gen_ai.response.finish_reasons", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens",
        "gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens", "gen_ai.aggregated_usage.input_tokens",
        "gen_ai.aggregated_usage.output_tokens", "gen_ai.conversation.id", "session.id", "error.type", "agent_name",
        "openinference.span.kind", "tool.name", "llm.model_name", "llm.token_count.prompt", "llm.token_count.completion",
        "agent.name", "graph.node.id", "traceloop.span.kind", "traceloop.entity.name", "traceloop.workflow.name",
        "llm.request.type", "mcp.method.name",
    }
)  # fmt: skip
"""Keys of names and numbers: their values are kept as they are, unread."""
PLAIN_PREFIXES: Final = ("reliability.", "messaging.")
MESSAGES: Final = ("gen_ai.output.messages", "gen_ai.completion.", "llm.output_messages.", "ai.response.toolCalls")
"""Prefixes of the keys of messages, in which tool calls are looked for."""
FINISH: Final = frozenset({"gen_ai.response.finish_reasons", "gen_ai.response.finish_reason", "llm.finish_reason"})
ARGUMENTS: Final = frozenset(
    {
        "gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "tool_arguments", "tool_response", "gen_ai.tool.args",
        "gen_ai.tool.input", "gen_ai.tool.output", "ai.toolCall.args", "ai.toolCall.result", "tool_input",
    }
)  # fmt: skip
"""Keys of nothing but a tool's arguments or result: such text may be held until the queue is emptied."""


Queued: TypeAlias = "tuple[Any, ...] | AgentSpan"
"""The fields of a `Kept` (a bare tuple costs a third of a named one), or a span that was read at once."""


class Kept(NamedTuple):
    """What is kept of a span until it is read: what `sources.sdk` looks at, in the SDK's own words, and no text."""

    name: str
    context: SpanContext
    parent: SpanContext | None
    kind: SpanKind
    start_time: int | None
    end_time: int | None
    status_code: StatusCode
    attributes: dict[str, Any]
    links: tuple[Link, ...]
    resource: Resource
    instrumentation_scope: InstrumentationScope | None
    slots: int

    @property
    def status(self) -> Kept:
        """Where the status code is. A status has a description too, which may be anybody's text."""
        return self

    @property
    def events(self) -> tuple[Event, ...]:
        """A span that has any is read at once."""
        return ()


class Keys:
    """What attribute keys are worth, learnt as they are seen.

    Whatever is wanted and not known to be plain may be text of prompts or messages: a span that carries it is read at once.
    """

    def __init__(self, reader: Reader) -> None:
        self._wanted, self._prefixes = reader.wanted, reader.wanted_prefixes
        self.known: set[str] = set()
        self.dropped: set[str] = set()
        self.special: set[str] = set()
        """All but the plain ones."""

    def learn(self, attributes: dict[str, Any]) -> None:
        """Judge the keys not seen before. `known` comes last: other threads may be looking."""
        for key in attributes:
            if key not in self.known:
                if key not in self._wanted and not key.startswith(self._prefixes):
                    self.special.add(key)
                    self.dropped.add(key)
                elif key not in PLAIN and not key.startswith(PLAIN_PREFIXES):
                    self.special.add(key)
                self.known.add(key)


class Capture:
    """Takes spans for one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._reader = engine, engine.reader
        self._keys = Keys(self._reader)
        self._slots = deque(range(SLOTS))

    def take(self, span: ReadableSpan, context: SpanContext | None, parent: SpanContext | None) -> Queued | None:
        """What is kept of a span, or the span read at once; None, and counted, if it could not be read."""
        attributes = _copied(span.attributes)
        keys = self._keys
        if not keys.known.issuperset(attributes):
            keys = self._learnt(attributes)
        slots: int | None = 0
        if keys.dropped.issuperset(attributes):
            attributes = {}
        else:
            slots = self._without_text(attributes, keys)
        if slots is None or _has_events(span):
            return read_span(span, self._engine, attributes)
        return (
            span.name,
            context,
            parent,
            span.kind,
            span.start_time,
            span.end_time,
            span.status.status_code,
            attributes,
            () if parent is not None else tuple(Link(link.context) for link in span.links),
            span.resource,
            span.instrumentation_scope,
            slots,
        )

    def read(self, item: Queued) -> AgentSpan | None:
        """Read what was taken; None, and counted, if it cannot be read."""
        if isinstance(item, AgentSpan):
            return item
        kept = Kept._make(item)
        self._slots.extend(range(kept.slots))
        return read_span(cast("ReadableSpan", kept), self._engine)

    def _learnt(self, attributes: dict[str, Any]) -> Keys:
        if len(self._keys.known) > MAX_KEYS:
            self._keys = Keys(self._reader)
        self._keys.learn(attributes)
        return self._keys

    def _without_text(self, attributes: dict[str, Any], keys: Keys) -> int | None:
        """Drop what nobody wants, and say how many slots the arguments take; None: the span must be read at once."""
        slots = 0
        for key in keys.special.intersection(attributes):
            if key in keys.dropped:
                del attributes[key]
                continue
            value = attributes[key]
            if isinstance(value, bool | int | float):
                continue
            if key not in ARGUMENTS or not isinstance(value, str):
                slots = _MUCH
            elif len(value) > SMALL_TEXT:
                slots += 1 if getsizeof(value) <= LARGEST_TEXT else _MUCH
        return slots if self._hold(slots) else None

    def _hold(self, slots: int) -> bool:
        """Take so many slots, or none."""
        if slots >= _MUCH:
            return False
        taken = 0
        try:
            for taken in range(slots):  # noqa: B007  how many to give back
                self._slots.pop()
        except IndexError:
            self._slots.extend(range(taken))
            return False
        return True


def read_span(span: ReadableSpan, engine: Engine, attributes: dict[str, Any] | None = None) -> AgentSpan | None:
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


def _read_at_once(raw: RawSpan, attributes: dict[str, Any], reader: Reader) -> AgentSpan:
    """Read messages up to a size; what a longer one asked for is not known."""
    long = [key for key in attributes if key.startswith(MESSAGES) and _length(attributes[key]) > LARGEST_MESSAGE]
    for key in long:
        del attributes[key]
    span = reader.read(raw._replace(attributes=attributes))
    facts = span.facts
    if long and isinstance(facts, ModelFacts) and not facts.calls and not FINISH.intersection(attributes):
        return span._replace(facts=facts._replace(asked_for_tools=True))
    return span


def _copied(attributes: Any) -> dict[str, Any]:
    """The attributes as a dict of their own. The SDK's containers copy themselves in C, ten times faster than key by key."""
    return attributes.copy()


def _length(value: object) -> int:
    return len(value) if isinstance(value, str) else 0


def _has_events(span: ReadableSpan) -> bool:
    """Whether a span has events. Asking the public way copies them under a lock, at a fifth of what `on_end` may cost."""
    events = getattr(span, "_events", None)
    return bool(span.events if events is None else events)
