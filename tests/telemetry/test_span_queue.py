from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from sys import getsizeof
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    Link,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
)

from otel_reliability import conventions
from otel_reliability.config import AssemblySettings, MappingSettings, Settings
from otel_reliability.conventions import requests
from otel_reliability.conventions.base import SpanView
from otel_reliability.conventions.reader import Reader
from otel_reliability.engine import Engine
from otel_reliability.model.span import KIND_CLIENT, AgentSpan, InvocationFacts, Kind, ModelFacts
from otel_reliability.sources import sdk
from otel_reliability.telemetry import open_spans, span_queue
from otel_reliability.telemetry.guard import Guard
from otel_reliability.telemetry.open_spans import OpenSpans
from otel_reliability.telemetry.span_queue import (
    MAX_MESSAGE,
    MAX_NON_AGENT,
    MAX_PLANS,
    MAX_TEXT_BYTES,
    MAX_TEXTS,
    SMALL_TEXT,
    AttributePlan,
    AttributePlans,
    Requested,
    SpanQueue,
    non_agent_span,
)
from otel_reliability.testing import FakeClock
from otel_reliability.testing import span as raw_span
from tests.telemetry.spans import TOOL, ended

CALL_ARGUMENTS = "gen_ai.tool.call.arguments"


def made() -> tuple[SpanQueue, Engine]:
    clock = FakeClock()
    engine = Engine(clock=clock, wall=clock.wall)
    return SpanQueue(engine), engine


def held(queue: SpanQueue) -> list[object]:
    """What lies in the queue: spans that were read at once, and of the others field by field and
    value by value.
    """
    fields: list[object] = []
    for kept in queue._queue:
        span = kept.span if isinstance(kept, Requested) else kept
        fields += [span] if isinstance(span, AgentSpan) else astuple(span)
        if isinstance(kept, Requested):
            fields.append(kept.texts)
    return fields


SCOPES = (
    "test",
    "openinference.instrumentation.langchain",
    "strands.telemetry",
    "haystack",
    "crewai.telemetry",
)
VALUES = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        [
            "invoke_agent",
            "execute_tool",
            "chat",
            "TOOL",
            "AGENT",
            "LLM",
            "tool",
            "agent",
            '{"a": 1}',
            "x" * 300,
        ]
    ),
    st.integers(0, 99),
    st.booleans(),
    st.lists(st.text(max_size=4), max_size=3).map(tuple),
)
KEYS = st.sampled_from(
    [
        "gen_ai.operation.name",
        "gen_ai.agent.name",
        "gen_ai.tool.name",
        CALL_ARGUMENTS,
        "gen_ai.tool.call.result",
        "gen_ai.output.messages",
        "gen_ai.response.finish_reasons",
        "gen_ai.usage.input_tokens",
        "openinference.span.kind",
        "input.value",
        "output.value",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name",
        "traceloop.span.kind",
        "traceloop.entity.input",
        "session.id",
        "http.url",
        "reliability.task.id",
        "error.type",
    ]
)


@st.composite
def sdk_spans(draw: st.DrawFn) -> ReadableSpan:
    """Spans as the SDK's, with keys that conventions read and others, and values of any type."""
    parent = draw(
        st.one_of(st.none(), st.builds(SpanContext, st.just(7), st.integers(1, 9), st.booleans()))
    )
    links = draw(
        st.lists(
            st.builds(
                Link, st.builds(SpanContext, st.integers(1, 9), st.integers(1, 9), st.just(True))
            ),
            max_size=2,
        )
    )
    state = TraceState([("ot", "th:8")]) if draw(st.booleans()) else None
    start = draw(st.integers(1, 10**9))
    return ReadableSpan(
        draw(st.sampled_from(["span", "execute_tool search", "invoke_agent a", "chat m"])),
        context=SpanContext(7, draw(st.integers(10, 99)), False, TraceFlags(1), state),
        parent=parent,
        resource=Resource({"service.name": "shop"}),
        attributes=draw(st.dictionaries(KEYS, VALUES, max_size=8)),
        links=links,
        kind=draw(st.sampled_from(SpanKind)),
        status=Status(draw(st.sampled_from(StatusCode))),
        start_time=start,
        end_time=start + draw(st.integers(0, 10**9)),
        instrumentation_scope=InstrumentationScope(draw(st.sampled_from(SCOPES)), "1"),
    )


