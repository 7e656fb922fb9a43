"""OpenLLMetry."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_reliability.model.run import Outcome, Tools
from otel_reliability.model.span import KIND_CLIENT, STATUS_ERROR, Kind, RawSpan, Tokens
from otel_reliability.testing import span
from tests.conventions.reading import (
    call,
    hashed,
    invocation,
    is_nothing,
    model,
    read,
    rebuilt,
    run,
    session,
    target,
)

KIND = "traceloop.span.kind"
NAME = "traceloop.entity.name"
LANGCHAIN = "opentelemetry.instrumentation.langchain"
OPENAI_AGENTS = "opentelemetry.instrumentation.openai_agents"
CREWAI = "opentelemetry.instrumentation.crewai.instrumentation"


def wrapped(inputs: dict[str, Any], step: int) -> str:
    """What OpenLLMetry writes as the input of a LangChain tool: the arguments among ids that differ
    from call to call.
    """
    metadata = {"langgraph_step": step, "checkpoint_ns": f"tools:{step}", "thread_id": "conv-7"}
    return json.dumps(
        {
            "input_str": str(inputs),
            "inputs": inputs,
            "metadata": metadata,
            "kwargs": {"tool_call_id": "c1"},
        }
    )


def test_kinds_and_names() -> None:
    assert invocation(span(attributes={KIND: "agent", NAME: "support"})).name == "support"
    assert call(span(attributes={KIND: "tool", NAME: "search"})).name == "search"
    assert (
        invocation(span(attributes={KIND: "workflow", NAME: "refunds"}), Kind.WORKFLOW).name
        == "refunds"
    )


@pytest.mark.parametrize(
    ("scope", "path"), [(LANGCHAIN, ()), (OPENAI_AGENTS, ()), ("my.loop", ("pay",))]
)
def test_a_call_asked_for_last_is_not_executed_where_each_that_is_has_a_span(
    scope: str, path: tuple[str, ...]
) -> None:
    asked = {
        "llm.request.type": "chat",
        "gen_ai.completion.0.finish_reason": "tool_calls",
        "gen_ai.completion.0.tool_calls.0.name": "pay",
    }
    found = run(
        span(1, attributes={KIND: "agent", NAME: "desk"}, end=9, scope=scope),
        span(2, 1, attributes=asked, start=1, end=2, scope=scope),
    )
    assert found.path == path


def test_sessions_stand_in_association_properties() -> None:
    prefix = "traceloop.association.properties."
    found = read(
        span(attributes={KIND: "agent", prefix + "thread_id": "t", prefix + "session_id": "s"})
    ).session

    assert found is not None
    assert (found.id, found.rank) == ("s", 2)


def test_q06_the_kind_beats_the_operation() -> None:
    """LangGraph nodes say invoke_agent and are tasks: transparent. `crewai.workflow` is a
    container.
    """
    both = {
        KIND: "task",
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "billing_agent",
    }

    assert is_nothing(span(attributes=both))
    assert invocation(span(name="crewai.workflow"), Kind.WORKFLOW).name is None


def test_q12_only_the_inputs_of_langchains_wrapper_are_arguments() -> None:
    """Two attempts at one call are equal although their wrappers never are; the call id stands
    inside.
    """
    first, second = (
        call(
            span(
                attributes={
                    KIND: "tool",
                    NAME: "search",
                    "traceloop.entity.input": wrapped({"q": 1}, n),
                },
                scope=LANGCHAIN,
            )
        )
        for n in (3, 5)
    )

    assert first.arguments == second.arguments == hashed({"q": 1})
    assert first.call_id == "c1"


def test_q12_elsewhere_the_input_is_the_arguments() -> None:
    """Of the decorators, the input is the `{"args", "kwargs"}` that they wrote: unwrapped, nothing
    more.
    """
    given = '{"args": [], "kwargs": {"q": 1}}'

    assert call(
        span(attributes={KIND: "tool", NAME: "search", "traceloop.entity.input": given})
    ).arguments == hashed({"q": 1})


@pytest.mark.parametrize("request_type", ["chat", "completion", "response"])
def test_q36_older_model_spans_name_no_operation(request_type: str) -> None:
    """Up to 0.46 only `llm.request.type` marks a model call; the tokens stand under
    the old names.
    """
    usage = {"gen_ai.usage.prompt_tokens": 100, "gen_ai.usage.completion_tokens": 10}

    assert model(span(attributes={"llm.request.type": request_type, **usage})).tokens == Tokens(
        100, 10
    )
    assert is_nothing(span(attributes={"llm.request.type": "embedding", **usage}))


def test_q36_response_is_a_model_operation() -> None:
    """`response` is the operation of a model call of OpenAI Agents under 0.46."""
    assert (
        model(
            span(attributes={"gen_ai.operation.name": "response", "gen_ai.usage.prompt_tokens": 5})
        ).tokens.input
        == 5
    )


def test_q36_older_messages_tell_calls_by_number() -> None:
    """Calls stand in `gen_ai.completion.0.tool_calls.M.*`, with a finish reason beside them."""
    start = "gen_ai.completion.0."
    facts = model(
        span(
            attributes={
                "llm.request.type": "chat",
                start + "finish_reason": "tool_calls",
                start + "tool_calls.0.name": "search",
                start + "tool_calls.0.arguments": '{"q": 1}',
                start + "tool_calls.1.name": "book",
                start + "tool_calls.3.name": "not reached",
            }
        )
    )

    assert facts.asked_for_tools
    assert [(one.name, one.arguments) for one in facts.calls] == [
        ("search", hashed({"q": 1})),
        ("book", None),
    ]


def test_q36_the_thread_id_stands_in_the_workflows_input() -> None:
    """Up to 0.46 the only session id is in the JSON of the LangChain workflow's input."""
    attributes = {KIND: "workflow", NAME: "support", "traceloop.entity.input": wrapped({}, 1)}

    assert session(span(attributes=attributes, scope=LANGCHAIN)) == "conv-7"


