"""tRPC-Agent."""

from __future__ import annotations

from typing import Any

from otel_reliability.model.run import Outcome
from otel_reliability.model.span import STATUS_ERROR, RawSpan
from otel_reliability.testing import span
from tests.conventions.reading import hashed, run

SCOPE = "trpc.python.agent"


def seen(
    operation: str, number: int, parent: int | None, end: float | None = None, **facts: Any
) -> RawSpan:
    """A span of its tracer; names without a dot are under its own."""
    status = facts.pop("status", 0)
    told = {
        (key.replace("__", ".") if "gen_ai" in key else f"{SCOPE}.{key.replace('__', '.')}"): value
        for key, value in facts.items()
    }
    attributes = {"gen_ai.operation.name": operation, "gen_ai.system": SCOPE, **told}
    return span(
        number,
        parent,
        name=operation,
        attributes=attributes,
        scope=SCOPE,
        status=status,
        start=float(number),
        end=float(number) + 1 if end is None else end,
    )


def ran(runner: str, **facts: Any) -> list[RawSpan]:
    return [
        seen(runner, 1, None, 20, runner__session_id="s1", **facts),
        seen("run_agent", 2, 1, 19, agent__name="assistant", agent__session_id="s1"),
        seen("call_llm", 3, 2, gen_ai__usage__input_tokens=20, gen_ai__usage__output_tokens=2),
        seen(
            "execute_tool",
            4,
            2,
            gen_ai__tool__name="weather",
            gen_ai__tool__call__id="<not specified>",
            tool_call_args='{"city": "X"}',
        ),
    ]


def test_a_runner_contains_its_agent() -> None:
    found = run(*ran("run_runner"))

    assert (found.key.agent, found.session_id, found.path) == ("assistant", "s1", ("weather",))
    assert (found.input_tokens, found.outcome) == (20, Outcome.COMPLETED)
    assert [one.arguments for one in found.tool_calls or ()] == [hashed({"city": "X"})]


def test_a_run_that_a_person_cancelled_did_not_fail() -> None:
    found = run(*ran("run_runner_cancelled", status=STATUS_ERROR))

    assert (found.outcome, found.path) == (Outcome.CANCELLED, ("weather",))
