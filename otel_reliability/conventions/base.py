"""The protocol of a convention, and its answer about a span.

A convention reads one family of instrumentations. It either does not know a span (None), or says
what it is; kind OTHER is an answer too: "mine, and nothing you need". The first convention that
answers wins, so a span that carries two conventions counts once. Conventions keyed on an
instrumentation scope are asked before those keyed on attributes.

An answer is made once for all spans of one scope and one set of keys that agree in what the
convention asked for: the values of an operation, a model, a tool's name. What differs from span to
span (ids, token counts, arguments) is not asked for; its place in the answer holds an `Own`, which
says from which attributes it is read, and how.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from otel_reliability.model.span import (
    EXCEPTIONS,
    STATUS_ERROR,
    Call,
    Facts,
    Kind,
    RawEvent,
    RawLog,
    RawSpan,
)

EventReader: TypeAlias = Callable[[Sequence[RawEvent]], Any]
"""Finds something in the events of a span; without events nothing."""


class Own(Struct, frozen=True):
    """Placeholder for a part of an answer that differs from span to span: `Templates` fills it.

    `reader` gets the value of each of the `keys` in turn, until it returns something. `joined`: it
    gets the values of all of them at once, None for an absent one. `of_events`: it gets the span's
    events, and then these values. `once`: what it makes is remembered for equal values, so it must
    hold no text of theirs.
    """

    reader: Callable[..., Any]
    keys: tuple[str, ...]
    joined: bool = False
    once: bool = False
    of_events: bool = False

    def within(self, keys: AbstractSet[str]) -> Own:
        """Return the same for spans of these keys, without those that they do not have."""
        return (
            self
            if self.joined
            else replace(self, keys=tuple(key for key in self.keys if key in keys))
        )

    def of(
        self, given: tuple[Any, ...], value: Callable[[Any], Any], events: Sequence[RawEvent] = ()
    ) -> Any:
        """Return what is made of the values of the keys (None: absent), which `value` decodes, and
        of the events.
        """
        if self.joined:
            known = [None if one is None else value(one) for one in given]
            return self.reader(events, *known) if self.of_events else self.reader(*known)
        for one in given:
            if one is not None and (found := self.reader(value(one))) is not None:
                return found
        return None


def own(reader: Callable[[Any], Any], *keys: str) -> Any:
    """Read a part from the first of these keys of which the reader makes something."""
    return Own(reader, keys)


def own_of_all(reader: Callable[..., Any], *keys: str) -> Any:
    """Read a part from the values of all of these keys; the reader gets None for an absent one."""
    return Own(reader, keys, joined=True)


def own_of_events(reader: Callable[..., Any], *keys: str) -> Any:
    """Read a part from the span's events and the values of all of these keys."""
    return Own(reader, keys, joined=True, of_events=True)


def own_value(*keys: str) -> Any:
    """Take the value of the first of these keys that is present, whatever it is."""
    return Own(itself, keys)


def itself(value: Any) -> Any:
    """The value."""
    return value


def reported_call(
    name: str | None,
    call_id: Any = None,
    arguments: Any = None,
    result: Any = None,
    *,
    failed: bool = False,
) -> Any:
    """A tool call whose arguments and result are values still: the reader hashes them."""
    return Call(name, call_id, arguments, failed=failed, result=result)


class Answer(Struct, frozen=True):
    """An answer of a convention about a span.

    - `facts`: of `model.span.Facts`; any part of them may be an `Own`, and so may the whole.
    - `failed`: None where the status decides. `fails_with_call`: the span failed also where the
      result of its call is a failure to the user.
    - `session`: an id from the convention's own keys (the common ones are read for all spans).
    """

    kind: Kind
    facts: Any = None
    failed: bool | None = None
    session: Any = None
    fails_with_call: bool = False


class EventAnswer(Struct, frozen=True, kw_only=True):
    """An answer of a convention about a log event: the agent span that it stands for.

    - `conversation`: the id of the session; None: the event adds to the model call in whose span it
      was written. `prompt`: the id of the prompt it belongs to; None: the one current at its time.
    - `identity`: what distinguishes it from every other event of its conversation, besides its
      time.
    - `facts`: of a call with its arguments and result as values still.
    - `duration_ms`: it ended at the time of the event and began so much earlier.
    - `subagent`: the id of the subagent that did it. `starts`: the id of the conversation that this
      call started.
    - `evaluation`: name, score and label of an evaluation of the run.
    - `request`: what the user asked, where it began a run: text still.
    """

    kind: Kind
    facts: Facts | None = None
    conversation: str | None = None
    identity: tuple[object, ...] = ()
    prompt: str | None = None
    duration_ms: float = 0.0
    failed: bool = False
    subagent: str | None = None
    starts: str | None = None
    evaluation: tuple[str, float | None, str | None] | None = None
    request: object = None


