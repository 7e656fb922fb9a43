"""Nothing a span carries can raise, and nothing of a wrong type is believed."""

from __future__ import annotations

import enum
import json
import types
from collections.abc import Mapping
from typing import Any, Final, Union, cast, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from otel_reliability.conventions import TABLE
from otel_reliability.conventions.base import Convention, SpanView
from otel_reliability.model.span import AgentSpan, RawSpan
from otel_reliability.testing import span
from tests.conventions.reading import READER, read, reader, unwanted, without

ARGUMENTS: Final = "gen_ai.tool.call.arguments"
MESSAGES: Final = "gen_ai.input.messages"
DEEP: Final = "[" * 3_000 + "]" * 3_000
KEYS: Final = [
    *sorted(READER.keys.wanted),
    "reliability.branch.route",
    "reliability.task.id",
    "reliability.violations",
    "messaging.system",
    "gen_ai.evaluation.name",
    "gen_ai.evaluation.score.value",
    "evaluations.0.evaluation.name",
    "evaluations.0.evaluation.score",
    "gen_ai.completion.0.finish_reason",
    "gen_ai.completion.0.tool_calls.0.name",
    "gen_ai.completion.0.tool_calls.0.arguments",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.name",
    "llm.output_messages.0.message.tool_calls.99999999999999999999.tool_call.id",
    "smolagents.managed_agents.0.name",
    "nobody.knows",
]
SCOPES: Final = [
    "",
    "x",
    *(scope for convention in TABLE for scope in convention.scopes),
    "opentelemetry.instrumentation.langchain",
    "openlit.instrumentation.langgraph",
    "openinference.instrumentation.langchain",
    "openinference.instrumentation.dspy",
    "openinference.instrumentation.smolagents",
    "openinference.instrumentation.openai_agents",
    "openinference.instrumentation.beeai",
    "openinference.instrumentation.google_adk",
]
NAMES: Final = [
    "",
    " ",
    "execute_tool ",
    "invoke_agent x",
    "chat m",
    "agent_run [x]",
    "agent_run [",
    "x → .handoff",
    "claude_code.tool",
    "ToolCallingAgent.run",
    "x.call_tool",
    "x.achat",
    "tools/call x",
    "handoff",
    "haystack.agent.run",
    ".start-1",
    "call_llm",
]
WORDS: Final = [
    "AGENT",
    "TOOL",
    "LLM",
    "CHAIN",
    "agent",
    "tool",
    "workflow",
    "handoff",
    "chain",
    "llm",
    "generation",
    "Agent",
    "ToolInvoker",
    "ChatGenerator",
    "invoke_agent",
    "execute_tool",
    "chat",
    "invoke_workflow",
    '"TOOL"',
    '"CHAIN"',
    "ai.toolCall",
    "ai.generateText.doGenerate",
    "tools/call",
    "Function: {name}",
    "Agent run: {name}",
    "ToolCall",
    "crewai",
    "error",
    "null",
    "{}",
    "[]",
    DEEP,
    "{'a': (1,",
    "NaN",
    "9" * 5_000,
    "\ud800",
    "x" * 5_000,
    "ToolCall(tool_name='x', tool_kwargs={'q': 1}, tool_id='y')",
]
SHAPES: Final[list[Any]] = [
    {"usage_metadata": 3},
    {"metadata": "x"},
    {"tool_messages": [{"content": [{"tool_call_result": []}]}]},
    {"replies": [3]},
    [{"parts": [{"type": "tool_call", "name": [], "id": {}}]}],
    [{"parts": "x"}],
    {"messages": [None]},
    {"total": "x"},
    {"replies": [{"meta": {"usage": {"prompt_tokens": "x"}}}]},
    {"inputs": {}, "kwargs": 3},
    {"reset": False, "task": 3},
    {"type": ["x"]},
    [{"role": "user", "content": [{"type": ["x"]}, {"type": {}}]}],
]
LEAVES: Final = st.sampled_from(WORDS) | st.floats()
VALUES: Final = st.one_of(
    st.sampled_from(WORDS),
    st.sampled_from(SHAPES),
    st.sampled_from(SHAPES).map(json.dumps),
    st.none() | st.booleans() | st.floats() | st.binary(max_size=4) | st.text(max_size=6),
    st.integers(-(2**70), 2**70),
    st.just(10**5_000),
    st.recursive(
        LEAVES,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    ),
)
EVENTS: Final = st.sampled_from(
    ["exception", "gen_ai.choice", "gen_ai.tool.message", "gen_ai.evaluation.result"]
)


