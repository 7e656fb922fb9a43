"""OpenInference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from otel_reliability.model.run import Outcome, Tools
from otel_reliability.model.span import STATUS_ERROR, Kind, RawSpan, RejectionFacts, Tokens
from otel_reliability.testing import span
from tests.conventions.reading import (
    call,
    hashed,
    invocation,
    is_nothing,
    model,
    read,
    run,
    runs,
    target,
    tool,
)

KIND = "openinference.span.kind"
SCOPE = "openinference.instrumentation."
CALL_KEY = "llm.output_messages.{}.message.tool_calls.{}.tool_call."


def seen(kind: str, name: str = "span", scope: str = "test", **attributes: Any) -> RawSpan:
    """A span of some kind; `__` in a key stands for a dot."""
    facts = {key.replace("__", "."): value for key, value in attributes.items()}
    return span(name=name, scope=SCOPE + scope, attributes={KIND: kind, **facts})


@pytest.mark.parametrize(
    ("kind", "ours"),
    [
        ("AGENT", Kind.AGENT),
        ("CHAIN", Kind.CHAIN),
        ("LLM", Kind.MODEL),
        ("TOOL", Kind.TOOL),
        ("RETRIEVER", Kind.RETRIEVAL),
        ("EVALUATOR", Kind.EVALUATION),
        ("EMBEDDING", Kind.OTHER),
        ("GUARDRAIL", Kind.EVALUATION),
        ("UNKNOWN", Kind.OTHER),
        ("tool", Kind.TOOL),
    ],
)
def test_a_kind_is_a_kind(kind: str, ours: Kind) -> None:
    assert read(seen(kind, name="x")).kind is ours


def test_a_model_call_tells_model_tokens_and_cost() -> None:
    facts = model(
        seen(
            "LLM",
            llm__model_name="m-1",
            llm__token_count__prompt=100,
            llm__token_count__completion=10,
            llm__cost__total=0.5,
        )
    )

    assert (facts.model, facts.tokens, facts.cost) == ("m-1", Tokens(100, 10), 0.5)


def test_dual_emitted_tokens_count_once() -> None:
    """OPENINFERENCE_ENABLE_GENAI_SEMCONV writes both conventions on one span; they say the same
    thing.
    """
    both = {
        "llm.token_count.prompt": 100,
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.operation.name": "chat",
    }

    assert model(span(attributes={KIND: "LLM", **both})).tokens.input == 100
    assert (
        model(span(attributes={KIND: "LLM", "gen_ai.usage.input_tokens": 100})).tokens.input == 100
    )


def test_flattened_messages_tell_the_calls_a_model_asked_for() -> None:
    attributes = {
        CALL_KEY.format(0, 1) + "function.name": "book",
        CALL_KEY.format(0, 0) + "function.name": "search",
        CALL_KEY.format(0, 0) + "function.arguments": '{"q": 1}',
        CALL_KEY.format(0, 0) + "id": "c1",
        "llm.output_messages.0.message.content": "no call",
    }
    facts = model(span(attributes={KIND: "LLM", **attributes}))

    assert [(one.name, one.call_id, one.arguments) for one in facts.calls] == [
        ("search", "c1", hashed({"q": 1})),
        ("book", None, None),
    ]
    assert facts.asked_for_tools


@pytest.mark.parametrize("given", ["__REDACTED__", None, ""])
def test_hidden_arguments_are_unknown(given: str | None) -> None:
    """OPENINFERENCE_HIDE_INPUTS writes a mark in place of the value."""
    assert call(seen("TOOL", name="search", input__value=given)).arguments is None


def test_parameters_are_a_schema_and_never_arguments() -> None:
    """`tool.parameters` is the tool's JSON schema in some instrumentations; only `input.value` is
    believed.
    """
    schema = '{"type":"object"}'
    one = call(
        seen(
            "TOOL",
            tool__name="search",
            tool__parameters=schema,
            gen_ai__tool__call__arguments=schema,
        )
    )

    assert (one.name, one.arguments) == ("search", None)


def test_a_bare_value_is_an_argument() -> None:
    """LangChain tools of one argument are told by its bare value."""
    assert call(seen("TOOL", name="search", input__value="1234")).arguments == hashed(1234)


def test_call_ids_stand_under_several_keys() -> None:
    """`tool_call.id`, `tool.call_id` (Strands), `tool.id`."""
    for key in ("tool_call.id", "tool.call_id", "tool.id"):
        assert call(span(name="search", attributes={KIND: "TOOL", key: "c1"})).call_id == "c1"


def test_q02_an_agent_without_a_name_is_a_container() -> None:
    """OpenAI Agents: `workflow` says AGENT without a name; the agents below are siblings."""
    assert invocation(seen("AGENT", "workflow", "openai_agents"), Kind.WORKFLOW).name is None
    assert (
        invocation(seen("AGENT", "triage", "openai_agents", agent__name="triage")).name == "triage"
    )


@pytest.mark.parametrize(
    ("scope", "name", "attributes", "agent"),
    [
        ("langchain", "support_agent", {}, "support_agent"),
        ("langchain", "LangGraph", {}, None),
        ("smolagents", "support_agent.run", {}, "support_agent"),
        ("google_adk", "agent_run [support_agent]", {}, "support_agent"),
        ("crewai", "Agent._execute_core", {"graph.node.id": "Refund Agent"}, "Refund Agent"),
        ("crewai", "refund_task._execute_core", {}, None),
        ("autogen", "run", {"graph.node.id": "support_agent"}, "support_agent"),
        ("claude_agent_sdk", "claude.conversation", {}, "claude"),
        ("pydantic_ai", "agent", {"agent.name": "support_agent"}, "support_agent"),
    ],
)
def test_q03_where_each_instrumentation_keeps_the_name(
    scope: str, name: str, attributes: dict[str, Any], agent: str | None
) -> None:
    """`agent.name`, else the graph node, else the span's name as the framework writes it; a class
    name or prompt is none.
    """
    assert (
        invocation(
            span(name=name, scope=SCOPE + scope, attributes={KIND: "AGENT", **attributes})
        ).name
        == agent
    )


def test_q03_a_handoff_of_openai_agents_is_a_tool_without_a_name() -> None:
    """`handoff to billing_agent` without `tool.name` is a hand-off; with one it is a tool of that
    name.
    """
    assert target(seen("TOOL", "handoff to billing_agent", "openai_agents")) == "billing_agent"
    assert (
        call(seen("TOOL", "handoff to x", "openai_agents", tool__name="handoff_to_x")).name
        == "handoff_to_x"
    )


def test_q03_autogen_tools_are_the_last_part_of_their_name() -> None:
    """AutoGen's tool spans are named after class and method."""
    assert call(seen("TOOL", "FunctionTool.search", "autogen")).name == "search"


