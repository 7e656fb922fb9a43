"""What the reader makes of a span, whatever convention knows it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from otel_reliability.config import Settings
from otel_reliability.conventions import TABLE
from otel_reliability.conventions.base import (
    NOTHING,
    Answer,
    Convention,
    SpanView,
    has_exception,
    own_of_events,
    reported_call,
)
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.conventions.reader import Reader, threshold
from otel_reliability.model.span import (
    KIND_CLIENT,
    KIND_CONSUMER,
    KIND_PRODUCER,
    STATUS_ERROR,
    Kind,
    Notes,
    RawEvent,
    RawSpan,
    Resource,
    Session,
    ToolFacts,
)
from otel_reliability.testing import span, span_id, trace_id
from tests.conventions.reading import KEY, READER, read, reader, run, runs

OPERATION = "gen_ai.operation.name"
OPENINFERENCE = "openinference.span.kind"
TRACELOOP = "traceloop.span.kind"


@pytest.mark.parametrize(
    ("scope", "attributes", "name", "convention"),
    [
        ("x", {OPENINFERENCE: "TOOL", OPERATION: "execute_tool"}, "search", "OpenInference"),
        ("x", {TRACELOOP: "tool", OPERATION: "execute_tool"}, "search", "OpenLLMetry"),
        ("x", {OPENINFERENCE: "TOOL", TRACELOOP: "tool"}, "search", "OpenInference"),
        (
            "x",
            {"ai.operationId": "ai.toolCall", OPERATION: "execute_tool"},
            "search",
            "Vercel AI SDK",
        ),
        ("x", {OPERATION: "execute_tool", "mcp.method.name": "tools/call"}, "search", "OTel GenAI"),
        ("x", {"mcp.method.name": "tools/call", "gen_ai.tool.name": "search"}, "search", "MCP"),
        ("x", {}, "execute_tool search", "span name"),
        ("com.anthropic.claude_code.tracing", {}, "claude_code.tool", "Claude Code"),
        (
            "langfuse-sdk",
            {"langfuse.observation.type": "tool", OPERATION: "execute_tool"},
            "search",
            "Langfuse",
        ),
        (
            "x",
            {"langfuse.observation.type": "TOOL", OPERATION: "execute_tool"},
            "search",
            "OTel GenAI",
        ),
        ("gcp.vertex.agent", {OPERATION: "execute_tool"}, "search", "Google ADK"),
        (
            "strands.telemetry.tracer",
            {OPENINFERENCE: "TOOL", OPERATION: "execute_tool"},
            "search",
            "Strands",
        ),
        ("x", {"http.request.method": "GET"}, "GET /", None),
    ],
)
def test_the_first_convention_that_knows_a_span_reads_it(
    scope: str, attributes: dict[str, Any], name: str, convention: str | None
) -> None:
    assert READER.convention_of(span(name=name, attributes=attributes, scope=scope)) == convention


def test_a_span_with_two_conventions_counts_once() -> None:
    agent = {
        OPENINFERENCE: "AGENT",
        "agent.name": "support",
        OPERATION: "invoke_agent",
        "gen_ai.agent.name": "support",
    }
    tokens = {"llm.token_count.prompt": 100, "gen_ai.usage.input_tokens": 100}
    tool = {
        OPENINFERENCE: "TOOL",
        "tool.name": "search",
        OPERATION: "execute_tool",
        "gen_ai.tool.name": "search",
    }
    spans = (
        span(1, attributes=agent, end=9),
        span(2, 1, attributes={OPENINFERENCE: "LLM", OPERATION: "chat", **tokens}, start=1, end=2),
        span(3, 1, attributes=tool, start=3, end=4),
    )
    found = run(*spans)

    assert len(runs(*spans)) == 1
    assert (found.key.agent, found.path, found.input_tokens, len(found.model_calls)) == (
        "support",
        ("search",),
        100,
        1,
    )


def test_one_call_told_by_two_libraries_counts_once() -> None:
    """A tool span around another of the same call, as AutoGen under OpenInference makes them:
    failed if either says so.
    """
    agent = span(1, attributes={OPERATION: "invoke_agent", "gen_ai.agent.name": "support"}, end=9)
    outer = {OPENINFERENCE: "TOOL", "tool.name": "search", "input.value": '{"q": 1}'}
    inner = {OPERATION: "execute_tool", "gen_ai.tool.name": "search", "gen_ai.tool.call.id": "c1"}
    found = run(
        agent,
        span(2, 1, attributes=outer, scope="openinference.instrumentation.autogen", start=1, end=4),
        span(3, 2, attributes=inner, start=2, end=3, status=STATUS_ERROR),
    )

    assert found.path == ("search",)
    assert [(one.ok, one.arguments is not None) for one in found.tool_calls or ()] == [
        (False, True)
    ]


def test_place_times_and_sender_are_taken_as_they_are() -> None:
    raw = span(
        2,
        1,
        trace=7,
        name="GET",
        start=1,
        end=3,
        status=STATUS_ERROR,
        kind=KIND_CLIENT,
        remote=True,
        scope="httpx",
    )
    found = read(raw)

    for kept in ("trace_id", "span_id", "parent_id", "parent_remote", "start_ns", "end_ns"):
        assert getattr(found, kept) == getattr(raw, kept)
    assert found.span_kind == raw.span_kind
    assert (found.kind, found.facts, found.failed, found.scope, found.resource) == (
        Kind.OTHER,
        None,
        True,
        "httpx",
        raw.resource.sender("1"),
    )


def test_whatever_is_kept_has_a_bounded_length() -> None:
    long = "x" * 100_000
    longer = "x" * 100_001
    about = {
        OPERATION: "invoke_agent",
        "gen_ai.agent.name": long,
        "gen_ai.conversation.id": long,
        "reliability.task.id": long,
        "reliability.input.class": long,
        f"reliability.branch.{long}": long,
        "reliability.violations": [f"{long}:low"],
    }
    resource = Resource.of(
        {"service.name": long, "service.namespace": long, "deployment.environment.name": long}
    )
    found = read(span(1, attributes=about, resource=resource, scope=long))
    other = read(span(1, attributes={**about, "gen_ai.agent.name": longer}, resource=resource))

    assert len(repr(found)) < 5_000
    assert found.facts != other.facts


@pytest.mark.parametrize(
    ("attributes", "session"),
    [
        ({"gen_ai.conversation.id": "a", "session.id": "b", "threadId": "c"}, Session(0, "a")),
        ({"session.id": "b", "threadId": "c"}, Session(1, "b")),
        ({"threadId": "c"}, Session(2, "c")),
        ({"gen_ai.conversation.id": "null", "session.id": "", "threadId": "c"}, Session(2, "c")),
        ({"gen_ai.conversation.id": 7}, Session(0, "7")),
        ({"gen_ai.conversation.id": ["a"]}, None),
        ({}, None),
    ],
)
def test_sessions_stand_by_the_worth_of_their_key(
    attributes: dict[str, Any], session: Session | None
) -> None:
    assert (
        read(span(attributes={OPERATION: "chat", **attributes}, scope="@mastra/otel")).session
        == session
    )


def test_what_belongs_to_an_agents_identity() -> None:
    resource = Resource.of({"service.name": "shop", "service.version": "1.2", "shard": 7})
    raw = span(attributes={"service.version": "1.3"}, resource=resource)

    assert read(raw, agent_key=["shard", "service.version", "region"]).extra == (
        ("shard", "7"),
        ("service.version", "1.3"),
        ("region", ""),
    )
    assert read(raw).extra == ()


def test_a_run_key_is_hashed() -> None:
    key: dict[str, Any] = {"assembly": {"run_key": "order.id"}}

    assert read(span(attributes={"order.id": "o-7"}), **key).notes == Notes(
        run_key=Hasher(KEY).text("o-7")
    )
    assert read(span(attributes={"order.id": ["o-7"]}), **key).notes is None
    assert read(span(attributes={"order.id": "o-7"})).notes is None


def hop(
    kind: int,
    *,
    links: int = 1,
    parent: int | None = None,
    attributes: dict[str, Any] | None = None,
) -> RawSpan:
    return span(
        2,
        parent,
        kind=kind,
        links=[(9, number + 1) for number in range(links)],
        attributes=attributes,
    )


def test_the_link_of_a_parentless_messaging_hop_is_its_parent() -> None:
    assert (
        read(hop(KIND_PRODUCER)).link == read(hop(KIND_CONSUMER)).link == (trace_id(9), span_id(1))
    )
    assert read(hop(KIND_CLIENT, attributes={"messaging.system": "kafka"})).link == (
        trace_id(9),
        span_id(1),
    )
    assert read(hop(KIND_CLIENT)).link is None
    assert read(hop(KIND_CONSUMER, links=2)).link is None
    assert read(hop(KIND_CONSUMER, parent=1)).link is None


@pytest.mark.parametrize(
    ("trace_state", "found"),
    [
        ("", None),
        ("ot=th:0", 0),
        ("ot=th:8", 2**55),
        ("vendor=x,ot=rv:1;th:c", 3 * 2**54),
        (" ot=th:fffffffffffffe ", 2**56 - 2),
        ("ot=th:", None),
        ("ot=th:123456789abcdef", None),
        ("ot=th:8G", None),
        ("vendor=th:8", None),
        ("ot", None),
    ],
)
def test_sampling_thresholds(trace_state: str, found: int | None) -> None:
    """1 to 14 lower-case hexadecimal digits, padded on the right; anything else is no threshold."""
    assert read(span(trace_state=trace_state)).threshold == threshold(trace_state) == found


def test_scopes_beyond_the_limit_are_still_read() -> None:
    own = reader()
    spans = [
        span(attributes={OPERATION: "chat"}, scope=f"scope-{number}") for number in range(5_000)
    ]

    assert {own.read(one).kind for one in spans} == {Kind.MODEL}
    assert len(own._scopes) < len(spans)


def test_a_hash_key_from_the_settings_makes_hashes_agree() -> None:
    raw = span(
        attributes={
            OPERATION: "execute_tool",
            "gen_ai.tool.name": "t",
            "gen_ai.tool.call.arguments": "{}",
        }
    )
    keyed = Settings(hash_key="ab" * 32)
    keyless = Settings()

    assert Reader(keyed, TABLE).read(raw) == Reader(keyed, TABLE).read(raw)
    assert Reader(keyless, TABLE).read(raw) != Reader(keyless, TABLE).read(raw)


class Asked(Convention):
    """A convention that counts how often it is asked; its answer depends on the kind of a span, or
    on a mark found in a value.
    """

    name = "asked"
    messages = ("text",)

    def __init__(self, *, by_kind: bool) -> None:
        self.by_kind = by_kind
        self.times = 0

    def read(self, span: SpanView) -> Answer:
        self.times += 1
        is_model = (
            span.span_kind == KIND_CLIENT if self.by_kind else span.found_in("text", is_marked)
        )
        return Answer(Kind.MODEL) if is_model else NOTHING


def is_marked(text: str) -> str | None:
    """A reader of a value that differs from span to span."""
    return "marked" if text.endswith("!") else None


@pytest.mark.parametrize("by_kind", [True, False])
def test_answer_by_kind_or_by_what_is_found_in_value_is_remembered(by_kind: bool) -> None:
    """The convention is asked about the first spans only."""
    convention = Asked(by_kind=by_kind)
    reader = Reader(Settings(), [convention])
    spans = [
        span(kind=kind, attributes={"text": f"{number}{mark}"})
        for number in range(5)
        for kind, mark in ((KIND_CLIENT, "!"), (KIND_CONSUMER, ""))
    ]

    assert [reader.read(one).kind for one in spans] == [Kind.MODEL, Kind.OTHER] * 5
    assert convention.times < 5


class InEvents(Convention):
    """A convention of spans whose events say whether they are a tool's, and its arguments."""

    name = "in_events"
    messages = ("text",)

    def __init__(self) -> None:
        self.times = 0

    def read(self, span: SpanView) -> Answer:
        self.times += 1
        if not span.found_in_events(has_exception):
            return NOTHING
        call = reported_call("search", arguments=own_of_events(last_name, "text"))
        return Answer(Kind.TOOL, ToolFacts((call,)))


