"""Model and tool calls as rows of plain values: what nearly all spans of a trace are, at a third of the room.

Spans of one kind within a trace are alike in most that they tell: who sent them, by which scope, for which session. So that is
kept once, and of each span only what is its own, one value after the other in one list. Columns of it are slices, and nothing
in it is an object that has to be looked at for garbage. A span that is not like the others stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Final, Self, TypeAlias

from otel_reliability.model.span import (
    AgentSpan,
    Call,
    Facts,
    Kind,
    ModelFacts,
    Session,
    SpanId,
    Tokens,
    ToolFacts,
    TraceId,
)

ID, PARENT, START, END, FAILED = range(5)
"""What every row begins with."""
MODEL, ASKED_MODEL, INPUT, OUTPUT, ASKS, RESPONSE, MORE = range(5, 12)
"""What follows of a model call. `MORE`: what few tell, None for the others (`More`)."""
NAME, CALL_ID, ARGUMENTS, SOFTLY, RESULT, EFFECT = range(5, 11)
"""What follows of a tool call. `SOFTLY`: whether the call failed, which its span may not say."""

ID_BYTES: Final = 8
ROW_BYTES: Final = 400
"""What a row is reckoned to weigh, with what it alone holds: its ids, its times, its strings."""
_NO_MORE: Final = (False, (), None, None, False)
_MODEL, _TOOL = Kind.MODEL, Kind.TOOL
_OWN: Final = slice(AgentSpan._fields.index("span_id"), AgentSpan._fields.index("scope"))
_SHARED: Final = slice(AgentSpan._fields.index("scope"), None)
_SPEAKS: Final = slice(3, 6)
"""Of what is shared: notes, judgements and a link, which belong to one span alone."""
_SILENT: Final = (None, (), None)
_tuple: Final[Callable[..., Any]] = tuple.__new__  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]

Standing: TypeAlias = tuple["tuple[Any, ...] | None", bool | None, int, SpanId | None]
"""What rows are alike in: their `shared`, `remote` and `span_kind`; and a parent that most have."""


class Rows(list[Any]):
    """Spans of one kind, alike in `remote`, `span_kind` and `shared`: all from their scope on."""

    __slots__ = ("parent", "remote", "shared", "span_kind")

    width: ClassVar[int]
    kind: ClassVar[Kind]

    def __init__(self) -> None:
        self.shared: tuple[Any, ...] | None = None
        self.remote: bool | None = None
        self.span_kind = 0
        self.parent: SpanId | None = None

    @classmethod
    def again(cls, items: Iterable[Any], standing: Standing) -> Self:
        """Rows of these values, one after the other, and this standing."""
        found = cls()
        found.extend(items)
        found.shared, found.remote, found.span_kind, found.parent = standing
        return found

    @property
    def standing(self) -> Standing:
        """What is kept beside the list."""
        return self.shared, self.remote, self.span_kind, self.parent

    @property
    def scope(self) -> str | None:
        """Who tells them, None before there is one."""
        return None if self.shared is None else self.shared[0]

    @property
    def session(self) -> Session | None:
        """The session that all of them tell."""
        return None if self.shared is None else self.shared[2]

    def part(self, end: int) -> Self:
        """The same up to a place in the list, in a list of its own."""
        return self.again(self[:end], self.standing)

    def can_join(self, more: Self) -> bool:
        """Whether others are like these in all that rows are alike in; none are."""
        if not self or not more:
            return True
        return more.shared == self.shared and more.remote is self.remote and more.span_kind == self.span_kind

    def join(self, more: Self) -> None:
        """Take in others that are like these."""
        if more and not self:
            self.shared, self.remote, self.span_kind, self.parent = more.standing
        self.extend(more)

    def column(self, at: int) -> list[Any]:
        """One value of each of them."""
        return self[at :: self.width]

    def spans(self, trace_id: TraceId, start: int = 0, end: int | None = None) -> Iterator[AgentSpan]:
        """The spans as they came, from and to a place in the list."""
        width = self.width
        for at in range(start, len(self) if end is None else end, width):
            span_id, parent, began, ended, failed, *rest = self[at : at + width]
            yield _tuple(
                AgentSpan,
                (trace_id, span_id, parent, self.remote, began, ended, self.span_kind, self.kind, failed,
                 self._facts(rest), *(self.shared or ())),
            )  # fmt: skip

    def with_spans(self, spans: list[AgentSpan]) -> Self | None:
        """These and others that say more, or that other scopes tell, as rows for a look; None where one cannot be a row."""
        if not spans:
            return self
        found = type(self)()
        found.extend(self)
        for span in spans:
            found.shared = span[_SHARED]
            found.remote, found.span_kind = span.parent_remote, span.span_kind
            if not found.take(span):
                return None
        return found

    def take(self, span: AgentSpan) -> bool:
        """Take in a span. False: it is not like the others, or tells what has no place in a row."""
        raise NotImplementedError

    def begins(self, span: AgentSpan) -> bool:
        """Whether a span with other `shared` is the first, which the others are to be like."""
        shared = span[_SHARED]
        if self.shared is not None or shared[_SPEAKS] != _SILENT:
            return False
        self.shared, self.remote, self.span_kind = shared, span.parent_remote, span.span_kind
        return True

    def _facts(self, rest: list[Any]) -> Facts:
        raise NotImplementedError


class Models(Rows):
    """Model calls."""

    __slots__ = ()

    width = 12
    kind = Kind.MODEL

    def take(self, span: AgentSpan) -> bool:
        if span[_SHARED] != self.shared and not self.begins(span):
            return False
        own: tuple[Any, ...] = span[_OWN]
        span_id, parent, remote, start, end, kind, _, failed, facts = own
        if remote is not self.remote or kind != self.span_kind:
            return False
        if type(facts) is not ModelFacts:
            return False
        model, asked, (used, wrote), asks, *_, response, _ = facts
        if parent == self.parent:
            parent = self.parent
        else:
            self.parent = parent
        self.extend((span_id, parent, start, end, failed, model, asked, used, wrote, asks, response, more_of(facts)))
        return True

    def _facts(self, rest: list[Any]) -> Facts:
        model, asked, used, wrote, asks, response, more = rest
        messages, calls, limit, cost, no_tools = more or _NO_MORE
        return ModelFacts(model, asked, Tokens(used, wrote), asks, messages, calls, limit, cost, response, no_tools)


class Tools(Rows):
    """Tool spans that tell one call, with its name."""

    __slots__ = ()

    width = 11
    kind = Kind.TOOL

    def take(self, span: AgentSpan) -> bool:
        if span[_SHARED] != self.shared and not self.begins(span):
            return False
        own: tuple[Any, ...] = span[_OWN]
        span_id, parent, remote, start, end, kind, _, failed, facts = own
        if remote is not self.remote or kind != self.span_kind:
            return False
        if type(facts) is not ToolFacts or not is_row(facts):
            return False
        name, call_id, arguments, softly, result, effect = facts.calls[0]
        if parent == self.parent:
            parent = self.parent
        else:
            self.parent = parent
        self.extend((span_id, parent, start, end, failed, name, call_id, arguments, softly, result, effect))
        return True

    def _facts(self, rest: list[Any]) -> Facts:
        return ToolFacts((Call(*rest),))


def more_of(facts: ModelFacts) -> tuple[Any, ...] | None:
    """What few model calls tell, None where this one tells nothing of it."""
    _, _, _, _, messages, calls, limit, cost, _, no_tools = facts
    if messages or calls or no_tools or cost is not None or limit is not None:
        return messages, calls, limit, cost, no_tools
    return None


def is_row(facts: ToolFacts) -> bool:
    """Whether a tool span tells one call, with its name."""
    return not facts.finish and len(facts.calls) == 1 and bool(facts.calls[0].name)


def ids_of(models: Models, tools: Tools, others: Iterable[AgentSpan]) -> list[SpanId]:
    """The ids of rows and other spans."""
    found = models[ID :: Models.width] + tools[ID :: Tools.width]
    found += [span.span_id for span in others]
    return found


def packed(models: Models, tools: Tools, others: Iterable[AgentSpan]) -> bytes | None:
    """The same, one after the other; None where one is not of the usual length."""
    ids = ids_of(models, tools, others)
    found = b"".join(ids)
    return found if len(found) == ID_BYTES * len(ids) and max(map(len, ids), default=0) <= ID_BYTES else None


def are_distinct(models: Models, tools: Tools, others: Iterable[AgentSpan]) -> bool:
    """Whether they surely differ."""
    ids = ids_of(models, tools, others)
    return len(set(ids)) == len(ids)


def hang_on(models: Models, tools: Tools, parent: SpanId) -> bool:
    """Whether all rows have this parent."""
    return {*models[PARENT :: Models.width], *tools[PARENT :: Tools.width]} <= {parent}


def take_rows(spans: Sequence[AgentSpan], at: int, models: Models, tools: Tools, room: int) -> int:
    """Take the spans of one trace from a place on, at most so many, up to the first that is no row. How many they were."""
    trace_id = spans[at].trace_id
    begun, end = at, min(len(spans), at + room)
    while at < end:
        span = spans[at]
        kind = span.kind
        if span.trace_id != trace_id:
            break
        if not ((kind is _MODEL and models.take(span)) or (kind is _TOOL and tools.take(span))):
            break
        at += 1
    return at - begun
