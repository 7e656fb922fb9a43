"""Dialects of a few rules each: Microsoft Agent Framework, logfire, Strands, Mastra, MCP, Claude Code."""

from __future__ import annotations

from typing import Any

import pytest

from otel_reliability.model.run import Outcome, Tools
from otel_reliability.model.span import KIND_CLIENT, KIND_SERVER, STATUS_ERROR, Kind, RawSpan, Tokens
from otel_reliability.testing import span
from tests.conventions.reading import call, hashed, invocation, is_nothing, model, read, run, target

OPERATION = "gen_ai.operation.name"


def test_an_output_tool_of_pydantic_ai_is_no_tool() -> None:
    """An agent with an output type ends with the finish reason `tool_call` and no tool span: its path is empty."""
    agent = span(1, attributes={OPERATION: "invoke_agent", "gen_ai.agent.name": "judge"}, scope="pydantic-ai", end=9)
    parts = '[{"parts":[{"type":"tool_call","id":"c1","name":"final_result","arguments":{"quality":"good"}}]}]'
    chat = {OPERATION: "chat", "gen_ai.response.finish_reasons": ("tool_call",), "gen_ai.usage.input_tokens": 5}
    for attributes in (chat, {**chat, "gen_ai.output.messages": parts}):
        found = run(agent, span(2, 1, attributes=attributes, scope="pydantic-ai"))

        assert (found.tools, found.path, found.input_tokens) == (Tools.OBSERVED, (), 5)
    assert run(agent, span(2, 1, attributes=chat, scope="another")).tools is Tools.UNOBSERVABLE


def test_q08_workflow_run_is_a_container() -> None:
    """Microsoft Agent Framework: `workflow.run` names no operation; `workflow.build` is nothing."""
    assert invocation(span(name="workflow.run", scope="agent_framework"), Kind.WORKFLOW).name is None
    assert is_nothing(span(name="workflow.build", scope="agent_framework"))


def logfire(template: str, **attributes: Any) -> RawSpan:
    """A span of logfire's instrumentation of OpenAI Agents."""
    return span(attributes={"logfire.msg_template": template, **attributes}, scope="logfire.openai_agents")


def test_q13_templates_are_kinds() -> None:
    """Agents, functions and hand-offs by message template; other templates are nothing."""
    one = call(logfire("Function: {name}", name="search", input='{"q": 1}', output="found"))

    assert invocation(logfire("Agent run: {name!r}", name="support")).name == "support"
    assert (one.name, one.arguments, one.result) == ("search", hashed({"q": 1}), hashed("found"))
    assert target(logfire("Handoff: {from_agent} → {to_agent}", to_agent="billing")) == "billing"
    assert is_nothing(logfire("Turn {turn}"))


def test_q13_the_group_is_the_session_but_for_null() -> None:
    """`group_id` is the text "null" where the user gave none."""
    given, absent = (
        read(logfire("OpenAI Agents trace: {name}", group_id=group)).session for group in ("conv-7", "null")
    )

    assert given is not None
    assert given.id == "conv-7"
    assert absent is None


def test_q13_a_function_fails_by_level() -> None:
    """The default failure handler returns a message; level 17 and `error` tell."""
    assert call(logfire("Function: {name}", name="search", **{"logfire.level_num": 17})).failed
    assert call(logfire("Function: {name}", name="search", error='{"message":"x"}')).failed
    assert not call(logfire("Function: {name}", name="search", **{"logfire.level_num": 9})).failed


def test_q13_what_names_an_operation_is_otel_genai() -> None:
    """pydantic-ai writes templates too; its spans are told by their operation."""
    assert model(logfire("chat {model}", **{OPERATION: "chat", "gen_ai.usage.input_tokens": 3})).tokens.input == 3


STRANDS = "strands.telemetry.tracer"
STRANDS_TOOL = {OPERATION: "execute_tool", "gen_ai.tool.name": "search"}


def test_q12_strands_keeps_arguments_in_events() -> None:
    """`gen_ai.tool.message` holds arguments and id, `gen_ai.choice` the result."""
    events = [("gen_ai.tool.message", {"content": '{"q": 1}', "id": "c1"}), ("gen_ai.choice", {"message": "found"})]
    one = call(span(attributes=STRANDS_TOOL, scope=STRANDS, events=events))

    assert (one.name, one.call_id, one.arguments, one.result) == ("search", "c1", hashed({"q": 1}), hashed("found"))


def test_q12_what_strands_says_in_attributes_stays() -> None:
    """With the newest conventions the attributes hold them; events add nothing."""
    attributes = {**STRANDS_TOOL, "gen_ai.tool.call.arguments": '{"q": 2}', "gen_ai.tool.call.id": "c2"}
    one = call(
        span(attributes=attributes, scope=STRANDS, events=[("gen_ai.tool.message", {"content": "{}", "id": "c1"})])
    )

    assert (one.arguments, one.call_id) == (hashed({"q": 2}), "c2")


def test_the_totals_of_strands_run_on() -> None:
    """Usage on its agent span is that of the agent object's whole life, so it is no total."""
    attributes = {OPERATION: "invoke_agent", "gen_ai.agent.name": "support", "gen_ai.usage.input_tokens": 900}

    assert invocation(span(attributes=attributes, scope=STRANDS)).tokens is None