def last_name(events: Sequence[RawEvent], text: str) -> str:
    return f"{events[-1].name} {text}"


def test_answer_by_what_is_found_in_events_is_remembered() -> None:
    """What each span has of its own is read from its own events."""
    convention = InEvents()
    reader = Reader(Settings(), [convention], Hasher(b"key"))
    spans = [
        span(attributes={"text": "a"}, events=[("exception", {}), (f"call {number}", {})])
        for number in range(10)
    ]
    found = [reader.read(one).facts for one in [*spans, *spans[:5]]]

    assert found[10:] == found[:5]
    assert len(set(found)) == 10
    assert reader.read(span(attributes={"text": "a"}, events=[("other", {})])).kind is Kind.OTHER
    assert convention.times < 5


class MakesReaders(Convention):
    """A convention that makes a reader anew for every span."""

    name = "makes_readers"
    messages = ("text",)

    def __init__(self) -> None:
        self.asked = 0

    def read(self, span: SpanView) -> Answer:
        def is_model(text: object) -> str | None:
            self.asked += 1
            return "model" if text == "model" else None

        return Answer(Kind.MODEL if span.found_in("text", is_model) else Kind.OTHER)


def test_a_convention_that_makes_its_readers_anew_costs_the_same_for_every_span() -> None:
    convention = MakesReaders()
    reader = Reader(Settings(), [convention])
    texts = ("model", "other") * 200
    kinds = [reader.read(span(attributes={"text": text})).kind for text in texts]

    assert kinds == [Kind.MODEL, Kind.OTHER] * 200
    assert convention.asked <= 20 * len(texts)


