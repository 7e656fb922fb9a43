"""VoltAgent."""

from __future__ import annotations

from typing import Any

from otel_reliability.model.span import STATUS_ERROR, RawSpan, Tokens
from otel_reliability.testing import span
from tests.conventions.reading import invocation, is_nothing, model, run


def volt(number: int = 1, parent: int | None = None, status: int = 0, **facts: Any) -> RawSpan:
    """A span of VoltAgent; `__` in a name stands for a dot."""
    told = {key.replace("__", "."): value for key, value in facts.items()}
    attributes = {"entity.type": "agent", "entity.name": "planner", **told}
    return span(number, parent, attributes=attributes, scope="@voltagent/core", status=status)


def test_totals_are_those_of_the_agent() -> None:
    root = volt(usage__prompt_tokens=514, usage__completion_tokens=59, conversation__id="c-7")
    found = run(
        root,
        volt(2, 1, span__type="llm", llm__model="gpt"),
        volt(3, 1, STATUS_ERROR, span__type="tool", tool__name="search"),
        volt(4, 1, span__type="memory"),
    )
    assert (found.key.agent, found.session_id, found.path) == ("planner", "c-7", ("search",))
    assert (found.input_tokens, found.output_tokens) == (514, 59)
    assert [one.ok for one in found.tool_calls or ()] == [False]


def test_a_model_span_covers_many_calls_and_tells_no_tokens() -> None:
    assert model(volt(span__type="llm", llm__usage__prompt_tokens=262)).tokens == Tokens()


def test_a_subagent_bears_its_own_name() -> None:
    assert invocation(volt(subagent__name="visa")).name == "visa"
    assert is_nothing(volt(span__type="memory"))
