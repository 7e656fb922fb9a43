"""LangSmith."""

from __future__ import annotations

from otel_reliability.model.span import STATUS_ERROR, STATUS_OK, Kind
from otel_reliability.testing import span
from tests.conventions.reading import call, hashed, is_nothing, model, read, session

KIND = "langsmith.span.kind"


def test_kinds() -> None:
    assert (
        model(
            span(attributes={KIND: "llm", "gen_ai.usage.input_tokens": 7}, scope="langsmith")
        ).tokens.input
        == 7
    )
    assert read(span(attributes={KIND: "retriever"}, scope="langsmith")).kind is Kind.RETRIEVAL
    assert is_nothing(span(attributes={KIND: "parser"}, scope="langsmith"))


def test_a_tool_reads_prompt_and_completion() -> None:
    attributes = {
        KIND: "tool",
        "gen_ai.prompt": '{"q": 1}',
        "gen_ai.completion": '"found"',
        "gen_ai.tool.call.id": "c1",
    }
    one = call(span(name="search", attributes=attributes, scope="langsmith"))

    assert (one.name, one.call_id, one.arguments, one.result) == (
        "search",
        "c1",
        hashed({"q": 1}),
        hashed("found"),
    )


def test_a_thread_is_a_session() -> None:
    """`langsmith.trace.session_name` is the project and never a session."""
    thread = {
        KIND: "chain",
        "langsmith.metadata.thread_id": "conv-7",
        "langsmith.trace.session_name": "default",
    }

    assert session(span(attributes=thread, scope="langsmith")) == "conv-7"
    assert (
        session(
            span(attributes={KIND: "chain", "langsmith.trace.session_name": "d"}, scope="langsmith")
        )
        is None
    )


def test_q05_an_exception_event_is_a_failure_whatever_the_status() -> None:
    """A span may end OK although an exception passed through it."""
    events = [("exception", {"exception.type": "ValueError"})]
    for kind in ("chain", "llm", "tool"):
        assert read(
            span(attributes={KIND: kind}, scope="langsmith", status=STATUS_OK, events=events)
        ).failed
        assert read(span(attributes={KIND: kind}, scope="langsmith", status=STATUS_ERROR)).failed
        assert not read(span(attributes={KIND: kind}, scope="langsmith")).failed
