from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.conventions import genai
from otel_reliability.conventions.room import Room
from otel_reliability.conventions.stencils import LONGEST, OWN, SHARED, STENCIL_BYTES, Stencils
from otel_reliability.model.attributes import HeldAttributes
from otel_reliability.model.span import AgentSpan, Kind, RawSpan
from otel_reliability.sources.otlp import decode_traces
from otel_reliability.testing import span, traces_protobuf
from tests.conventions.reading import reader

SCOPES = ("", "pydantic-ai", "opentelemetry.instrumentation.genai.langchain", "smolagents", "strands.telemetry.tracer")
NAMES = ("", "crewai.workflow", "execute_tool search", "invoke_agent support", "chat gpt")
OPERATIONS = sorted(
    genai.AGENT_OPERATIONS
    | genai.WORKFLOW_OPERATIONS
    | genai.MODEL_OPERATIONS
    | genai.TOOL_OPERATIONS
    | {"embeddings", ""}
)
TEXTS = st.sampled_from(
    [
        "search",
        "final_answer",
        "(merged tools)",
        "null",
        "",
        "stop",
        "tool_calls",
        "error",
        "length",
        "x" * 300,
        "0d27ee01-4866-4a9b-989c-3ecf31ed47aa",
    ]
)
SHARED_VALUES = TEXTS | st.lists(TEXTS, max_size=2) | st.integers(-1, 1)
OWN_VALUES = (
    TEXTS | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.booleans()
    | st.sampled_from(['{"a": 1}', '{"q": "<redacted>"}', "__REDACTED__", "Error: none", '{"note": "' + "a b c d " * 9 + '"}'])
)  # fmt: skip


@st.composite
def plain_spans(draw: st.DrawFn) -> RawSpan:
    """Spans that carry little but the keys of stencils."""
    attributes: dict[str, Any] = {genai.OPERATION: draw(st.sampled_from(OPERATIONS) | st.just(3))}
    attributes |= draw(st.dictionaries(st.sampled_from(SHARED[1:]), SHARED_VALUES))
    attributes |= draw(st.dictionaries(st.sampled_from(OWN), OWN_VALUES))
    attributes |= draw(
        st.dictionaries(st.sampled_from(["server.port", "session.id", "operation.cost"]), OWN_VALUES, max_size=1)
    )
    return span(
        name=draw(st.sampled_from(NAMES)),
        scope=draw(st.sampled_from(SCOPES)),
        status=draw(st.integers(0, 2)),
        parent=draw(st.none() | st.just(9)),
        attributes=attributes,
        trace_state=draw(st.sampled_from(["", "ot=th:8"])),
        events=draw(st.sampled_from([(), [("exception", {})]])),
    )


SETTINGS: list[dict[str, Any]] = [
    {},
    {"tools": {"ignore": ["final*"], "rename": {"sea*": "look"}, "soft_errors": ["^Error"]}},
    {"mapping": {"session": ["gen_ai.response.id"]}},
    {"agent_key": ["gen_ai.agent.name"]},
    {"assembly": {"run_key": "gen_ai.response.id"}},
]
READERS = [reader(**settings) for settings in SETTINGS]


@given(st.lists(plain_spans(), min_size=1, max_size=4))
def test_what_a_stencil_gives_is_what_the_conventions_say(raws: list[RawSpan]) -> None:
    """Whatever spans came before, under whatever settings: the short way agrees with the long one."""
    for lazy in decode_traces(traces_protobuf(raws)).spans:
        plain = lazy._replace(attributes=dict(lazy.attributes))

        for own in READERS:
            assert own.read(lazy) == own.read(plain)


@given(st.lists(plain_spans(), min_size=1, max_size=4))
def test_what_a_stencil_gives_of_a_programs_own_span_is_what_the_conventions_say(raws: list[RawSpan]) -> None:
    """Values as the SDK holds them, of any type: 1 is no True, and a list is a tuple."""
    for raw in raws:
        held = {key: _unchanging(value) for key, value in raw.attributes.items()}

        for own in READERS:
            assert repr(own.read(raw._replace(attributes=HeldAttributes(held)))) == repr(
                own.read(raw._replace(attributes=held))
            )


def _unchanging(value: Any) -> Any:
    return tuple(cast("list[str]", value)) if isinstance(value, list) else value