def openai_agents(status: int) -> tuple[RawSpan, ...]:
    """A run of OpenAI Agents whose last model call ends with this status."""
    workflow = span(
        1, name="Agent Workflow", attributes={KIND: "workflow"}, scope=OPENAI_AGENTS, end=9
    )
    agent = span(
        2, 1, attributes={KIND: "agent", NAME: "support_agent"}, scope=OPENAI_AGENTS, end=8
    )
    chat = span(
        3,
        2,
        attributes={"gen_ai.operation.name": "response"},
        scope=OPENAI_AGENTS,
        start=2,
        end=3,
        status=status,
    )
    return workflow, agent, chat


def test_q37_agents_that_hide_failures_fail_with_their_last_step() -> None:
    """Workflow and agent end OK although the run died: ERROR on the step that ended last is the
    failure.
    """
    failed = run(*openai_agents(STATUS_ERROR))
    ended = run(*openai_agents(0))

    assert (failed.key.agent, failed.outcome, failed.outcome_source) == (
        "support_agent",
        Outcome.FAILURE,
        "last_step_error",
    )
    assert ended.outcome is Outcome.COMPLETED


def test_q37_a_handoff_to_unknown_goes_to_whoever_starts_next() -> None:
    """`support_agent → unknown.handoff` cannot name its target; the next agent to start is it."""
    handoff = span(
        4,
        2,
        name="support_agent → unknown.handoff",
        attributes={KIND: "handoff"},
        scope=OPENAI_AGENTS,
        start=3,
    )
    following = span(
        5, 1, attributes={KIND: "agent", NAME: "billing_agent"}, scope=OPENAI_AGENTS, start=5
    )

    assert target(handoff) is None
    assert run(*openai_agents(0), handoff, following).path == ("→billing_agent",)


