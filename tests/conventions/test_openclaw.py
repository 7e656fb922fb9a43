"""OpenClaw."""

from __future__ import annotations

from typing import Any

import pytest

from otel_reliability.model.run import Outcome
from otel_reliability.model.span import STATUS_ERROR, RawSpan
from otel_reliability.testing import span
from tests.conventions.reading import run


def seen(
    name: str, number: int, parent: int | None, end: float | None = None, **facts: Any
) -> RawSpan:
    """A span of its diagnostics; `__` in a name stands for a dot."""
    told = {key.replace("__", "."): value for key, value in facts.items()}
    status = told.pop("status", 0)
    return span(
        number,
        parent,
        name=f"openclaw.{name}",
        attributes={"openclaw.channel": "telegram", **told},
        scope="openclaw",
        status=status,
        start=float(number),
        end=float(number) + 1 if end is None else end,
    )


def called(number: int, name: str, **facts: Any) -> RawSpan:
    names: dict[str, Any] = {"openclaw__toolName": name, "gen_ai__tool__name": name}
    return seen("tool.execution", number, 2, gen_ai__tool__call__id=f"c{number}", **names, **facts)


def test_a_run_is_named_by_its_agent_and_has_the_tools_that_were_executed() -> None:
    """The tokens stand on one span of usage; a blocked tool was not called."""
    usage: dict[str, Any] = {"gen_ai__usage__input_tokens": 90, "gen_ai__usage__output_tokens": 9}
    chat: dict[str, Any] = {"gen_ai__operation__name": "chat", "gen_ai__request__model": "claude-x"}
    found = run(
        seen("message.processed", 1, None, 20, openclaw__outcome="completed"),
        seen("run", 2, 1, 19, openclaw__agent="ops", openclaw__outcome="completed"),
        seen("model.call", 3, 2, **chat),
        called(4, "read", status=STATUS_ERROR),
        called(6, "read"),
        called(8, "exec", openclaw__outcome="blocked", openclaw__deniedReason="policy"),
        seen("model.usage", 10, 2, **chat, **usage),
    )

    assert (found.key.agent, found.path, found.input_tokens) == ("ops", ("read", "read"), 90)
    assert [one.ok for one in found.tool_calls or ()] == [False, True]
    assert found.outcome is Outcome.COMPLETED


@pytest.mark.parametrize(
    ("outcome", "expected"), [("aborted", Outcome.CANCELLED), ("completed", Outcome.COMPLETED)]
)
def test_a_run_that_was_aborted_is_cancelled(outcome: str, expected: Outcome) -> None:
    found = run(seen("run", 2, None, 19, openclaw__outcome=outcome), called(4, "read"))

    assert found.outcome is expected


def test_a_harness_around_a_run_is_the_same_run() -> None:
    found = run(
        seen("harness.run", 1, None, 20, openclaw__agent="ops"),
        seen("run", 2, 1, 19, openclaw__agent="ops"),
        called(4, "read"),
    )

    assert (found.key.agent, found.path) == ("ops", ("read",))