def test_values_that_equal_one_another_share_no_stencil() -> None:
    """1 is True to a dictionary; what cannot be looked up at all is read at length."""
    own = reader()
    given = [1, True, 1.0, "1", {"a": 1}, ["1"], ("1", 1)]
    for key in ("gen_ai.request.model", "gen_ai.conversation.id"):
        for value in (*given, *reversed(given)):
            attributes = {"gen_ai.operation.name": "chat", "gen_ai.tool.name": "search", key: value}
            raw = span(attributes=attributes)

            assert own.read(raw._replace(attributes=HeldAttributes(attributes))) == own.read(raw)


def undecoded(**attributes: Any) -> RawSpan:
    """A span as it comes in a request; dots in its keys are written as double underscores."""
    named = {key.replace("__", "."): value for key, value in attributes.items()}
    (raw,) = decode_traces(traces_protobuf([span(attributes=named)])).spans
    return raw


def kept(own: Any) -> list[Stencils]:
    """The stencils that a reader has by now."""
    plans = [plan for found in own._by_scope.values() for plan in found.known.values()]
    return [plan.stencils for plan in plans if plan.stencils is not None]


def test_spans_that_differ_in_their_own_values_share_a_stencil() -> None:
    """Another token count needs no second look by the conventions; another model does."""
    own = reader()
    for model, tokens in (("a", 1), ("a", 2), ("b", 3)):
        own.read(
            undecoded(gen_ai__operation__name="chat", gen_ai__request__model=model, gen_ai__usage__input_tokens=tokens)
        )

    (stencils,) = kept(own)
    assert len(stencils._well) == 2


@pytest.mark.parametrize("name", ["final_answer", "search", "book", None])
def test_ignored_and_renamed_tools(name: str | None) -> None:
    """The user's rules on tools hold whichever way a span is read, also for a tool whose name only the span's name tells."""
    own = reader(tools={"ignore": ["final*"], "rename": {"sea*": "look"}})
    attributes = {"gen_ai.operation.name": "execute_tool"} | ({} if name is None else {"gen_ai.tool.name": name})
    raw = span(name="execute_tool fly", attributes=attributes)
    (lazy,) = decode_traces(traces_protobuf([raw])).spans
    calls: Any = own.read(raw).facts

    assert own.read(lazy) == own.read(lazy) == own.read(raw)
    assert [call.name for call in calls.calls] == {
        "final_answer": [],
        "search": ["look"],
        "book": ["book"],
        None: ["fly"],
    }[name]


def test_each_conversation_is_its_own() -> None:
    """Spans in a row share the session of one conversation, and of no other."""
    own = reader()
    ids = ["a", "a", "b", "null", "a", 7]
    found = [own.read(undecoded(gen_ai__operation__name="chat", gen_ai__conversation__id=one)).session for one in ids]

    assert [None if session is None else session.id for session in found] == ["a", "a", "b", None, "a", "7"]


def test_agents_share_stencils() -> None:
    """However many agents there are, their calls of a model are read by what those share, and each agent has its name."""
    own = reader()
    for number in range(50):
        own.read(undecoded(gen_ai__operation__name="chat", gen_ai__agent__name=f"agent {number}"))
        found: Any = own.read(
            undecoded(gen_ai__operation__name="invoke_agent", gen_ai__agent__name=f"agent {number}")
        ).facts
        assert found.name == f"agent {number}"

    assert sum(len(stencils._well) for stencils in kept(own)) == 2


@pytest.mark.parametrize("other", ["reliability.task.id", "openinference.span.kind", "session.id", "input.value"])
def test_spans_with_other_keys_that_matter_have_none(other: str) -> None:
    """What a stencil knows nothing of is left to the conventions."""
    own = reader()
    own.read(undecoded(**{"gen_ai.operation.name": "chat", other: "x"}))

    assert kept(own) == []


def test_invented_names_cost_no_memory_without_end() -> None:
    """Ever new tools are read like any, and what is kept of them is bounded; what has long names is not kept."""
    own = reader()
    own._room = Room(own._by_scope.clear, most=100 * STENCIL_BYTES)
    for number in range(300):
        found = own.read(undecoded(gen_ai__operation__name="execute_tool", gen_ai__tool__name=f"tool {number}"))
        assert name_of(found) == f"tool {number}"
        assert sum(len(stencils._well) for stencils in kept(own)) <= 100
    sizes = [len(stencils._well) for stencils in kept(own)]
    own.read(undecoded(gen_ai__operation__name="execute_tool", gen_ai__tool__name="t" * LONGEST))

    assert [len(stencils._well) for stencils in kept(own)] == sizes


def name_of(found: AgentSpan) -> str | None:
    """The tool that a span called."""
    assert found.kind is Kind.TOOL
    facts: Any = found.facts
    return facts.calls[0].name
