"""Spans of the user's own, by rules of the settings."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from otel_reliability.model.run import Outcome
from otel_reliability.model.span import (
    STATUS_ERROR,
    HandoffFacts,
    InvocationFacts,
    Kind,
    ModelFacts,
    RawSpan,
    Tokens,
)
from otel_reliability.model.span import ToolFacts as Facts
from otel_reliability.testing import span
from tests.conventions.reading import hashed, read, run

BY_TYPE = [
    {
        "kind": "agent",
        "name": "my_company.*",
        "attributes": {"step.type": "agent"},
        "agent": "step.bot",
    }
    | {"session": "step.chat", "task": "step.ticket", "outcome": "step.status"},
    {
        "kind": "tool",
        "name": "my_company.step",
        "attributes": {"step.type": "tool"},
        "tool": "step.tool",
    }
    | {"arguments": "step.input", "result": "step.output", "outcome": "step.status"},
    {
        "kind": "model",
        "name": "my_company.step",
        "attributes": {"step.type": "llm"},
        "model": "step.model",
    }
    | {"input_tokens": "step.tokens_in", "output_tokens": "step.tokens_out"},
]


def own(number: int = 1, parent: int | None = None, **attributes: Any) -> RawSpan:
    """A span `my_company.step` with these attributes behind `step.`."""
    facts = {f"step.{key}": value for key, value in attributes.items()}
    return span(
        number, parent, name="my_company.step", scope="my_company", attributes=facts, start=number
    )


def by(rules: list[dict[str, Any]], one: RawSpan) -> Any:
    found = read(one, mapping={"spans": rules})
    return found.kind, found.facts


def test_rules_say_what_spans_are_and_where_their_parts_stand() -> None:
    spans = [
        own(1, type="agent", bot="support", chat="c1", ticket="t7", status="success"),
        own(2, 1, type="llm", model="m-1", tokens_in=100, tokens_out="10"),
        own(3, 1, type="tool", tool="search", input='{"q": 1}', output="2 found", status="ok"),
        own(4, 1, type="tool", tool="book", input='{"id": 7}', status="failed"),
        own(5, 1, type="tool", tool="book", input='{"id": 7}', status="ok"),
    ]
    spans[0] = replace(spans[0], end_ns=spans[4].end_ns)
    found = run(*spans, mapping={"spans": BY_TYPE})

    assert (found.key.agent, found.session_id, found.task_id, found.outcome) == (
        "support",
        "c1",
        "t7",
        Outcome.SUCCESS,
    )
    assert (found.path, found.input_tokens, found.output_tokens) == (
        ("search", "book", "book"),
        100,
        10,
    )
    assert [(call.ok, call.retry) for call in found.tool_calls or ()] == [
        (True, False),
        (False, False),
        (True, True),
    ]
    assert [call.arguments for call in found.tool_calls or ()] == [
        hashed({"q": 1}),
        *[hashed({"id": 7})] * 2,
    ]


def test_the_first_rule_that_matches_decides() -> None:
    rules = [{"kind": "other", "name": "ping"}, {"kind": "tool", "scope": "my_*"}]
    operation = {"gen_ai.operation.name": "chat"}

    assert by(rules, span(name="ping", scope="my_app"))[0] is Kind.OTHER
    assert by(rules, span(name="pong", scope="my_app", attributes=operation))[0] is Kind.TOOL
    assert by(rules, span(name="pong", scope="app", attributes=operation))[0] is Kind.MODEL


@pytest.mark.parametrize(
    ("rule", "name", "expected"),
    [
        ({"kind": "tool", "name": "tool:*"}, "tool:search", "search"),
        ({"kind": "tool", "name": "*.call"}, "search.call", "search"),
        ({"kind": "tool"}, "search", "search"),
        ({"kind": "tool", "name": "search"}, "search", "search"),
        ({"kind": "tool", "name": "tool:*", "tool": "t"}, "tool:search", "by key"),
        ({"kind": "tool", "tool": "absent"}, "search", None),
        ({"kind": "agent", "name": "agent:*"}, "agent:support", "support"),
        ({"kind": "agent", "name": "run_agent"}, "run_agent", None),
        ({"kind": "handoff", "name": "to *"}, "to billing", "billing"),
    ],
)
def test_names_come_from_a_key_or_from_the_span(
    rule: dict[str, Any], name: str, expected: str | None
) -> None:
    _, facts = by([rule], span(name=name, attributes={"t": "by key"}))

    match facts:
        case Facts(calls=(call,)):
            assert call.name == expected
        case InvocationFacts():
            assert facts.name == expected
        case _:
            assert facts == HandoffFacts(expected)


@pytest.mark.parametrize(
    ("value", "matches"), [("agent", True), ("Agent", False), (True, False), (None, False)]
)
def test_values_are_matched_as_text(value: object, matches: bool) -> None:
    rules = [{"kind": "agent", "attributes": {"is": "agent"}}]

    assert (
        by(rules, span(attributes={"is": value} if value is not None else {}))[0] is Kind.AGENT
    ) is matches
    assert (
        by([{"kind": "agent", "attributes": {"is": "true"}}], span(attributes={"is": True}))[0]
        is Kind.AGENT
    )
    assert (
        by([{"kind": "agent", "attributes": {"is": "7"}}], span(attributes={"is": 7}))[0]
        is Kind.AGENT
    )


def test_a_call_fails_by_its_status_too() -> None:
    rule = {"kind": "tool", "outcome": "o"}
    failed = [
        by([rule], span(status=status, attributes=attributes))[1].calls[0].failed
        for status, attributes in [
            (STATUS_ERROR, {}),
            (0, {}),
            (0, {"o": False}),
            (0, {"o": "maybe"}),
            (0, {"o": "error"}),
        ]
    ]

    assert failed == [True, False, True, False, True]
    assert by([{"kind": "model"}], span()) == (Kind.MODEL, ModelFacts(tokens=Tokens()))
    assert by([{"kind": "retrieval"}], span()) == (Kind.RETRIEVAL, None)