def smolagents(
    *inner: RawSpan, name: str = "support_agent.run", attributes: Mapping[str, Any] | None = None
) -> tuple[RawSpan, ...]:
    root = {KIND: "AGENT", "input.value": '{"task":"x","reset":true}', **(attributes or {})}
    return (span(1, name=name, attributes=root, scope=SCOPE + "smolagents", end=9), *inner)


def step(
    number: int,
    name: str,
    parent: int = 1,
    kind: str = "TOOL",
    attributes: Mapping[str, Any] | None = None,
) -> RawSpan:
    return span(
        number,
        parent,
        name=name,
        attributes={KIND: kind, **(attributes or {})},
        scope=SCOPE + "smolagents",
        start=number,
    )


def test_q10_without_a_finish_mark_the_step_limit_ended_it() -> None:
    """At its step limit smolagents ends OK; only the missing `final_answer` directly below shows
    it.
    """
    stopped = run(*smolagents(step(2, "search")))
    finished = run(
        *smolagents(
            step(2, "search"), step(3, "FinalAnswerTool", attributes={"tool.name": "final_answer"})
        )
    )

    assert (stopped.outcome, stopped.outcome_source) == (Outcome.FAILURE, "limit")
    assert (finished.outcome, finished.path) == (Outcome.COMPLETED, ("search",))


