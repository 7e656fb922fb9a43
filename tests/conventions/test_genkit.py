"""Genkit."""

from __future__ import annotations

import json
from typing import Any

from otel_reliability.model.span import STATUS_ERROR, RawSpan, Tokens
from otel_reliability.testing import span
from tests.conventions.reading import call, hashed, invocation, is_nothing, model, run

ASKED = {
    "message": {"content": [{"toolRequest": {"name": "search", "ref": "c1", "input": {"q": 1}}}]},
    "usage": {"inputTokens": 7, "outputTokens": 2},
}


def action(
    subtype: str, number: int = 1, parent: int | None = None, status: int = 0, **facts: Any
) -> RawSpan:
    """An action of Genkit."""
    told = {f"genkit:{key}": value for key, value in facts.items()}
    attributes = {"genkit:type": "action", "genkit:metadata:subtype": subtype, **told}
    return span(number, parent, attributes=attributes, scope="genkit-tracer", status=status)


def test_a_model_tells_its_tokens_and_calls_in_its_output() -> None:
    found = model(action("model", name="gpt", output=json.dumps(ASKED)))
    assert (found.request_model, found.tokens) == ("gpt", Tokens(7, 2))
    assert [(one.name, one.call_id) for one in found.calls] == [("search", "c1")]


def test_tools_of_both_versions_have_the_same_result() -> None:
    first = call(action("tool", name="search", input='{"q": 1}', output='"found"'))
    second = call(action("tool.v2", name="search", input='{"q": 1}', output='{"output": "found"}'))
    assert first == second
    assert (first.name, first.result) == ("search", hashed("found"))


def test_a_flow_is_an_agent_where_nothing_stands_above() -> None:
    turn = span(2, 1, attributes={"genkit:type": "util"}, scope="genkit-tracer")
    found = run(
        action("flow", name="planner", sessionId="s-1"),
        turn,
        action("model", 3, 2, output=json.dumps(ASKED)),
        action("tool", 4, 2, STATUS_ERROR, name="search"),
    )
    assert (found.key.agent, found.path, found.session_id) == ("planner", ("search",), "s-1")
    assert found.input_tokens == 7
    assert is_nothing(turn)
    assert invocation(action("agent", name="planner")).name == "planner"


def test_a_flow_of_versions_before_actions_had_a_subtype() -> None:
    attributes = {"genkit:type": "flow", "genkit:name": "planner"}
    root = span(1, attributes=attributes, scope="genkit-tracer")
    found = run(root, action("model", 2, 1, output=json.dumps(ASKED)))
    assert (found.key.agent, found.outcome.value) == ("planner", "completed")


def test_an_error_has_a_status_only_where_it_came_from() -> None:
    """As Genkit Go writes it: the spans above say it in their state."""
    root = action("flow", name="planner", state="error")
    found = run(root, action("model", 2, 1, STATUS_ERROR, name="gpt", state="error"))
    assert (found.outcome.value, found.outcome_source) == ("failure", "root_error")
    assert call(action("tool", name="search", state="error")).failed
