"""AgentOps."""

from __future__ import annotations

from typing import Any

from otel_reliability.model.span import STATUS_ERROR, RawSpan
from otel_reliability.testing import span
from tests.conventions.reading import call, hashed, run, runs, target

MODEL: dict[str, Any] = {
    "gen_ai.system": "ag2",
    "gen_ai.request.model": "gpt",
    "gen_ai.usage.prompt_tokens": "10",
    "gen_ai.usage.completion_tokens": "2",
}


def kept(
    kind: str | None,
    name: str = "span",
    number: int = 1,
    parent: int | None = None,
    status: int = 0,
    **facts: Any,
) -> RawSpan:
    """A span of AgentOps; `__` in a name stands for a dot."""
    told = {key.replace("__", "."): value for key, value in facts.items()}
    attributes = told if kind is None else {"agentops.span.kind": kind, **told}
    start = float(number)
    return span(
        number,
        parent,
        name=name,
        attributes=attributes,
        scope="agentops.instrumentation.ag2",
        status=status,
        start=start,
        end=20.0 - start,
    )


def test_a_chat_of_ag2_is_a_run_of_whom_it_is_with() -> None:
    """Whoever gets a message has a span, the user too; the chat's own span names a model."""
    called: dict[str, Any] = {"gen_ai.completion.0.tool_calls.0.name": "search"}
    found = run(
        kept("agent", "ag2.chat.user_to_desk.workflow", to_agent="desk", **MODEL),
        kept("agent", "ag2.agent.desk.receive", 2, 1, agent__name="desk"),
        kept("llm", "gpt.llm", 3, 2, agent__name="desk", **MODEL),
        kept("agent", "ag2.agent.user.async_receive", 4, 2, agent__name="user"),
        kept("tool", "ag2.tool", 5, 4, STATUS_ERROR, tool__name="function", **called),
        kept("agent", "ag2.agent.desk.receive", 6, 4, agent__name="desk"),
        kept("llm", "gpt.llm", 7, 6, agent__name="desk", **MODEL),
    )
    assert (found.key.agent, found.path, found.input_tokens) == ("desk", ("search",), 20)
    assert [one.ok for one in found.tool_calls or ()] == [False]


def test_a_tool_of_crewai_is_one_call_of_its_role() -> None:
    found = run(
        kept("workflow", "crewai.workflow"),
        kept("workflow.step", "research.task", 2, 1),
        kept("agent", "Researcher.agent", 3, 2, agent__name="", agent__role="Researcher"),
        kept("tool", "search.tool", 4, 3, tool__name="search", tool__status="failed"),
        kept("tool.usage", "search.tool_usage", 5, 4, tool__name="search"),
    )
    assert (found.key.agent, found.path) == ("Researcher", ("search",))
    assert [one.ok for one in found.tool_calls or ()] == [False]


def test_a_session_is_the_whole_program() -> None:
    named: dict[str, Any] = {"operation.name": "desk"}
    found = runs(
        kept("session", "main.session"),
        kept("agent", "desk.agent", 2, 1, **named),
        kept("agent", "desk.agent", 3, 1, **named),
    )
    assert [one.key.agent for one in found] == ["desk", "desk"]


def test_arguments_and_hand_offs_have_keys_of_their_own() -> None:
    read = call(kept("tool", tool__name="search", tool__parameters='{"q": 1}', tool__result="x"))
    assert (read.name, read.arguments, read.result) == ("search", hashed({"q": 1}), hashed("x"))
    assert target(kept(None, from_agent="desk", to_agent="billing")) == "billing"
