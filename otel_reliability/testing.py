"""Builders for tests, ours and yours: spans and runs with small numbers for ids and seconds for
times, and a clock to wind.

Every builder has a default for all that a test does not care about, so that a test shows only what
it is about. Ids are the numbers you give (`span(2, parent=1)`), times are seconds after `EPOCH_NS`.

>>> tree = [
...     agent(1),
...     model(2, 1, start=0.1),
...     tool(3, 1, "search", start=0.5),
...     tool(4, 1, "book", start=0.7, failed=True),
... ]
>>> [(s.kind.value, s.span_id[-1], s.failed) for s in tree]
[('agent', 1, False), ('model', 2, False), ('tool', 3, False), ('tool', 4, True)]
>>> run(["search", "book"]).path
('search', 'book')
"""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from otel_reliability.model.row import BASELINE, Path, Retries, Row
from otel_reliability.model.run import AgentKey, CloseReason, Outcome, Run, ToolCall, Tools
from otel_reliability.model.span import (
    KIND_CLIENT,
    KIND_INTERNAL,
    STATUS_UNSET,
    AgentSpan,
    Call,
    Evaluation,
    Facts,
    HandoffFacts,
    InvocationFacts,
    Kind,
    ModelFacts,
    RawEvent,
    RawSpan,
    Resource,
    SpanId,
    Tokens,
    ToolFacts,
    TraceId,
)
from otel_reliability.model.tools import has_effect
from otel_reliability.sources.otlp_write import logs_json, traces_json
from otel_reliability.windows.rows import PathTable, row_of

T = TypeVar("T")

SECOND: Final = 1_000_000_000
EPOCH_NS: Final = 1_700_000_000 * SECOND
"""The second 0 of every builder: 14 November 2023, 22:13:20 UTC."""

RESOURCE: Final = Resource.of({"service.name": "shop", "deployment.environment.name": "test"})
KEY: Final = AgentKey("", "shop", "test", "agent")


class FakeClock:
    """A clock that stands still until it is wound: call it for seconds, ask `wall` for Unix
    nanoseconds.

    >>> clock = FakeClock()
    >>> clock.advance(2.5)
    >>> clock(), clock.wall() - EPOCH_NS
    (2.5, 2500000000)
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds

    def __call__(self) -> float:
        return self._seconds

    def wall(self) -> int:
        """The Unix time in nanoseconds: `EPOCH_NS` when the clock shows 0."""
        return at(self._seconds)

    def advance(self, seconds: float) -> None:
        """Wind the clock. Backwards too: clocks do."""
        self._seconds += seconds


def at(seconds: float) -> int:
    """The Unix time in nanoseconds, that many seconds after `EPOCH_NS`."""
    return EPOCH_NS + round(seconds * SECOND)


def trace_id(number: int) -> TraceId:
    """A trace id from a small number (not 0, which is no id)."""
    return number.to_bytes(16)


def span_id(number: int) -> SpanId:
    """A span id from a small number (not 0, which is no id)."""
    return number.to_bytes(8)


def span(
    number: int = 1,
    parent: int | None = None,
    *,
    trace: int = 1,
    name: str = "span",
    kind: int = KIND_INTERNAL,
    start: float = 0.0,
    end: float | None = None,
    status: int = STATUS_UNSET,
    remote: bool | None = False,
    attributes: Mapping[str, Any] | None = None,
    events: Iterable[tuple[str, Mapping[str, Any]]] = (),
    links: Iterable[tuple[int, int]] = (),
    scope: str = "test",
    resource: Resource = RESOURCE,
    trace_state: str = "",
) -> RawSpan:
    """A span as a source gives it. It lasts one second by default; its events happen as it starts.

    >>> span(2, 1, attributes={"gen_ai.operation.name": "chat"}).parent_id.hex()
    '0000000000000001'
    """
    return RawSpan(
        trace_id=trace_id(trace),
        span_id=span_id(number),
        parent_id=None if parent is None else span_id(parent),
        name=name,
        span_kind=kind,
        start_ns=at(start),
        end_ns=at(start + 1 if end is None else end),
        status=status,
        parent_remote=remote,
        attributes=attributes or {},
        events=tuple(RawEvent(event, at(start), facts) for event, facts in events),
        links=tuple((trace_id(to_trace), span_id(to_span)) for to_trace, to_span in links),
        scope=scope,
        scope_version="1",
        resource=resource,
        trace_state=trace_state,
    )


def agent_span(
    kind: Kind,
    facts: Facts | None,
    number: int,
    parent: int | None,
    *,
    trace: int = 1,
    start: float = 0.0,
    end: float | None = None,
    remote: bool | None = False,
    **fields: Any,
) -> AgentSpan:
    """Return a span in our vocabulary, of any kind. It lasts one second by default; any other of
    its fields by name.
    """
    made = AgentSpan(
        trace_id=trace_id(trace),
        span_id=span_id(number),
        parent_id=None if parent is None else span_id(parent),
        parent_remote=remote,
        start_ns=at(start),
        end_ns=at(start + 1 if end is None else end),
        span_kind=KIND_INTERNAL,
        kind=kind,
        failed=False,
        facts=facts,
        scope="test",
        resource=RESOURCE,
    )
    return replace(made, **fields)


def agent(
    number: int, parent: int | None = None, called: str | None = "agent", **place: Any
) -> AgentSpan:
    """An agent's invocation."""
    return agent_span(Kind.AGENT, InvocationFacts(called), number, parent, **place)


def workflow(
    number: int, parent: int | None = None, called: str | None = None, **place: Any
) -> AgentSpan:
    """A workflow: a container of agents."""
    return agent_span(Kind.WORKFLOW, InvocationFacts(called), number, parent, **place)


