"""openlit."""

from __future__ import annotations

from otel_reliability.model.run import Tools
from otel_reliability.model.span import Kind
from otel_reliability.testing import span
from tests.conventions.reading import call, invocation, is_nothing, model, run

OPERATION = "gen_ai.operation.name"
LANGGRAPH = "openlit.instrumentation.langgraph"
CREWAI = "openlit.otel.tracing"


def test_q23_invoke_agent_of_the_langgraph_scope_is_a_node() -> None:
    """One such span a node beside the real agents: nothing, also where it failed and kept only its
    name.
    """
    assert is_nothing(
        span(name="invoke_agent model", attributes={OPERATION: "invoke_agent"}, scope=LANGGRAPH)
    )
    assert is_nothing(span(name="invoke_agent triage", scope=LANGGRAPH))


def test_q23_the_operation_decides_not_the_tool_name() -> None:
    """`gen_ai.tool.name` stands on chat spans too."""
    chat = {OPERATION: "chat", "gen_ai.tool.name": "search", "gen_ai.request.model": "m"}

    assert (
        model(span(attributes=chat, scope="openlit.instrumentation.langchain")).request_model == "m"
    )


def test_q24_crew_and_task_are_containers_the_agent_names_the_run() -> None:
    """All three say invoke_agent; only the agent's span has a name. CrewAI's tools are never
    emitted: unobservable.
    """
    crew = {OPERATION: "invoke_agent", "gen_ai.system": "crewai"}
    spans = (
        span(1, name="refund_crew", attributes=crew, scope=CREWAI, end=9),
        span(2, 1, name="task", attributes=crew, scope=CREWAI, end=8),
        span(3, 2, attributes={**crew, "gen_ai.agent.name": "Refund Agent"}, scope=CREWAI, end=7),
        span(
            4,
            3,
            attributes={**crew, OPERATION: "chat", "gen_ai.response.finish_reasons": ("stop",)},
            scope=CREWAI,
            end=2,
        ),
    )
    found = run(*spans)

    assert invocation(spans[0], Kind.WORKFLOW).name is None
    assert (found.key.agent, found.tools, found.path) == ("Refund Agent", Tools.UNOBSERVABLE, None)


def test_q24_a_model_call_alone_says_that_its_tools_are_silent() -> None:
    """One scope serves several frameworks: only those of CrewAI emit no tool spans."""
    chat = {OPERATION: "chat", "gen_ai.request.model": "m"}

    assert model(span(attributes={**chat, "gen_ai.system": "crewai"}, scope=CREWAI)).emits_no_tools
    assert not model(
        span(attributes={**chat, "gen_ai.system": "openai"}, scope=CREWAI)
    ).emits_no_tools


def test_q25_a_failed_agent_has_only_its_name() -> None:
    """The name is weak, and so is the evidence: its tools are not in the telemetry."""
    facts = invocation(span(name="invoke_agent refund_crew", scope=CREWAI))

    assert (facts.name, facts.weak, facts.emits_no_tools) == ("refund_crew", True, True)


def test_q41_arguments_are_python_literals() -> None:
    """The repr of a dictionary stands where others write JSON: the same call, the same hash."""
    tool = {OPERATION: "execute_tool", "gen_ai.tool.name": "search"}
    first, second = (
        call(
            span(
                attributes={**tool, "gen_ai.tool.call.arguments": text},
                scope="openlit.instrumentation.langchain",
            )
        )
        for text in (
            "{'q': 'it\\'s', 'deep': (1, None, True)}",
            '{"deep": [1, null, true], "q": "it\'s"}',
        )
    )

    assert first.arguments == second.arguments


def test_the_task_of_pydantic_ai_is_its_agent_and_its_tools_have_no_name() -> None:
    scope = "openlit.instrumentation.pydantic_ai"
    task = {OPERATION: "execute_task", "gen_ai.agent.name": "support"}
    found = run(
        span(1, attributes={**task, "gen_ai.usage.input_tokens": 90}, scope=scope, end=9),
        span(2, 1, attributes={**task, OPERATION: "invoke_workflow"}, scope=scope, end=8),
        span(3, 2, name="execute_tool tools", attributes={OPERATION: "execute_tool"}, scope=scope),
    )
    assert (found.key.agent, found.path, found.input_tokens) == ("support", None, 90)


def test_both_spans_of_a_call_of_smolagents_are_one_whatever_their_ids() -> None:
    scope = "openlit.instrumentation.smolagents"
    called = {OPERATION: "execute_tool", "gen_ai.tool.name": "search"}
    found = run(
        span(
            1,
            attributes={OPERATION: "invoke_agent", "gen_ai.agent.name": "a"},
            scope=scope,
            end=9,
        ),
        span(2, 1, attributes={**called, "gen_ai.tool.call.id": "u1"}, scope=scope, end=3),
        span(3, 2, attributes={**called, "gen_ai.tool.call.id": "u2"}, scope=scope, end=2),
    )
    assert found.path == ("search",)
