"""LiveKit Agents."""

from __future__ import annotations

from typing import Any

from otel_reliability.model.run import Outcome
from otel_reliability.model.span import RawSpan
from otel_reliability.testing import span
from tests.conventions.reading import is_nothing, run


def live(name: str, number: int, parent: int | None, facts: dict[str, Any]) -> RawSpan:
    return span(
        number, parent, name=name, attributes=facts, scope="livekit-agents", start=float(number)
    )


def called(number: int, *, is_error: bool) -> RawSpan:
    facts = {
        "lk.function_tool.name": "lookup",
        "lk.pii.function_tool.arguments": '{"n": 1}',
        "lk.function_tool.is_error": is_error,
    }
    return live("function_tool", number, 2, facts)


def test_a_session_is_a_run_of_its_agent() -> None:
    session = {"lk.agent_label": "front-desk", "gen_ai.conversation.id": "room-1"}
    chat = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 90}
    found = run(
        live("agent_session", 1, None, session),
        live("agent_turn", 2, 1, {"lk.interrupted": True}),
        live("llm_request", 3, 2, chat),
        called(4, is_error=True),
        called(6, is_error=False),
    )
    assert (found.key.agent, found.session_id) == ("front-desk", "room-1")
    assert [(one.ok, one.retry) for one in found.tool_calls or ()] == [(False, False), (True, True)]
    assert (found.input_tokens, found.outcome) == (90, Outcome.COMPLETED)
    assert is_nothing(live("tts_node", 1, None, {}))


def test_what_a_program_interrupted_is_cancelled() -> None:
    turn = {"gen_ai.agent.name": "front-desk", "lk.interruption.source": "programmatic"}
    assert run(live("agent_turn", 1, None, turn)).outcome is Outcome.CANCELLED


def test_a_model_call_may_name_no_operation() -> None:
    """As the packages for Node write it."""
    request = {"gen_ai.request.model": "gpt", "gen_ai.usage.input_tokens": 90}
    found = run(
        live("agent_session", 1, None, {"lk.agent_label": "front-desk"}),
        live("agent_turn", 2, 1, {}),
        live("llm_node", 3, 2, {"gen_ai.request.model": "gpt"}),
        live("llm_request", 4, 3, request),
    )
    assert (found.input_tokens, len(found.model_calls)) == (90, 1)