def test_q10_a_missing_finish_mark_without_tool_spans_is_no_limit() -> None:
    """The tools ran in threads without context: their spans, the mark among them, are elsewhere.
    Only a model call after the last step shows that the limit ended the run.
    """
    steps = [
        step(2, "Step 1", kind="CHAIN"),
        step(3, "Model.generate", 2, "LLM"),
    ]
    forced = step(4, "Model.generate", 1, "LLM")

    assert run(*smolagents(*steps)).outcome is Outcome.COMPLETED
    assert run(*smolagents(*steps, forced)).outcome_source == "limit"


def test_q11_a_managed_agent_is_also_a_tool_call() -> None:
    """A nested agent without a tool span is a step of the run above, and a run of its own."""
    below = (
        step(2, "billing_agent.run", kind="AGENT"),
        step(3, "lookup", 2),
        step(4, "final_answer", 2),
    )
    top, nested = runs(*smolagents(*below, step(5, "final_answer")))

    assert (top.key.agent, top.path) == ("support_agent", ("billing_agent", "lookup"))
    assert (nested.key.agent, nested.path) == ("billing_agent", ("lookup",))


def test_q16_of_event_spans_the_start_is_the_call() -> None:
    """BeeAI emits events as spans: `.start-N` is the call, what follows it is nothing."""
    beeai = {"scope": "beeai"}

    assert (
        call(seen("TOOL", "tool.search.wikipedia.start-12", **beeai)).name
        == "tool.search.wikipedia"
    )
    assert is_nothing(seen("TOOL", "tool.search.wikipedia.finish-12", **beeai))
    assert is_nothing(seen("TOOL", "tool.search.wikipedia.success-12", **beeai))
    assert read(seen("AGENT", "agent.reAct.start-3", **beeai)).kind is Kind.AGENT
    assert is_nothing(seen("AGENT", "agent.reAct.partial_update-3", **beeai))
    assert is_nothing(seen("CHAIN", "workflow.update-3", **beeai))
    assert read(seen("TOOL", "search.finish-12")).kind is Kind.TOOL


def test_q17_an_overwritten_model_span_tells_no_tokens() -> None:
    """ADK's instrumentation keeps one model span an agent, `invoke_agent X`: its tokens are the
    last call's.
    """
    counts = {"llm__token_count__prompt": 5, "llm__token_count__completion": 1}

    assert model(seen("LLM", "invoke_agent support", "google_adk", **counts)).tokens == Tokens()
    assert model(seen("LLM", "call_llm", "google_adk", **counts)).tokens == Tokens(5, 1)


def test_q18_the_javascript_packages_are_the_same_instrumentations() -> None:
    """`@arizeai/openinference-instrumentation-X` follows the rules of
    `openinference.instrumentation.X`.
    """
    found = span(
        name="handoff to b",
        attributes={KIND: "TOOL"},
        scope="@arizeai/openinference-instrumentation-openai-agents",
    )

    assert target(found) == "b"
    assert read(found).scope == "openinference.instrumentation.openai_agents"


@pytest.mark.parametrize(
    ("scope", "kind", "name", "meant"),
    [
        ("dspy", "CHAIN", "SupportAgent.forward", "SupportAgent"),
        ("dspy", "TOOL", "lookup_order.__call__", "lookup_order"),
        ("llama_index", "CHAIN", "FunctionAgent.run", "FunctionAgent"),
        ("agno", "AGENT", "Agent.run", "Agent"),
    ],
)
def test_q32_method_names_are_cut_by_scope(scope: str, kind: str, name: str, meant: str) -> None:
    """Classes name a run where nothing better does; tools lose the method behind their name."""
    found = seen(kind, name, scope)
    facts = tool(found).calls[0].name if kind == "TOOL" else None
    names = (
        facts or invocation(found, Kind[kind]).fallback_name or invocation(found, Kind[kind]).name
    )

    assert names == meant


def test_q33_dspys_finish_is_a_finish_mark() -> None:
    """`finish.__call__` ends the loop of ReAct; it is no step. Elsewhere `finish` is a tool."""
    assert tool(seen("TOOL", "finish.__call__", "dspy")).finish
    assert call(seen("TOOL", "finish")).name == "finish"