@st.composite
def spans(draw: st.DrawFn) -> RawSpan:
    attributes = draw(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=12))
    events = draw(
        st.lists(
            st.tuples(
                st.sampled_from(["exception", "gen_ai.choice", "gen_ai.tool.message"]),
                st.just(attributes),
            )
        )
    )
    return span(
        name=draw(st.sampled_from(NAMES)),
        scope=draw(st.sampled_from(SCOPES)),
        kind=draw(st.integers(0, 5)),
        status=draw(st.integers(0, 2)),
        attributes=attributes,
        events=events,
        trace_state=draw(st.sampled_from(["", "ot=th:8", "ot=th", "=,;:"])),
    )


def conforms(value: object, hint: Any) -> bool:
    """Whether a value is of the type that its field promises, all the way down."""
    origin = get_origin(hint)
    args = get_args(hint)
    if origin in {Union, types.UnionType}:
        return any(conforms(value, arg) for arg in args)
    if origin is tuple:
        items = cast("tuple[object, ...]", value) if isinstance(value, tuple) else None
        if items is None or args[-1] is Ellipsis:
            return items is not None and all(conforms(item, args[0]) for item in items)
        return len(items) == len(args) and all(map(conforms, items, args))
    if isinstance(hint, type) and (hasattr(hint, "_fields") or issubclass(hint, Struct)):
        fields = get_type_hints(hint)
        return type(value) is hint and all(
            conforms(getattr(value, name), field) for name, field in fields.items()
        )
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return isinstance(value, hint)
    if origin is not None and issubclass(origin, Mapping):
        return isinstance(value, Mapping)
    return value is None if hint is type(None) else type(value) is hint


@given(spans())
def test_whatever_a_span_carries_it_is_read(raw: RawSpan) -> None:
    found = READER.read(raw)

    assert conforms(found, AgentSpan), found
    assert READER.read(raw) == found


@pytest.mark.parametrize("given", [["museum"], {"any": ["museum"]}, [], {}])
def test_what_names_a_type_elsewhere_may_be_anything(given: object) -> None:
    """Here it is an argument of a tool, a part of a message, an operation."""
    arguments = json.dumps({"type": given})
    messages = json.dumps([{"role": "user", "content": [{"type": given, "text": "go"}]}])
    traceloop = "opentelemetry.instrumentation.langchain"

    for raw in (
        span(attributes={"gen_ai.operation.name": "execute_tool", ARGUMENTS: arguments}),
        span(attributes={"gen_ai.operation.name": "invoke_agent", MESSAGES: messages}),
        span(
            scope=traceloop,
            attributes={"gen_ai.operation.name": given, "traceloop.workflow.name": "x"},
        ),
    ):
        assert conforms(READER.read(raw), AgentSpan)


CONFIGURED: Final = reader(
    mapping={
        "agent": ["model"],
        "session": ["name"],
        "task": ["input"],
        "outcome": ["metadata"],
        "cost": ["error.type"],
    },
    tools={"ignore": ["a*"], "rename": {"x*": "y"}, "soft_errors": ["err"]},
    agent_key=["model", "service.version"],
    assembly={"run_key": "tool.name"},
)


@given(spans())
def test_settings_do_not_change_that(raw: RawSpan) -> None:
    assert conforms(CONFIGURED.read(raw), AgentSpan)


@given(spans())
def test_what_nobody_wants_is_not_looked_at(raw: RawSpan) -> None:
    """A span without the attributes that are not wanted reads the same: so a door may drop them."""
    kept = {
        key: value
        for key, value in raw.attributes.items()
        if key in READER.keys.wanted or key.startswith(READER.keys.prefixes)
    }

    assert READER.read(replace(raw, attributes=kept)) == READER.read(raw)


@given(spans())
def test_whatever_is_looked_at_is_wanted(raw: RawSpan) -> None:
    assert unwanted(raw) == set()
    assert unwanted(raw, CONFIGURED) == set()


@pytest.mark.parametrize("convention", TABLE, ids=lambda convention: convention.name)
def test_a_convention_says_once_what_each_of_its_keys_holds(convention: Convention) -> None:
    declared = [
        *dict.fromkeys((*convention.plain, *convention.needs, *convention.conversation)),
        *convention.content,
        *convention.tool_content,
        *convention.messages,
    ]

    assert len(declared) == len(set(declared))
    assert not [key for key in declared if convention.prefixes and key in convention.prefixes]
    assert bool(convention.tool_content) == bool(convention.tool_mark)
    assert all(word == word.lower() for word in convention.tool_mark[1:])


