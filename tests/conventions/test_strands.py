"""Strands."""

from __future__ import annotations

import json

import pytest

from otel_reliability.model.span import CANCELLED, RejectionFacts
from otel_reliability.testing import span
from tests.conventions.reading import call, hashed, invocation, read

OPERATION = "gen_ai.operation.name"


STRANDS = "strands.telemetry.tracer"
STRANDS_TOOL = {OPERATION: "execute_tool", "gen_ai.tool.name": "search"}


def test_q12_strands_keeps_arguments_in_events() -> None:
    """`gen_ai.tool.message` holds arguments and id, `gen_ai.choice` the result."""
    events = [
        ("gen_ai.tool.message", {"content": '{"q": 1}', "id": "c1"}),
        ("gen_ai.choice", {"message": "found"}),
    ]
    one = call(span(attributes=STRANDS_TOOL, scope=STRANDS, events=events))

    assert (one.name, one.call_id, one.arguments, one.result) == (
        "search",
        "c1",
        hashed({"q": 1}),
        hashed("found"),
    )


def test_q12_what_strands_says_in_attributes_stays() -> None:
    """With the newest conventions the attributes hold them; events add nothing."""
    attributes = {
        **STRANDS_TOOL,
        "gen_ai.tool.call.arguments": '{"q": 2}',
        "gen_ai.tool.call.id": "c2",
        "gen_ai.tool.status": "success",
    }
    one = call(
        span(
            attributes=attributes,
            scope=STRANDS,
            events=[("gen_ai.tool.message", {"content": "{}", "id": "c1"})],
        )
    )

    assert (one.arguments, one.call_id) == (hashed({"q": 2}), "c2")


def test_the_totals_of_strands_run_on() -> None:
    """Usage on its agent span is that of the agent object's whole life, so it is no total."""
    attributes = {
        OPERATION: "invoke_agent",
        "gen_ai.agent.name": "support",
        "gen_ai.usage.input_tokens": 900,
    }

    assert invocation(span(attributes=attributes, scope=STRANDS)).tokens is None


def test_an_agent_that_was_cancelled_has_no_error() -> None:
    attributes = {
        OPERATION: "invoke_agent",
        "gen_ai.agent.name": "support",
        "strands.cancellation.type": "CancelledError",
    }

    assert invocation(span(attributes=attributes, scope=STRANDS)).stopped == CANCELLED


@pytest.mark.parametrize("key", ["tool.status", "gen_ai.tool.status"])
def test_q39_strands_marks_failures_by_a_status_of_its_own(key: str) -> None:
    """Strands marks failures by `tool.status` (1.0) or `gen_ai.tool.status`; the span's own status
    stays OK.
    """
    assert call(span(attributes={**STRANDS_TOOL, key: "error"}, scope=STRANDS)).failed
    assert not call(span(attributes={**STRANDS_TOOL, key: "success"}, scope=STRANDS)).failed


DETAILS = "gen_ai.client.inference.operation.details"


def test_the_newest_conventions_keep_arguments_in_messages_of_events() -> None:
    part = {"type": "tool_call", "name": "search", "id": "c1", "arguments": {"q": 1}}
    asked = json.dumps([{"role": "tool", "parts": [part]}])
    events = [
        (DETAILS, {"gen_ai.input.messages": asked}),
        (DETAILS, {"gen_ai.output.messages": "[]"}),
    ]
    one = call(span(attributes=STRANDS_TOOL, scope=STRANDS, events=events))
    assert (one.name, one.arguments) == ("search", hashed({"q": 1}))


def test_a_call_without_a_result_waits_for_a_person() -> None:
    events = [("gen_ai.tool.message", {"content": '{"q": 1}', "id": "c1"})]
    waits = span(attributes=STRANDS_TOOL, scope=STRANDS, events=events)
    assert read(waits).facts == RejectionFacts(pending=True)


@pytest.mark.parametrize(
    ("reason", "stopped"),
    [("interrupt", "paused"), ("cancelled", "cancelled"), ("end_turn", None)],
)
def test_an_agent_says_in_an_event_why_it_stopped(reason: str, stopped: str | None) -> None:
    attributes = {OPERATION: "invoke_agent", "gen_ai.agent.name": "support"}
    answer = json.dumps([{"role": "assistant", "parts": [], "finish_reason": reason}])
    for event in (
        ("gen_ai.choice", {"message": "x", "finish_reason": reason}),
        (DETAILS, {"gen_ai.output.messages": answer}),
    ):
        found = invocation(span(attributes=attributes, scope=STRANDS, events=[event]))
        assert found.stopped == stopped
