"""Claude Code."""

from __future__ import annotations

from otel_reliability.model.span import STATUS_ERROR, Tokens
from otel_reliability.testing import span
from tests.conventions.reading import call, hashed, invocation, is_nothing, model


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
