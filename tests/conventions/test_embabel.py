"""Embabel."""

from __future__ import annotations

import pytest

from otel_reliability.model.run import Outcome
from otel_reliability.model.span import STATUS_ERROR, RawSpan
from otel_reliability.testing import span
from tests.conventions.reading import is_nothing, run


def observed(
    event: str,
    operation: str | None,
    number: int = 1,
    parent: int | None = None,
    status: int = 0,
    **facts: str,
) -> RawSpan:
    """An observation of Embabel; `__` in a name stands for a dot."""
    told = {key.replace("__", "."): value for key, value in facts.items()}
    named = {} if operation is None else {"gen_ai.operation.name": operation}
    attributes = {**named, "embabel.event.type": event, **told}
    return span(
        number,
        parent,
        attributes=attributes,
        scope="org.springframework.boot",
        status=status,
        start=float(number),
    )


def agent(status: str) -> RawSpan:
    return observed(
        "agent_process", "agent", embabel__agent__name="planner", embabel__agent__status=status
    )


def test_an_agent_is_a_run_with_the_tools_of_its_actions() -> None:
    chat = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": "90"}
    found = run(
        agent("COMPLETED"),
        observed("action", "action", 2, 1, embabel__agent__name="planner"),
        observed("llm_call", None, 3, 2),
        span(4, 3, attributes=chat, scope="org.springframework.boot", start=4),
        observed("tool_call", "execute_tool", 5, 3, STATUS_ERROR, gen_ai__tool__name="search"),
        observed("tool_call", "execute_tool", 6, 3, gen_ai__tool__name="search"),
        observed("llm_invocation", None, 7, 3, gen_ai__usage__input_tokens="90"),
    )
    assert (found.key.agent, found.path) == ("planner", ("search", "search"))
    assert [(one.ok, one.retry) for one in found.tool_calls or ()] == [(False, False), (True, True)]
    assert (found.input_tokens, found.outcome) == (90, Outcome.COMPLETED)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ("FAILED", Outcome.FAILURE),
        ("STUCK", Outcome.FAILURE),
        ("WAITING", Outcome.PAUSED),
        ("KILLED", Outcome.CANCELLED),
    ],
)
def test_a_process_says_how_it_ended(status: str, outcome: Outcome) -> None:
    chat = span(2, 1, attributes={"gen_ai.operation.name": "chat"})
    assert run(agent(status), chat).outcome is outcome


def test_plans_and_goals_are_no_steps() -> None:
    assert is_nothing(observed("planning", "planning"))
    assert is_nothing(observed("goal", "goal_achieved"))