@given(st.lists(sdk_spans(), max_size=5))
def test_what_is_kept_reads_as_the_whole_span_does(spans: list[ReadableSpan]) -> None:
    queue, engine = made()
    whole = [engine.reader.read(sdk.read(span)) for span in spans]
    for span in spans:
        queue.put(span)

    assert len(queue) == len(spans)
    assert [queue._read() for _ in spans] == whole
    with pytest.raises(IndexError):
        queue._read()


class Elsewhere:
    """A span that keeps nothing where the SDK does, but tells the same."""

    def __init__(self, span: ReadableSpan) -> None:
        self.told = span

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.told, name)


def test_an_sdk_that_keeps_its_fields_elsewhere_is_asked_in_public() -> None:
    span = ended(
        {**TOOL, "gen_ai.tool.name": "search", CALL_ARGUMENTS: '{"q": 1}', "http.url": "u"}
    )
    queue, engine = made()
    queue.put(span)
    queue.put(cast("ReadableSpan", Elsewhere(span)))
    private, public = queue._queue

    assert private == public
    assert queue._read() == queue._read() == engine.reader.read(sdk.read(span))


def texts(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    items: Iterable[Any] = ()
    if isinstance(value, list | tuple | set | frozenset):
        items = cast("Iterable[Any]", value)
    elif isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
    for item in items if depth < 8 else ():
        yield from texts(item, depth + 1)


CANARY = "the canary sings"
MESSAGE_KEYS = [
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.system_instructions",
    "gen_ai.prompt",
    "gen_ai.completion",
    "gen_ai.prompt.0.content",
    "gen_ai.completion.0.content",
    "llm.input_messages.0.message.content",
    "db.query.text",
    "llm.output_messages.0.message.content",
    "input.value",
    "output.value",
    "traceloop.entity.input",
    "traceloop.entity.output",
    "ai.prompt",
    "ai.prompt.messages",
    "ai.response.text",
    "ai.response.toolCalls",
    "haystack.component.input",
    "haystack.component.output",
    "langfuse.observation.input",
    "langfuse.observation.output",
    "mlflow.spanInputs",
    "prompt",
    "mlflow.spanOutputs",
    "gcp.vertex.agent.llm_request",
    "gcp.vertex.agent.llm_response",
    "response",
    "all_messages_events",
]


@pytest.mark.parametrize("key", MESSAGE_KEYS)
@pytest.mark.parametrize("shape", ["text", "json"])
def test_message_text_is_never_held(key: str, shape: str) -> None:
    value = (
        CANARY
        if shape == "text"
        else json.dumps([{"role": "user", "parts": [{"type": "text", "content": CANARY}]}])
    )
    for attributes in (
        {"gen_ai.operation.name": "chat"},
        {"openinference.span.kind": "LLM"},
        {"traceloop.span.kind": "task"},
        {},
    ):
        queue, _ = made()
        queue.put(ended({**attributes, key: value}, "chat model"))
        if key in requests.keys_of(
            [key], reader().keys.requests
        ):  # held until the drain, for the sketch of the request
            list(queue.read_all(1))
        assert not [found for found in texts(held(queue)) if CANARY in found]


def test_event_and_status_text_is_never_held() -> None:
    queue, _ = made()
    keeping: list[ReadableSpan] = [ended({}, "failing")]
    span = keeping[0]
    span._events = [*span.events]
    span._status = Status(StatusCode.ERROR, CANARY)
    queue.put(span)

    assert not [found for found in texts(held(queue)) if CANARY in found]


@pytest.mark.parametrize(
    "size",
    [10, SMALL_TEXT, SMALL_TEXT + 1, MAX_TEXT_BYTES - 200, MAX_TEXT_BYTES + 1, 10 * MAX_TEXT_BYTES],
)
def test_arguments_of_any_size_have_the_same_hash(size: int) -> None:
    queue, engine = made()
    arguments = json.dumps({"q": "x" * size})
    span = ended({**TOOL, "gen_ai.tool.name": "search", CALL_ARGUMENTS: arguments})
    queue.put(span)

    assert (arguments in list(texts(held(queue)))) == (getsizeof(arguments) <= MAX_TEXT_BYTES)
    assert queue._read() == engine.reader.read(sdk.read(span))


def test_so_many_bytes_of_arguments_are_held_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the greatest texts that may be held as many as there are slots. A span for which they do
    not suffice is read at once and takes none, and what is drained gives its slots back.
    """
    assert MAX_TEXTS * MAX_TEXT_BYTES == 30 * 2**20
    monkeypatch.setattr(span_queue, "MAX_TEXTS", 3)
    queue, engine = made()
    greatest = "a" * (MAX_TEXT_BYTES - getsizeof(""))
    one = ended({**TOOL, CALL_ARGUMENTS: greatest})
    two = ended({**TOOL, CALL_ARGUMENTS: greatest, "gen_ai.tool.call.result": greatest})
    over = ended({**TOOL, CALL_ARGUMENTS: greatest + "a"})

    def bytes_held() -> int:
        return sum(getsizeof(text) for text in texts(held(queue)) if len(text) > SMALL_TEXT)

    held_after: list[int] = []
    spans = (over, two, two, one, one)
    for span in spans:
        queue.put(span)
        held_after.append(bytes_held() // MAX_TEXT_BYTES)
    read = [queue._read() for _ in spans]
    queue.put(two)

    assert held_after == [0, 2, 2, 3, 3]
    assert read == [engine.reader.read(sdk.read(span)) for span in spans]
    assert bytes_held() == 2 * MAX_TEXT_BYTES


def test_a_span_with_events_takes_no_slot() -> None:
    queue, _ = made()
    plain = ended({**TOOL, CALL_ARGUMENTS: "a" * 2_000})
    failing = ended({**TOOL, CALL_ARGUMENTS: "a" * 2_000})
    failing._events = [*failing.events, Event("exception")]
    for _ in range(MAX_TEXTS):
        queue.put(failing)
    queue.put(plain)

    assert [isinstance(field, AgentSpan) for field in held(queue)].count(True) == MAX_TEXTS


def test_what_the_limits_of_the_sdk_dropped_is_counted() -> None:
    queue, engine = made()
    limits = SpanLimits(max_span_attributes=2, max_events=1, max_links=0)
    tracer = TracerProvider(span_limits=limits).get_tracer("scope")
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    with tracer.start_as_current_span("chat m", attributes=chat) as whole:
        pass
    with tracer.start_as_current_span("chat m", attributes={"a": 1, **chat}) as cut:
        pass
    with tracer.start_as_current_span("chat m", attributes=chat) as eventful:
        eventful.add_event("one")
        eventful.add_event("two")
        eventful.add_event("three")
    for span in (whole, cut, eventful):
        assert isinstance(span, ReadableSpan)
        queue.put(span)

    found = [queue._read() for _ in range(3)]
    assert [one and one.notes and one.notes.dropped for one in found] == [None, 1, 2]
    assert found == [
        engine.reader.read(sdk.read(span))
        for span in (whole, cut, eventful)
        if isinstance(span, ReadableSpan)
    ]


def call_message(size: int) -> dict[str, Any]:
    call = {"type": "tool_call", "id": "1", "name": "search", "arguments": "{}"}
    message = {"role": "assistant", "parts": [{"type": "text", "content": "x" * size}, call]}
    return {"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps([message])}


def test_calls_in_messages_are_read_at_once() -> None:
    queue, _ = made()
    queue.put(ended(call_message(100), "chat model"))
    span = queue._read()

    assert span is not None
    assert isinstance(span.facts, ModelFacts)
    assert [call.name for call in span.facts.calls] == ["search"]


def test_a_message_that_is_too_long_is_unknown() -> None:
    """Its calls are not known, so the run's tools are not observable: never an empty path. A finish
    reason knows better.
    """
    queue, _ = made()
    long = call_message(MAX_MESSAGE)
    for attributes in (long, {**long, "gen_ai.response.finish_reasons": ("stop",)}):
        queue.put(ended(attributes, "chat model"))
    facts = [span.facts for span in (queue._read(), queue._read()) if span is not None]

    assert [(f.calls, f.asked_for_tools) for f in facts if isinstance(f, ModelFacts)] == [
        ((), True),
        ((), False),
    ]


def test_a_span_that_cannot_be_read_is_counted_and_harms_no_other() -> None:
    queue, engine = made()
    good = ended({**TOOL, "gen_ai.tool.name": "search"})
    bad = ReadableSpan(
        "bad", context=SpanContext(1, 1, False), resource=good.resource, attributes={}, start_time=5
    )
    for span in (bad, good):
        queue.put(span)

    assert queue._read() is None
    assert queue._read() is not None
    assert [key for key in engine.accounts if key[0] == "malformed"] == [("malformed", "end_time")]
    assert list(queue.lost_since()) == [((1).to_bytes(16), (1).to_bytes(8))]


def test_a_name_that_is_no_text_is_none() -> None:
    queue, _ = made()
    span = ended({})
    span._name = 7  # pyright: ignore[reportAttributeAccessIssue]
    queue.start(span.context, span.parent)
    queue.put(span)
    queue._open.update()
    found = queue._read()

    assert found is not None
    assert found.kind is Kind.OTHER
    assert not queue.names


def test_an_error_of_ours_while_reading_costs_one_span(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Guard, "loud", False)
    queue, engine = made()
    span = ended({**TOOL, "gen_ai.tool.name": "search"})
    for _ in range(2):
        queue.put(span)
    with monkeypatch.context() as planted:
        planted.setattr(queue._reader, "read", None)
        assert queue._read() is None

    assert queue._read() is not None
    assert engine.accounts["refused", "fault"] == 1


@pytest.mark.parametrize("name", ["plain", "at once", "malformed", "refused"])
def test_a_span_that_ended_is_not_told_as_open(name: str) -> None:
    queue, _ = made()
    span = ended(call_message(10) if name == "at once" else {**TOOL, "gen_ai.tool.name": "search"})
    if name == "malformed":
        span._start_time = 0
    queue.start(span.context, span.parent)
    if name == "refused":
        queue.refuse(span)
    else:
        queue.put(span)
        queue._open.update()
        queue._read()
    lost = list(queue.lost_since())

    assert len(lost) == (name in {"malformed", "refused"})
    assert list(queue.opened_since()) == []
    assert len(queue._open) == 0


# --- Non-agent spans ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "name"),
    [
        ("web", "execute_tool search"),
        ("web", "invoke_agent a"),
        ("web", "chat gpt"),
        ("web", "crewai.workflow"),
        ("haystack", "haystack.pipeline.run"),
        ("llamaindex.opentelemetry", "FunctionAgent.run"),
        ("gcp.vertex.agent", "invocation"),
    ],
)
def test_spans_that_a_convention_may_know_are_not_learnt(scope: str, name: str) -> None:
    """A convention may know them by name alone, or by scope."""
    queue, _ = made()
    queue._learn(scope, name, ("http.route",))

    assert (queue.keys, queue.names, queue.scopes) == (set(), set(), set())


def test_names_that_conventions_know_are_never_those_of_non_agent_spans() -> None:
    nameless = [one for one in conventions.TABLE if one.names and not one.scopes]
    assert {one.name for one in nameless} == {"OpenLLMetry", "span name"}
    names = {"crewai.workflow", "text_completion m", "generate_content m"}
    names |= {
        f"{operation} x"
        for operation in ("execute_tool", "invoke_agent", "invoke_workflow", "chat")
    }
    read = {
        name
        for name in names
        for one in nameless
        if one.read(SpanView(raw_span(1, name=name, kind=KIND_CLIENT), "")) is not None
    }

    assert read == names
    assert not any(Engine().reader.is_ordinary("", name) for name in read)


def test_memory_of_non_agent_spans_is_bounded() -> None:
    queue, _ = made()
    for number in range(MAX_NON_AGENT + 50):
        queue._learn("web", f"GET /{number}", (f"key-{number}",))
    queue._learn("s" * 257, "GET", ())

    assert (len(queue.names), len(queue.keys), queue.scopes) == (
        MAX_NON_AGENT,
        MAX_NON_AGENT,
        {"web"},
    )


@pytest.mark.parametrize(
    ("trace_id", "span_id", "above"),
    [(0, 1, 2), (1, 0, 2), (2**128, 1, 2), (1, 2**64, 2), (1, 2, 2**64), (1, 2, 0)],
)
def test_non_agent_span_with_an_id_out_of_range_is_none(
    trace_id: int, span_id: int, above: int
) -> None:
    assert non_agent_span(span_id, SpanContext(trace_id, above, is_remote=False), 1) is None


# --- Open spans -----------------------------------------------------------------------------------


ROOT = SpanContext(7, 1, False)


def started(*spans: int) -> OpenSpans:
    found = OpenSpans()
    for span_id in spans:
        found.started.extend((span_id, ROOT))
    return found


def reported(spans: OpenSpans) -> set[tuple[int, int | None]]:
    spans.update()
    found = list(spans.report())
    assert all(int.from_bytes(trace_id) == 7 for trace_id, _, _ in found)
    return {
        (int.from_bytes(one), None if parent is None else int.from_bytes(parent))
        for _, one, parent in found
    }


@given(
    st.lists(st.tuples(st.sampled_from(["start", "end", "report"]), st.integers(1, 6)), max_size=40)
)
def test_each_open_span_is_reported_once(steps: list[tuple[str, int]]) -> None:
    spans = started()
    known = set[int]()
    new = set[int]()
    for step, span_id in steps:
        if step == "start" and span_id not in known:
            spans.started.extend((span_id, ROOT))
            known.add(span_id)
            new.add(span_id)
        elif step == "end":
            spans.update()
            assert (spans.end(span_id) is ROOT) == (span_id in known)
            known.discard(span_id)
            new.discard(span_id)
        elif step == "report":
            assert reported(spans) == {(one, None if one == 1 else 1) for one in new}
            new.clear()
    assert len(spans) == len(known)


def test_memory_of_open_spans_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_spans, "MAX_OPEN", 10)
    spans = started(*range(1, 31))
    assert len(spans) == 10
    assert {one for one, _ in reported(spans)} == set(range(21, 31))
    for span_id in range(31, 61):
        spans.started.extend((span_id, ROOT))
        spans.update()

    assert len(reported(spans)) == 10
    assert len(spans) <= 20


def test_interrupt_between_two_pops_loses_one_span_only() -> None:
    spans = started(2, 3)
    spans.started.popleft()
    spans.update()

    assert spans.end(3) is ROOT


# --- Attribute plans ------------------------------------------------------------------------------


def reader(settings: Settings | None = None) -> Reader:
    return Reader(settings or Settings(), conventions.TABLE)


def plan_for(*keys: str, settings: Settings | None = None) -> AttributePlan:
    return AttributePlans(reader(settings))[keys]


def test_keys_of_the_user_are_kept() -> None:
    settings = Settings(
        mapping=MappingSettings(task=("ticket",)),
        agent_key=("tenant",),
        assembly=AssemblySettings(run_key="job"),
    )

    assert plan_for("reliability.branch.refund").keys == ("reliability.branch.refund",)
    assert plan_for("ticket", "tenant", "job", "other", settings=settings).keys == (
        "ticket",
        "tenant",
        "job",
    )


def test_number_of_plans_is_bounded() -> None:
    plans = AttributePlans(reader())
    plan = plans["gen_ai.tool.name", "a"]
    assert plans["gen_ai.tool.name", "a"] is plan

    for number in range(MAX_PLANS + 10):
        assert plans[(f"key-{number}",)].keys == ()
    assert len(plans) <= MAX_PLANS


TOOL_SPANS = [
    {"openinference.span.kind": "TOOL", "tool.name": "t", "input.value": CANARY},
    {"langfuse.observation.type": "tool", "langfuse.observation.input": CANARY},
    {"traceloop.span.kind": "tool", "traceloop.entity.input": CANARY, "metadata": CANARY},
    {"mlflow.spanType": '"TOOL"', "mlflow.spanInputs": CANARY, "metadata": "{}"},
    {**TOOL, "input.value": CANARY, "output.value": CANARY},
    {"logfire.msg_template": "Function: {name}", "name": "t", "input": CANARY},
]


@pytest.mark.parametrize("attributes", TOOL_SPANS, ids=str)
def test_arguments_of_a_tool_wait_and_messages_under_the_same_keys_do_not(
    attributes: dict[str, Any],
) -> None:
    """What a tool got and gave is not read on the host's thread, whatever the convention."""
    mark = next(iter(attributes))
    queue, engine = made()
    span = ended({key: value for key, value in attributes.items() if key != "metadata"})
    queue.put(span)
    queue.put(ended({**attributes, mark: "chat"}))
    waiting, at_once = queue._queue

    assert CANARY in list(texts(waiting))
    assert isinstance(at_once.span if isinstance(at_once, Requested) else at_once, AgentSpan)
    assert queue._read() == engine.reader.read(sdk.read(span))


def test_a_request_in_a_sequence_is_read_as_it_is_of_the_whole_span() -> None:
    span = ended(
        {
            "gen_ai.operation.name": "invoke_agent",
            "traceloop.entity.input": ("refund", "order", "x" * 100),
        }
    )
    queue, engine = made()
    queue.put(span)
    read = queue._read()
    assert read == engine.reader.read(sdk.read(span))
    assert read is not None
    assert isinstance(read.facts, InvocationFacts)
    assert read.facts.request is not None
