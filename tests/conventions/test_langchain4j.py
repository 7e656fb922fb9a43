"""LangChain4j in Quarkus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from otel_reliability.model.run import Outcome
from otel_reliability.model.span import RawSpan
from otel_reliability.testing import span
from tests.conventions.reading import is_nothing, run

EXCEPTION = ("exception", {"exception.type": "java.lang.IllegalStateException"})


def quarkus(
    number: int, parent: int | None, name: str, *events: Any, facts: Mapping[str, Any] = {}
) -> RawSpan:
    attributes = {f"gen_ai.{key}": value for key, value in facts.items()}
    return span(
        number,
        parent,
        name=name,
        attributes=attributes,
        events=events,
        scope="io.quarkus.opentelemetry",
    )


def test_an_exception_is_a_failure_though_the_status_is_unset() -> None:
    usage = {"request.model": "gpt", "usage.prompt_tokens": 9, "usage.completion_tokens": 2}
    root, tool = "langchain4j.aiservices.TripPlanner.plan", "langchain4j.tools.search"
    named = {"operation.name": "execute_tool", "tool.name": "search"}
    found = run(
        quarkus(1, None, root, EXCEPTION),
        quarkus(2, 1, "completion gpt", facts=usage),
        quarkus(3, 1, tool, EXCEPTION, facts=named),
        quarkus(4, 1, tool, facts=named),
    )
    assert (found.key.agent, found.outcome) == ("TripPlanner", Outcome.FAILURE)
    assert (found.input_tokens, found.output_tokens) == (9, 2)
    assert sorted(one.ok for one in found.tool_calls or ()) == [False, True]
    assert is_nothing(quarkus(1, None, "GET /plan"))
