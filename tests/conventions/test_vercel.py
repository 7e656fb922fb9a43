"""Vercel AI SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from otel_reliability.model.span import Kind, RawSpan, Tokens
from otel_reliability.testing import span
from tests.conventions.reading import (
    call,
    hashed,
    invocation,
    is_nothing,
    model,
    read,
    run,
    session,
)

USAGE = {"ai.usage.inputTokens": 100, "ai.usage.outputTokens": 10}


def seen(
    operation: str,
    attributes: Mapping[str, Any] | None = None,
    number: int = 1,
    parent: int | None = None,
) -> RawSpan:
    return span(
        number, parent, attributes={"ai.operationId": operation, **(attributes or {})}, scope="ai"
    )


def test_q03_the_agents_name_is_the_function_id() -> None:
    """`ai.generateText` is the agent; its usage repeats its children's and counts only where they
    have none.
    """
    root = seen("ai.generateText", {"ai.telemetry.functionId": "support", **USAGE})
    step = seen("ai.generateText.doGenerate", USAGE, 2, 1)
    silent = seen("ai.generateText.doGenerate", None, 2, 1)

    assert invocation(root).name == "support"
    assert (run(root, step).input_tokens, run(root, silent).input_tokens) == (100, 100)


def test_model_calls() -> None:
    told = {
        "ai.model.id": "gpt-4o-mini",
        "ai.response.model": "gpt-4o-mini-2024",
        "ai.response.finishReason": "tool-calls",
        "ai.response.toolCalls": '[{"toolCallId":"c1","toolName":"search","input":"{}"},{"toolName":"book","args":{"q":2}}]',
        "ai.usage.promptTokens": 7,
    }
    facts = model(seen("ai.streamText.doStream", told))

    assert (facts.model, facts.request_model, facts.tokens) == (
        "gpt-4o-mini-2024",
        "gpt-4o-mini",
        Tokens(7, None),
    )
    assert facts.asked_for_tools
    assert [(one.name, one.call_id, one.arguments) for one in facts.calls] == [
        ("search", "c1", hashed({})),
        ("book", None, hashed({"q": 2})),
    ]


def test_tool_calls() -> None:
    told = {"name": "search", "id": "c1", "args": '{"q":1}', "result": "2"}
    one = call(seen("ai.toolCall", {"ai.toolCall." + key: value for key, value in told.items()}))

    assert (one.name, one.call_id, one.arguments, one.result) == (
        "search",
        "c1",
        hashed({"q": 1}),
        hashed(2),
    )


def test_sessions_stand_in_the_users_metadata() -> None:
    found = seen("ai.generateText", {"ai.telemetry.metadata.sessionId": "conv-7"})
    other = seen("ai.generateText", {"ai.telemetry.metadata.ticket": "conv-7"})

    assert (session(found), session(other)) == ("conv-7", None)
    assert session(other, mapping={"session": ["ai.telemetry.metadata.ticket"]}) == "conv-7"


def test_operations_that_are_no_step() -> None:
    assert is_nothing(seen("ai.embed"))
    assert is_nothing(seen("ai.embed.doEmbed"))


def test_generation_7_is_otel_genai() -> None:
    assert (
        read(span(attributes={"gen_ai.operation.name": "invoke_agent"}, scope="ai")).kind
        is Kind.AGENT
    )
    assert is_nothing(span(attributes={"gen_ai.operation.name": "agent_step"}, scope="ai"))


def test_version_7_keeps_the_session_in_the_context() -> None:
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "chat",
        "ai.settings.context.sessionId": "s-7",
    }
    assert session(span(attributes=attributes, scope="ai")) == "s-7"


def test_a_tool_that_the_provider_executed_has_no_span_and_is_a_call() -> None:
    calls = '[{"toolCallId":"c1","toolName":"web_search","input":"{}","providerExecuted":true}]'
    told = {"ai.response.finishReason": "stop", "ai.response.toolCalls": calls}
    step = seen("ai.generateText.doGenerate", told, 2, 1)
    facts = model(step)
    assert (facts.asked_for_tools, facts.calls, facts.served) == (False, (), ("web_search",))
    assert run(seen("ai.generateText"), step).path == ("web_search",)


def test_tokens_of_reasoning() -> None:
    assert model(seen("ai.streamText.doStream", {"ai.usage.reasoningTokens": 9})).reasoned == 9