@pytest.mark.parametrize("key", ["tool.status", "gen_ai.tool.status"])
def test_q39_strands_marks_failures_by_a_status_of_its_own(key: str) -> None:
    """1.0: `tool.status`, later `gen_ai.tool.status`; the span's own status stays OK."""
    assert call(span(attributes={**STRANDS_TOOL, key: "error"}, scope=STRANDS)).failed
    assert not call(span(attributes={**STRANDS_TOOL, key: "success"}, scope=STRANDS)).failed


MASTRA = "@mastra/otel"


def mastra(number: int, parent: int | None, operation: str, *, kind: int = 1, **attributes: Any) -> RawSpan:
    """A span of Mastra: no flags, an operation of its own."""
    facts = {key.replace("__", "."): value for key, value in attributes.items()}
    return span(number, parent, attributes={OPERATION: operation, **facts}, kind=kind, scope=MASTRA, remote=None)


def test_q29_mastra_names_agents_by_id() -> None:
    """`agent.run` of kind SERVER is an agent, named by its id; `tool.execute` a call; `model.step` nothing; thread a session."""
    agent = mastra(1, None, "agent.run", kind=KIND_SERVER, gen_ai__agent__id="support_agent", threadId="conv-7")
    tool = mastra(3, 2, "tool.execute", gen_ai__tool__name="search", gen_ai__tool__input='{"q": 1}')
    found = run(agent, mastra(2, 1, "chat"), tool)

    assert (found.key.agent, found.session_id, found.path) == ("support_agent", "conv-7", ("search",))
    assert call(tool).arguments == hashed({"q": 1})
    assert is_nothing(mastra(1, None, "model.step"))


def test_q29_a_failed_run_of_mastra() -> None:
    """`chat` fails by finish reason with status OK, and the root is never exported: an orphan that failed."""
    lost = mastra(2, 1, "chat", gen_ai__response__finish_reasons="error")
    tool = mastra(3, 2, "tool.execute", gen_ai__tool__name="search")
    found = run(lost, tool)

    assert (found.implicit, found.incomplete, found.outcome) == (True, True, Outcome.FAILURE)


def test_q28_mastras_sub_agent_below_a_model_span_counts_apart() -> None:
    """One `chat` spans the whole loop, tools and sub-agents with it."""
    usage = {"gen_ai__usage__input_tokens": 100, "gen_ai__usage__output_tokens": 10}
    found = run(
        mastra(1, None, "agent.run", gen_ai__agent__id="support"),
        mastra(2, 1, "chat", **usage),
        mastra(3, 2, "tool.execute", gen_ai__tool__name="billing"),
        mastra(4, 3, "agent.run", gen_ai__agent__id="billing"),
        mastra(5, 4, "chat", **usage),
    )

    assert (found.input_tokens, found.output_tokens) == (200, 20)


def mcp(
    number: int, parent: int | None, name: str, kind: int, method: str = "tools/call", **attributes: Any
) -> RawSpan:
    """An MCP span."""
    facts = {key.replace("__", "."): value for key, value in attributes.items()}
    return span(number, parent, name=name, attributes={"mcp.method.name": method, **facts}, kind=kind)


def test_mcp_tells_one_call_up_to_four_times() -> None:
    """The agent's tool span, two client spans and the server's, in another service: one call, failed if any says so."""
    agent = span(1, attributes={OPERATION: "invoke_agent", "gen_ai.agent.name": "support"}, end=9)
    tool = span(2, 1, attributes={OPERATION: "execute_tool", "gen_ai.tool.name": "search"}, end=8)
    server = mcp(5, 4, "tools/call search", KIND_SERVER, error__type="tool_error")
    found = run(
        agent,
        tool,
        mcp(3, 2, "tools/call search", KIND_CLIENT),
        mcp(4, 3, "MCP send tools/call search", KIND_CLIENT),
        server,
    )

    assert found.path == ("search",)
    assert found.tool_calls is not None
    assert [one.ok for one in found.tool_calls] == [False]


def test_mcp_methods_that_are_no_step() -> None:
    """`tools/list` and the rest are nothing, and so is a call that nobody can name."""
    assert is_nothing(mcp(1, None, "tools/list", KIND_CLIENT, "tools/list"))
    assert is_nothing(mcp(1, None, "send", KIND_CLIENT))
    assert call(mcp(1, None, "send", KIND_CLIENT, gen_ai__tool__name="search")).name == "search"


def test_claude_codes_spans() -> None:
    """By name; the input counts its cached part; `success` tells a failure; a hidden tool name tells nothing."""
    usage = {
        "input_tokens": 100,
        "cache_read_tokens": 20,
        "cache_creation_tokens": 3,
        "output_tokens": 10,
        "model": "m",
    }
    facts = model(span(name="claude_code.llm_request", attributes={**usage, "stop_reason": "tool_use"}))
    tool = {"tool_name": "Read", "tool_use_id": "t1", "tool_input": '{"file": "x"}'}

    assert invocation(span(name="claude_code.interaction")).fallback_name == "claude_code"
    assert invocation(span(name="claude_code.interaction", attributes={"subagent_type": "explorer"})).name == "explorer"
    assert (facts.model, facts.tokens, facts.asked_for_tools) == ("m", Tokens(123, 10), True)
    assert call(span(name="claude_code.tool", attributes=tool))[:3] == ("Read", "t1", hashed({"file": "x"}))
    assert call(span(name="claude_code.tool.execution", attributes={**tool, "success": False})).failed
    assert call(span(name="claude_code.tool", attributes=tool, status=STATUS_ERROR)).failed
    assert is_nothing(span(name="claude_code.tool"))
    assert is_nothing(span(name="claude_code.hook"))
    assert model(span(name="claude_code.llm_request")).tokens == Tokens()
