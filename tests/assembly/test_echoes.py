"""Runs that two instrumentations report side by side."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from otel_reliability.model.flaws import REPORTED_TWICE
from otel_reliability.model.span import AgentSpan
from otel_reliability.testing import agent, model, other, tool
from tests.assembly.rebuilding import rebuilt


def seen(number: int, scope: str, late: float = 0.0, called: str = "search") -> list[AgentSpan]:
    """A run below the span of a web request, as one instrumentation reports it."""
    spans = [
        agent(number, 1, "desk", start=late, end=9 + late),
        model(number + 1, number, start=1 + late, end=2 + late),
        tool(number + 2, number, called, start=2 + late, end=3 + late),
    ]
    return [replace(span, scope=scope) for span in spans]


def flaws(*spans: AgentSpan) -> list[tuple[str, ...]]:
    return [run.flaws for run in rebuilt(other(1, end=10), *spans)]


def test_two_reports_of_one_execution_say_so() -> None:
    found = flaws(*seen(10, "langfuse-sdk"), *seen(20, "openinference", late=0.002))

    assert found == [(REPORTED_TWICE,), (REPORTED_TWICE,)]


@pytest.mark.parametrize(
    "second",
    [
        seen(20, "langfuse-sdk", late=0.002),
        seen(20, "openinference", late=0.5),
        seen(20, "openinference", called="book"),
        seen(20, "openinference")[:2],
    ],
)
def test_two_executions_do_not(second: list[AgentSpan]) -> None:
    """Of one instrumentation, at another time, of other calls, or of fewer."""
    assert flaws(*seen(10, "langfuse-sdk"), *second) == [(), ()]