def model(
    number: int,
    parent: int | None = None,
    tokens: tuple[int | None, int | None] = (100, 10),
    called: str = "model-1",
    **place: Any,
) -> AgentSpan:
    """A model call, with its input and output tokens."""
    place.setdefault("span_kind", KIND_CLIENT)
    return agent_span(
        Kind.MODEL, ModelFacts(called, tokens=Tokens(*tokens)), number, parent, **place
    )


def tool(
    number: int,
    parent: int | None = None,
    called: str | None = "tool",
    *,
    call_id: str | None = None,
    arguments: bytes | None = b"arguments",
    result: bytes | None = None,
    **place: Any,
) -> AgentSpan:
    """A tool call. `arguments` and `result` stand for their hashes: equal bytes are equal
    arguments, None is unknown.
    """
    told = Call(called, call_id, arguments, place.get("failed", False), result)
    return agent_span(Kind.TOOL, ToolFacts((told,)), number, parent, **place)


def handoff(number: int, parent: int | None, to: str | None, **place: Any) -> AgentSpan:
    """A hand-off to another agent."""
    return agent_span(Kind.HANDOFF, HandoffFacts(to), number, parent, **place)


def other(number: int, parent: int | None = None, **place: Any) -> AgentSpan:
    """A span that no convention recognised: a web request, a query."""
    return agent_span(Kind.OTHER, None, number, parent, **place)


def call(name: str = "tool", second: float = 0.0, **facts: Any) -> ToolCall:
    """A tool call of a run, a second long; any of its fields by name.

    >>> call("search", ok=False).ok
    False
    """
    usual = ToolCall(
        name, True, False, False, 0, "agent", at(second), at(second + 1), b"arguments", None, None
    )
    made = replace(usual, **facts)
    return (
        made
        if "has_effect" in facts
        else replace(made, has_effect=made.ok and has_effect(name, made.effect))
    )


def run(path: Sequence[str] | None = (), number: int = 1, **facts: Any) -> Run:
    """A complete run of those tools, one a second; None: they cannot be observed. Any of its fields
    by name.

    The n-th run begins in second 100·n, so runs built in order are in order.

    >>> run(["search"], 2, task_id="refund").run_id, run(None).tools.value
    ('run-2', 'unobservable')
    """
    first = 100.0 * number
    calls = (
        None
        if path is None
        else tuple(call(name, first + second) for second, name in enumerate(path))
    )
    usual = Run(
        run_id=f"run-{number}",
        trace_id=trace_id(number),
        root_span_id=span_id(1),
        key=KEY,
        session_id=None,
        task_id=None,
        trial=None,
        condition=BASELINE,
        input_class=None,
        branches=(),
        nested=False,
        implicit=False,
        incomplete=False,
        start_ns=at(first),
        end_ns=at(first + len(path or ()) + 1),
        path=None if path is None else tuple(path),
        tools=Tools.UNOBSERVABLE if path is None else Tools.OBSERVED,
        tool_calls=calls,
        model_calls=(),
        input_tokens=None,
        output_tokens=None,
        token_pressure=None,
        arguments_known=True,
        outcome=Outcome.COMPLETED,
        outcome_source="end",
        confidence=None,
        cost=None,
        violations=None,
        evaluations=(),
        weight=1,
        span_count=1 + len(path or ()),
        closed_by=CloseReason.ROOT,
    )
    return replace(usual, **facts)


_PATHS: Final = PathTable()
_NUMBERS: Final = itertools.count(1)


def path_of(names: str | Sequence[str]) -> Path:
    """Return a path of these steps, or of one string of them with spaces between. All paths made
    here are comparable.

    >>> path_of("search read search").counts
    (('read', 1), ('search', 2))
    """
    return _PATHS.intern(tuple(names.split() if isinstance(names, str) else names))


def row(
    path: str | Sequence[str] | None = (),
    number: int | None = None,
    *,
    retries: int = 0,
    repeats: int = 0,
    branches: Mapping[str, str] | None = None,
    **fields: Any,
) -> Row:
    """Return the row of the n-th run of those tools (None: they cannot be observed); by name, any
    other field of the row.

    `retries` is the length of its one retry chain. Without a number it comes after all rows so
    made, if none has a hundred steps; its effects are not known.

    >>> row("search reply", task="refund").path.names
    ('search', 'reply')
    """
    steps = path.split() if isinstance(path, str) else path
    made = row_of(run(steps, next(_NUMBERS) if number is None else number), _PATHS)
    chain = (
        None
        if path is None
        else Retries(retries, retries, "tool" if retries else None, 0, 0, repeats)
    )
    pairs = tuple(sorted((branches or {}).items()))
    return replace(made, retries=chain, branches=pairs, **{"effects": None, **fields})


def rows_of(*paths: str | Sequence[str] | None, **fields: Any) -> list[Row]:
    """Return a row for each path, in this order, with these fields.

    >>> [each.path.names for each in rows_of("search", "search reply")]
    [('search',), ('search', 'reply')]
    """
    return [row(path, **fields) for path in paths]


def write_otlp(
    path: str | FilePath,
    spans: Iterable[RawSpan] = (),
    evaluations: Iterable[Evaluation] = (),
    *,
    batch: int = 50,
) -> FilePath:
    """Write a file of OTLP-JSON lines, `batch` spans a line, then the evaluations; `.gz` is packed.
    Gives the path back.
    """
    file = FilePath(path)
    requests = itertools.chain(
        map(traces_json, _batches(spans, batch)), map(logs_json, _batches(evaluations, batch))
    )
    text = "".join(json.dumps(request) + "\n" for request in requests)
    file.write_bytes(gzip.compress(text.encode()) if file.suffix == ".gz" else text.encode())
    return file


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(itertools.islice(rest, size)):
        yield batch
