"""pydantic-ai."""

from __future__ import annotations

from otel_reliability.model.run import Tools
from otel_reliability.testing import span
from tests.conventions.reading import run

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