NOTHING: Final = Answer(Kind.OTHER)
"""Recognized, and nothing: a graph node, an event exported as a span, a merged tool span."""


class SpanView:
    """A span as a convention sees it; it records what the answer depends on.

    `asked` are the keys whose values were asked for, `derived` the readers of values of which only
    the result was; `by_name` and `by_kind`: whether the span's name or kind were; `in_events`:
    readers of its events of which only the result was, `failures` those of a span that failed.
    Which keys there are is the same for all spans of an answer.
    """

    __slots__ = (
        "_span",
        "asked",
        "by_kind",
        "by_name",
        "derived",
        "failures",
        "in_events",
        "scope",
        "status",
    )

    def __init__(self, span: RawSpan, scope: str) -> None:
        self._span = span
        self.scope = scope
        self.status = span.status
        self.asked: set[str] = set()
        self.derived: set[tuple[Callable[[Any], Any], str]] = set()
        self.in_events: set[EventReader] = set()
        self.failures: set[EventReader] = set()
        self.by_name = self.by_kind = False

    @property
    def name(self) -> str:
        self.by_name = True
        return self._span.name

    @property
    def span_kind(self) -> int:
        """The span's kind, as OTLP numbers it."""
        self.by_kind = True
        return self._span.span_kind

    def get(self, key: str, /) -> Any:
        """The value of a key, of those that few values stand under."""
        if key not in self._span.attributes:
            return None
        self.asked.add(key)
        return self._span.attributes.get(key)

    def found_in(self, key: str, reader: Callable[[Any], str | None]) -> str | None:
        """Return what a reader finds in a value that differs from span to span: a text or None."""
        if key not in self._span.attributes:
            return reader(None)
        self.derived.add((reader, key))
        return reader(self._span.attributes.get(key))

    def found_in_events(self, reader: EventReader) -> Any:
        """Return what a reader finds in the span's events: texts, a truth value or None."""
        self.in_events.add(reader)
        return reader(self._span.events)

    def found_in_failure(self, reader: EventReader) -> Any:
        """Return what a reader finds in the events of a span whose status is ERROR, or whose events
        were asked for anyway; in those of any other span nothing.
        """
        if self.status != STATUS_ERROR:
            return self.found_in_events(reader) if self.in_events else reader(())
        self.failures.add(reader)
        return reader(self._span.events)

    def __contains__(self, key: object) -> bool:
        return key in self._span.attributes

    def __iter__(self) -> Iterator[str]:
        return iter(self._span.attributes)


def has_exception(events: Sequence[RawEvent]) -> bool:
    """Return whether events of a span report an exception."""
    return any(event.name in EXCEPTIONS for event in events)


class Convention(Protocol):
    """One family of instrumentations, in one file, its names included.

    - `name`: as `inspect` and the documentation print it.
    - `scopes`: prefixes of the instrumentation scopes it reads; empty: any scope.
    - `plain`, `content`, `tool_content`, `messages`, `prefixes`: the attributes it may read besides
      `needs` and `conversation`, by what their values are (`conventions.keys`). Nothing else of a
      span is kept for it.
    - `request`: keys of the input in which the request of a run lies (`conventions.requests`), the
      most specific first.
    - `asks`: beginnings of the keys of a model call's messages that hold which tools it asks for.
      `finish`: keys of why it ended, without its messages.
    - `needs`: keys of which a span must have one. `names`: beginnings of its name. A convention
      that gives either is asked only about spans that meet one of the two.
    - `conversation`: attributes that name the session, for agents whose prompts are not a trace
      each: spans and log events of one session are put together, and a span without a parent that
      has one link lies below it.
    - `event_scopes`: prefixes of the scopes of its log events.
    """

    name: str
    scopes: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()
    content: tuple[str, ...] = ()
    tool_content: tuple[str, ...] = ()
    tool_mark: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    request: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    finish: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    conversation: tuple[str, ...] = ()
    event_scopes: tuple[str, ...] = ()

    def read(self, span: SpanView) -> Answer | None:
        """Return what the span is, or None where this convention does not know it."""
        ...

    def read_event(self, log: RawLog) -> EventAnswer | None:
        """Return what a log event of its scopes stands for, or None where that is nothing."""
        return None
