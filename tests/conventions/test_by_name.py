"""Spans that lost every attribute."""

from __future__ import annotations

from otel_reliability.model.span import KIND_CLIENT, STATUS_ERROR, Kind
from otel_reliability.testing import span
from tests.conventions.reading import call, invocation, is_nothing, model, run


def test_q25_a_failed_tool_is_told_by_its_name() -> None:
    """`execute_tool issue_refund` without an attribute is that call, failed; its arguments are
    unknown.
    """
    one = call(span(name="execute_tool issue_refund", status=STATUS_ERROR))

    assert (one.name, one.failed, one.arguments) == ("issue_refund", True, None)


def test_q25_an_agents_name_read_so_is_weak() -> None:
    """A run takes it only where nothing else names it, and then the innermost."""
    outer = span(1, name="invoke_agent refund_crew", end=9)
    inner = span(2, 1, name="invoke_agent Refund Agent", end=8)
    chat = span(3, 2, name="chat m", kind=KIND_CLIENT)
    named = span(
        4,
        1,
        attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support"},
        start=2,
    )

    assert invocation(outer).name == "refund_crew"
    assert invocation(outer).weak
    assert run(outer, inner, chat).key.agent == "Refund Agent"
    assert run(outer, inner, chat, named).key.agent == "support"


def test_q25_workflows_and_model_calls() -> None:
    """A model kind only on a CLIENT span: `chat with support` is a plausible name
    of anything else.
    """
    assert invocation(span(name="invoke_workflow refunds"), Kind.WORKFLOW).weak
    assert model(span(name="chat gpt-4o-mini", kind=KIND_CLIENT)).request_model == "gpt-4o-mini"
    assert is_nothing(span(name="chat with support"))


def test_q25_a_merged_tool_span_is_still_none() -> None:
    """A span that merges tools, a name of one word, or of words that are no
    operation, is nothing.
    """
    assert is_nothing(span(name="execute_tool (merged)"))
    assert is_nothing(span(name="execute_tool"))
    assert is_nothing(span(name="GET /orders"))