def test_a_handoff_names_its_target_where_it_can() -> None:
    named = {KIND: "handoff", "gen_ai.handoff.to_agent": "billing_agent"}

    assert target(span(name="x → unknown.handoff", attributes=named)) == "billing_agent"
    assert (
        target(span(name="support_agent → billing_agent.handoff", attributes={KIND: "handoff"}))
        == "billing_agent"
    )


def test_crewai_emits_no_tool_spans() -> None:
    """Its calls stand in messages only; without them its tools are unobservable, never an empty
    path.
    """
    agent = span(
        1, attributes={KIND: "agent", "crewai.agent.role": "Refund Agent"}, scope=CREWAI, end=9
    )
    chat = {"gen_ai.operation.name": "chat"}
    calls = '[{"parts":[{"type":"tool_call","id":"c1","name":"search","arguments":"{}"}]}]'
    silent = span(2, 1, attributes=chat, kind=KIND_CLIENT, start=1, end=2)
    speaking = span(
        2, 1, attributes={**chat, "gen_ai.output.messages": calls}, kind=KIND_CLIENT, start=1, end=2
    )

    assert (run(agent, silent).key.agent, run(agent, silent).tools) == (
        "Refund Agent",
        Tools.UNOBSERVABLE,
    )
    assert (run(agent, speaking).tools, run(agent, speaking).path) == (Tools.MESSAGES, ("search",))


def test_the_text_of_crewai_does_not_show_that_no_tool_was_called() -> None:
    """What its model asks for stands in the words of its answer."""
    agent = span(
        1, attributes={KIND: "agent", "crewai.agent.role": "Refund Agent"}, scope=CREWAI, end=9
    )
    answer = '[{"role":"assistant","parts":[{"type":"text","content":"Action: search"}]}]'
    model = span(
        2,
        1,
        attributes={"gen_ai.operation.name": "chat", "gen_ai.output.messages": answer},
        kind=KIND_CLIENT,
        scope=CREWAI,
        start=1,
        end=2,
    )

    assert (run(agent, model).tools, run(agent, model).path) == (Tools.UNOBSERVABLE, None)


def test_steps_whose_agent_was_never_exported_name_their_session() -> None:
    """A decorated function that rejects never ends its span, in JavaScript."""
    session = {"traceloop.association.properties.session_id": "s1"}
    chat = {"gen_ai.system": "OpenAI", "llm.request.type": "chat", "gen_ai.request.model": "gpt-x"}
    tool = {"traceloop.span.kind": "tool", "traceloop.entity.name": "pay"}
    (found,) = rebuilt(
        span(2, 1, attributes={**chat, **session}), span(3, 1, attributes={**tool, **session})
    )

    assert (found.session_id, found.path, found.incomplete) == ("s1", ("pay",), True)


@pytest.mark.parametrize(("named", "path"), [("search", ("search",)), ("DynamicTool", None)])
def test_of_langchain_for_javascript_the_operation_decides(
    named: str, path: tuple[str, ...] | None
) -> None:
    """A tool says that it is a task, mostly by its class, and an agent that it is a workflow."""

    def seen(operation: str, number: int, kind: str, **facts: str) -> RawSpan:
        told = {key.replace("__", "."): value for key, value in facts.items()}
        attributes = {KIND: kind, "gen_ai.operation.name": operation, **told}
        scope = "@traceloop/instrumentation-langchain"
        return span(number, 9, attributes=attributes, scope=scope, start=number, end=number + 0.5)

    agent = seen("invoke_agent", 1, "workflow", gen_ai__agent__name="AgentExecutor")
    found = run(
        span(9, attributes={KIND: "workflow", NAME: "support"}, end=9),
        agent,
        seen("workflow", 2, "workflow", traceloop__workflow__name="RunnableSequence"),
        seen("execute_tool", 3, "task", traceloop__entity__name=named),
    )
    assert (found.key.agent, found.path) == ("AgentExecutor", path)
