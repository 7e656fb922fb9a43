"""pydantic-ai. (What it has in common with OTel GenAI is tested there.)"""

from __future__ import annotations

import json
from typing import Any

from otel_reliability.model.run import Outcome
from otel_reliability.model.span import Kind, RawSpan
from otel_reliability.testing import span
from tests.conventions.reading import read, run

SCOPE = "pydantic-ai"


def told(operation: str, number: int, parent: int | None = None, **facts: Any) -> RawSpan:
    """A span of pydantic-ai; `__` in a name stands for a dot."""
    own = {key.replace("__", "."): value for key, value in facts.items()}
    attributes = {"gen_ai.operation.name": operation, "gen_ai.agent.name": "support", **own}
    return span(number, parent, attributes=attributes, scope=SCOPE, start=float(number))


def test_a_deferred_call_is_no_step_and_its_run_is_paused() -> None:
    """From format 5 on, a deferral is no error."""
    found = run(
        told("invoke_agent", 1),
        told("chat", 2, 1),
        told(
            "execute_tool",
            3,
            1,
            gen_ai__tool__name="pay",
            pydantic_ai__tool__deferral__name="ApprovalRequired",
        ),
    )
    assert (found.path, found.outcome) == ((), Outcome.PAUSED)


def test_a_run_whose_result_are_deferred_calls_is_paused() -> None:
    """Tools that always need an approval have no span."""
    deferred = json.dumps({"calls": [], "approvals": [{"tool_name": "pay"}], "metadata": {}})
    answered = json.dumps({"calls": 3})
    outcomes = [
        run(told("invoke_agent", 1, final_result=result), told("chat", 2, 1)).outcome
        for result in (deferred, answered, "done")
    ]
    assert read(told("invoke_agent", 1, final_result=deferred)).kind is Kind.AGENT
    assert outcomes == [Outcome.PAUSED, Outcome.COMPLETED, Outcome.COMPLETED]