class AsksEvents(Convention):
    """A convention that asks some spans for their events."""

    name = "asks_events"
    messages = ("text",)

    def read(self, span: SpanView) -> Answer:
        is_deep = span.get("text") == "deep" and span.found_in_events(bool)
        return Answer(Kind.MODEL) if is_deep else NOTHING


def test_answer_that_is_asked_for_again_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otel_reliability.conventions.reader.MAX_MEMORY", 20_000)
    reader = Reader(Settings(), [AsksEvents()])
    for text in ("deep", *["plain"] * 100):
        reader.read(span(attributes={"text": text}, events=(("note", {}),)))
    assert reader.generation == 0


def test_answer_is_not_shared_if_its_plan_learned_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two threads that ask for the first spans of a plan at once: the one that was looked up before
    the other's question was known is not kept for spans that answer it otherwise.
    """
    own = reader()
    plan = own.plan(own.scope("x"), (OPENINFERENCE,))
    ask = own.ask
    one = span(attributes={OPENINFERENCE: "TOOL"}, scope="x")

    def meanwhile(*given: Any) -> Any:
        monkeypatch.undo()
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(own.read, one).result().kind is Kind.TOOL
        return ask(*given)

    monkeypatch.setattr(own, "ask", meanwhile)
    assert own.read(one).kind is Kind.TOOL
    assert plan.version
    assert not plan.templates

    assert own.read(one).kind is Kind.TOOL
    assert len(plan.templates) == 1


def test_reader_is_released_with_what_it_hashed() -> None:
    own = reader()
    own.read(span(attributes={OPENINFERENCE: "TOOL", "input.value": "x"}, scope="x"))
    hasher = weakref.ref(own.hasher)
    del own
    gc.collect()

    assert hasher() is None
