"""Claude Code: its spans, and its log events."""

from __future__ import annotations

from typing import Any

from otel_reliability.model.span import STATUS_ERROR, Call, RawSpan, RejectionFacts, Tokens
from otel_reliability.testing import span
from tests.conventions.reading import call, hashed, invocation, is_nothing, model, read

SCOPE = "com.anthropic.claude_code.tracing"


def claude(name: str, /, status: int = 0, **attributes: Any) -> RawSpan:
    return span(name=f"claude_code.{name}", attributes=attributes, scope=SCOPE, status=status)


def test_claude_codes_spans() -> None:
    """By name; the input counts its cached part; the `.execution` child reports the same call and
    its failure.
    """
    usage: dict[str, Any] = {
        "input_tokens": 100,
        "cache_read_tokens": 20,
        "cache_creation_tokens": 3,
        "output_tokens": 10,
        "model": "m",
    }
    facts = model(claude("llm_request", **usage, stop_reason="tool_use"))
    tool: dict[str, Any] = {"tool_name": "Read", "tool_use_id": "t1", "tool_input": '{"file": "x"}'}

    assert invocation(claude("interaction")).name == "claude-code"
    assert (facts.model, facts.tokens, facts.asked_for_tools) == ("m", Tokens(123, 10), True)
    assert call(claude("tool", **tool)) == Call(
        "Read", "t1", hashed({"file": "x"}), effect=hashed({"file": "x"})
    )
    execution = call(claude("tool.execution", STATUS_ERROR, tool_use_id="t1", success=False))
    assert (execution.name, execution.call_id, execution.failed) == (None, "t1", True)
    assert is_nothing(claude("tool"))
    assert is_nothing(claude("hook"))
    assert model(claude("llm_request")).tokens == Tokens()


def test_a_refused_call_of_claude_code_is_marked() -> None:
    """Only a decision to reject marks the call that it lies in."""
    assert read(claude("tool.blocked_on_user", decision="reject")).facts == RejectionFacts()
    assert is_nothing(claude("tool.blocked_on_user", decision="accept"))