def test_q34_in_a_scope_of_the_users_own_the_span_names_the_agent() -> None:
    """OpenInference's decorators trace under the user's tracer: functions are named after what they
    are.
    """
    assert (
        invocation(span(name="support", attributes={KIND: "AGENT"}, scope="shop")).name == "support"
    )
    assert (
        invocation(span(name="triage", attributes={KIND: "CHAIN"}, scope="shop"), Kind.CHAIN).name
        == "triage"
    )
    assert invocation(seen("CHAIN", "turn", "openai_agents"), Kind.CHAIN).name is None


def test_q35_an_sdk_that_traces_itself_tells_the_same_call_again() -> None:
    """Anthropic's SDK beside its instrumentation: below it, or, when streaming, beside it. One
    call, one sum of tokens.
    """
    root = span(1, name="support", attributes={KIND: "AGENT"}, scope="shop", end=9)
    counts = {"llm.token_count.prompt": 100, "llm.token_count.completion": 10}
    ours = span(2, 1, start=1, end=3, attributes={KIND: "LLM", **counts}, scope=SCOPE + "anthropic")
    theirs = {
        "gen_ai.operation.name": "chat",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 10,
    }
    for parent in (1, 2):
        again = span(
            3, parent, start=1.5, end=2.5, attributes=theirs, scope="com.anthropic.sdk.python"
        )
        found = run(root, ours, again)

        assert (found.input_tokens, found.output_tokens, len(found.model_calls)) == (100, 10, 1)


def test_q38_older_smolagents_name_classes() -> None:
    """Up to 1.17 every agent is `ToolCallingAgent`: the manager's table and the
    call identify them.
    """
    managed = {
        "smolagents.managed_agents.0.name": "billing_agent",
        "smolagents.managed_agents.1.name": "policy_agent",
        "llm.token_count.prompt": 100,
    }
    asked = {
        "input.value": (
            '{"task":"You\'re a helpful agent named \'policy_agent\'. Do it.","reset":true}'
        )
    }
    inner = (
        step(2, "ToolCallingAgent.run", kind="AGENT", attributes=asked),
        step(3, "read", 2),
        step(4, "final_answer", 2),
    )
    top, nested = runs(
        *smolagents(
            *inner, step(5, "final_answer"), name="ToolCallingAgent.run", attributes=managed
        )
    )

    assert (top.key.agent, top.path, top.input_tokens) == (
        "ToolCallingAgent",
        ("policy_agent", "read"),
        100,
    )
    assert (nested.key.agent, nested.path) == ("policy_agent", ("read",))


def test_q38_totals_that_run_on_over_turns_are_absent() -> None:
    """With `reset` false the totals are those of all turns so far; with the input hidden they are
    unknown.
    """
    counts = {"llm.token_count.prompt": 100}
    for given in ('{"task":"x","reset":false}', "__REDACTED__"):
        (root,) = smolagents(attributes={"input.value": given, **counts})

        assert invocation(root).tokens is None


def test_q42_a_run_that_only_finished_has_an_empty_path() -> None:
    """A finish mark is an observed tool span: nothing was called, and nothing is unobservable."""
    asked = step(2, "chat", kind="LLM", attributes={"llm.finish_reason": "tool_calls"})
    found = run(*smolagents(asked, step(3, "final_answer")))

    assert (found.tools, found.path) == (Tools.OBSERVED, ())


@pytest.mark.parametrize(
    "scope",
    [
        "openinference.instrumentation.openai_agents",
        "@arizeai/openinference-instrumentation-openai-agents",
    ],
)
def test_q43_openai_agents_without_agent_name_are_named_by_their_node(scope: str) -> None:
    """OpenAI Agents up to 0.6, and in JavaScript: the root AGENT has the workflow's name and no
    node; the agents do.
    """
    root = span(1, name="Support workflow", scope=scope, attributes={KIND: "AGENT"}, start=0, end=9)
    first = span(
        2,
        1,
        name="triage",
        scope=scope,
        attributes={KIND: "AGENT", "graph.node.id": "triage"},
        start=1,
        end=3,
    )
    second = span(
        3,
        1,
        name="billing",
        scope=scope,
        attributes={KIND: "AGENT", "graph.node.id": "billing"},
        start=4,
    )
    search = span(4, 3, name="search", scope=scope, attributes={KIND: "TOOL"}, start=5)
    found = run(root, first, second, search)

    assert (found.key.agent, found.path) == ("triage", ("search",))
    assert [one.agent for one in found.tool_calls or ()] == ["billing"]


