"""logfire over OpenAI Agents."""

from __future__ import annotations

from typing import Any

from otel_reliability.model.span import RawSpan
from otel_reliability.testing import span
from tests.conventions.reading import call, hashed, invocation, is_nothing, model, session, target

OPERATION = "gen_ai.operation.name"


def logfire(template: str, **attributes: Any) -> RawSpan:
    return span(
        attributes={"logfire.msg_template": template, **attributes}, scope="logfire.openai_agents"
    )


def test_q13_templates_are_kinds() -> None:
    """Agents, functions and hand-offs by message template; other templates are nothing."""
    one = call(logfire("Function: {name}", name="search", input='{"q": 1}', output="found"))

    assert invocation(logfire("Agent run: {name!r}", name="support")).name == "support"
    assert (one.name, one.arguments, one.result) == ("search", hashed({"q": 1}), hashed("found"))
    assert target(logfire("Handoff: {from_agent} → {to_agent}", to_agent="billing")) == "billing"
    assert is_nothing(logfire("Turn {turn}"))


def test_q13_the_group_is_the_session_but_for_null() -> None:
    """`group_id` is the text "null" where the user gave none."""
    assert session(logfire("OpenAI Agents trace: {name}", group_id="conv-7")) == "conv-7"
    assert session(logfire("OpenAI Agents trace: {name}", group_id="null")) is None


def test_q13_a_function_fails_by_level() -> None:
    """The default failure handler returns a message; level 17 and `error` mark it."""
    assert call(logfire("Function: {name}", name="search", **{"logfire.level_num": 17})).failed
    assert call(logfire("Function: {name}", name="search", error='{"message":"x"}')).failed
    assert not call(logfire("Function: {name}", name="search", **{"logfire.level_num": 9})).failed


def test_q13_what_names_an_operation_is_otel_genai() -> None:
    """pydantic-ai writes templates too; its spans are recognized by their operation."""
    assert (
        model(
            logfire("chat {model}", **{OPERATION: "chat", "gen_ai.usage.input_tokens": 3})
        ).tokens.input
        == 3
    )