def test_text_of_prompts_and_answers_is_no_plain_value() -> None:
    texts = {
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.prompt",
        "gen_ai.completion",
        "gen_ai.system_instructions",
        "gen_ai.tool.call.arguments",
        "input.value",
        "output.value",
        "metadata",
        "error",
    }

    assert texts <= READER.keys.wanted
    assert not [key for key in texts if READER.keys.are_plain(key)]


@given(spans())
def test_a_reader_of_a_value_is_the_same_one_for_every_span(raw: RawSpan) -> None:
    """Else each span would have an answer of its own."""
    for convention in TABLE:
        first, second = SpanView(raw, raw.scope), SpanView(raw, raw.scope)
        convention.read(first)
        convention.read(second)
        assert first.derived == second.derived


FULL: Final[dict[str, dict[str, Any]]] = {
    "genai agent": {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "a",
        "gen_ai.usage.input_tokens": 1,
        "gen_ai.response.finish_reasons": ["max_turns"],
        "gen_ai.conversation.id": "c",
    },
    "genai model": {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.response.model": "m",
        "gen_ai.usage.input_tokens": 1,
        "gen_ai.usage.output_tokens": 1,
        "gen_ai.response.finish_reasons": ["error"],
        "gen_ai.context.window_size": 9,
        "operation.cost": 0.1,
        "gen_ai.response.id": "r",
    },
    "genai tool": {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "t",
        "gen_ai.tool.call.id": "c",
        "error.type": "x",
    },
    "strands tool": {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "t",
        "gen_ai.tool.status": "error",
    },
    "openinference model": {
        "openinference.span.kind": "LLM",
        "llm.model_name": "m",
        "llm.token_count.prompt": 1,
        "llm.token_count.completion": 1,
        "llm.finish_reason": "tool_calls",
        "llm.cost.total": 1.0,
    },
    "openinference tool": {
        "openinference.span.kind": "TOOL",
        "tool.name": "t",
        "tool.id": "c",
        "error.type": "x",
    },
    "openinference agent": {
        "openinference.span.kind": "AGENT",
        "agent.name": "a",
        "session.id": "s",
    },
    "openinference node": {"openinference.span.kind": "AGENT", "graph.node.id": "n"},
    "openllmetry tool": {
        "traceloop.span.kind": "tool",
        "traceloop.entity.name": "t",
        "gen_ai.tool.call.id": "c",
    },
    "openllmetry agent": {
        "traceloop.span.kind": "agent",
        "traceloop.entity.name": "a",
        "traceloop.association.properties.session_id": "s",
    },
    "vercel agent": {
        "ai.operationId": "ai.generateText",
        "ai.telemetry.functionId": "f",
        "ai.usage.inputTokens": 1,
        "ai.telemetry.metadata.sessionId": "s",
    },
    "vercel tool": {
        "ai.operationId": "ai.toolCall",
        "ai.toolCall.name": "t",
        "ai.toolCall.id": "c",
    },
    "claude": {
        "model": "m",
        "input_tokens": 1,
        "output_tokens": 1,
        "cache_read_tokens": 1,
        "stop_reason": "tool_use",
    },
}
KINDS: Final = {
    "gen_ai.operation.name",
    "openinference.span.kind",
    "traceloop.span.kind",
    "ai.operationId",
}
WRONG: Final[list[object]] = [
    None,
    b"x",
    float("nan"),
    float("-inf"),
    [[]],
    {"a": {}},
    [None],
    -1.5,
]


@pytest.mark.parametrize(
    ("attributes", "key"),
    [
        pytest.param(attributes, key, id=f"{name}: {key}")
        for name, attributes in FULL.items()
        for key in attributes
        if key not in KINDS
    ],
)
def test_a_value_of_a_wrong_type_is_absent(attributes: dict[str, Any], key: str) -> None:
    is_claude = "stop_reason" in attributes
    name, scope = (
        ("claude_code.llm_request", "com.anthropic.claude_code.tracing")
        if is_claude
        else ("span", "test")
    )
    absent = read(span(name=name, scope=scope, attributes=without(attributes, key)))

    assert read(span(name=name, scope=scope, attributes=attributes)) != absent
    for wrong in WRONG:
        assert (
            read(span(name=name, scope=scope, attributes={**attributes, key: wrong})) == absent
        ), wrong


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("wrong", WRONG)
def test_a_kind_of_a_wrong_type_is_no_kind(kind: str, wrong: object) -> None:
    found = read(span(attributes={kind: wrong}))

    assert (found.kind, found.facts) == (read(span()).kind, None)