def test_q44_agents_of_the_agent_framework_have_their_own_name() -> None:
    """Node ids are those of agent objects, new in each process; the name stands beside them, or in
    the GenAI attribute.
    """
    ids = {KIND: "AGENT", "graph.node.id": "agent_0d27ee01-4866-4a9b-989c-3ecf31ed47aa"}
    named = span(
        name="invoke_agent x",
        scope="agent_framework",
        attributes={**ids, "graph.node.name": "support"},
    )
    other = span(
        name="invoke_agent x",
        scope="agent_framework",
        attributes={**ids, "gen_ai.agent.name": "support"},
    )

    assert (invocation(named).name, invocation(other).name) == ("support", "support")
    assert (
        invocation(span(name="invoke_agent", scope="agent_framework", attributes=ids)).name is None
    )


def test_q46_the_main_agent_of_the_claude_agent_sdk_is_claude() -> None:
    """It has no name of its own; a subagent has."""
    assert invocation(seen("AGENT", "ClaudeAgentSDK.query", "claude_agent_sdk")).name == "claude"
    assert (
        invocation(
            seen("AGENT", "ClaudeAgentSDK.Task", "claude_agent_sdk", agent__name="Task")
        ).name
        == "Task"
    )


def test_a_session_of_the_application_is_better_than_one_that_an_sdk_invents() -> None:
    root = span(attributes={"session.id": "app-1"}, scope="app")
    agent = span(
        2,
        1,
        attributes={"openinference.span.kind": "AGENT", "session.id": "cli-1"},
        scope="openinference.instrumentation.claude_agent_sdk",
    )
    tool = span(3, 2, attributes={"openinference.span.kind": "TOOL", "tool.name": "Grep"})
    assert run(root, agent, tool).session_id == "app-1"
    assert run(replace(agent, parent_id=None), tool).session_id == "cli-1"


def test_turns_of_smolagents_are_no_runs_without_their_agent() -> None:
    """Its agent loses them where it streams."""
    scope = "openinference.instrumentation.smolagents"
    attributes = {"openinference.span.kind": "CHAIN"}
    assert invocation(span(name="Step 2", scope=scope, attributes=attributes), Kind.CHAIN).is_turn
    other = span(name="Steps", scope=scope, attributes=attributes)
    assert not invocation(other, Kind.CHAIN).is_turn


@pytest.mark.parametrize("name", ["AiService.chat", "ai.chat"])
def test_a_method_of_a_library_names_no_agent(name: str) -> None:
    assert invocation(seen("AGENT", name)).name is None


def test_node_ids_of_agno_name_nothing() -> None:
    facts = {"graph.node.id": "8f3a6c21d09b4e57", "graph.node.name": "desk"}
    assert invocation(seen("AGENT", "Desk.run", "agno", **facts)).name == "desk"


def test_a_final_answer_of_beeai_is_no_call() -> None:
    assert tool(seen("TOOL", "final_answer", "beeai")).finish


def test_an_activity_around_a_call_of_dapr_is_no_call() -> None:
    activity = replace(seen("TOOL", "support.run_tool"), scope="dapr_agents.observability")
    assert is_nothing(activity)
    named = replace(activity, attributes={KIND: "TOOL", "tool.name": "search"})
    assert call(named).name == "search"


def test_a_model_may_stand_under_keys_of_genai_only() -> None:
    assert model(seen("LLM", **{"gen_ai.request.model": "gpt"})).request_model == "gpt"


def test_what_its_exporter_adds_to_spans_of_vercel_does_not_hide_the_agent() -> None:
    facts = {"ai.operationId": "ai.generateText", "ai.telemetry.functionId": "support"}
    sent = replace(seen("AGENT", "ai.generateText", **facts), scope="ai")
    assert invocation(sent).name == "support"


def test_a_call_of_openai_agents_that_waits_or_was_refused_is_no_step() -> None:
    result = "FunctionToolResult(tool=pay, run_item=ToolApprovalItem(agent=support))"
    waits = seen("TOOL", "pay", "openai_agents", tool__name="pay", output__value=result)
    refused = span(
        name="pay",
        scope=SCOPE + "openai_agents",
        attributes={KIND: "TOOL", "tool.name": "pay"},
        status=STATUS_ERROR,
        events=[("exception", {"exception.message": "Tool execution was not approved.: {}"})],
    )
    assert read(waits).facts == RejectionFacts(pending=True)
    assert read(refused).facts == RejectionFacts()


@pytest.mark.parametrize(
    ("framework", "path"), [("openai_agents", ()), ("langchain", ()), ("crewai", ("pay",))]
)
def test_a_call_asked_for_last_is_not_executed_where_each_that_is_has_a_span(
    framework: str, path: tuple[str, ...]
) -> None:
    """It waits for a person: the graph ends well. Or it is an answer in the form of a call."""
    asked = {CALL_KEY.format(0, 0) + "function.name": "pay", CALL_KEY.format(0, 0) + "id": "c1"}
    found = run(
        span(1, attributes={KIND: "AGENT", "agent.name": "desk"}, end=9, scope=SCOPE + framework),
        span(2, 1, attributes={KIND: "LLM", **asked}, start=1, end=2, scope=SCOPE + framework),
    )
    assert (found.path, found.tools is Tools.OBSERVED) == (path, not path)


def converted(kind: str, name: str, number: int, parent: int | None, **facts: Any) -> RawSpan:
    """A span of Mastra, as its exporter to Arize converts it."""
    told = {key.replace("__", "."): value for key, value in facts.items()}
    start = float(number)
    return span(
        number,
        parent,
        name=name,
        attributes={KIND: kind, **told},
        scope="@mastra/otel-exporter",
        start=start,
        end=30.0 - start,
    )


@pytest.mark.parametrize(("is_old", "named"), [(False, {"agent.name": "desk"}), (True, {})])
def test_to_its_converter_of_genai_all_is_a_model_or_an_agent(
    is_old: bool, named: Mapping[str, str]
) -> None:
    """Steps are models there, and up to 0.1 models are agents, without a name."""
    model_kind = "AGENT" if is_old else "LLM"
    usage = {"llm.model_name": "gpt", "llm.token_count.prompt": 10}
    found = run(
        converted("AGENT", "invoke_agent desk", 1, None, **named),
        converted(model_kind, "chat gpt", 2, 1, **usage, **named),
        converted("LLM", "model_step desk", 3, 2),
        converted("LLM", "model_inference desk", 4, 3),
        converted("TOOL", "execute_tool search", 5, 3, tool__name="search"),
        converted("LLM", "processor_run desk", 6, 1),
    )
    assert (found.key.agent, found.path, found.input_tokens) == ("desk", ("search",), 10)
    assert [one.model for one in found.model_calls] == ["gpt"]


def test_an_agent_within_a_guardrail_names_no_run() -> None:
    """It begins before the agent that it guards, beside it."""
    scope = SCOPE + "openai_agents"

    def part(number: int, parent: int | None, kind: str, name: str = "", at: float = 0) -> RawSpan:
        named = {"graph.node.id": name} if name else {}
        attributes = {KIND: kind, **named}
        return span(number, parent, scope=scope, attributes=attributes, start=at, end=9.0)

    found = runs(
        part(1, None, "AGENT"),
        part(2, 1, "GUARDRAIL", at=0.1),
        part(3, 2, "AGENT", "Topic check", at=0.2),
        part(4, 3, "LLM", at=0.3),
        part(5, 1, "AGENT", "Support", at=0.4),
        part(6, 5, "LLM", at=0.5),
    )
    assert [(one.key.agent, one.nested) for one in found] == [
        ("Support", False),
        ("Topic check", True),
    ]


def test_tokens_of_reasoning() -> None:
    assert model(seen("LLM", llm__token_count__completion_details__reasoning=9)).reasoned == 9
