"""Mastra."""

from __future__ import annotations

from typing import Any

from otel_reliability.model.run import Outcome
from otel_reliability.model.span import KIND_SERVER, RawSpan
from otel_reliability.testing import span
from tests.conventions.reading import call, hashed, is_nothing, run

OPERATION = "gen_ai.operation.name"


MASTRA = "@mastra/otel"


def mastra(
    number: int, parent: int | None, operation: str, *, kind: int = 1, **attributes: Any
) -> RawSpan:
    """A span of Mastra: no flags, an operation of its own."""
    facts = {key.replace("__", "."): value for key, value in attributes.items()}
    return span(
        number,
        parent,
        attributes={OPERATION: operation, **facts},
        kind=kind,
        scope=MASTRA,
        remote=None,
    )


def test_q29_mastra_names_agents_by_id() -> None:
    """`agent.run` of kind SERVER is an agent, named by its id; `tool.execute` a call; `model.step`
    nothing; thread a session.
    """
    agent = mastra(
        1, None, "agent.run", kind=KIND_SERVER, gen_ai__agent__id="support_agent", threadId="conv-7"
    )
    tool = mastra(3, 2, "tool.execute", gen_ai__tool__name="search", gen_ai__tool__input='{"q": 1}')
    found = run(agent, mastra(2, 1, "chat"), tool)

    assert (found.key.agent, found.session_id, found.path) == (
        "support_agent",
        "conv-7",
        ("search",),
    )
    assert call(tool).arguments == hashed({"q": 1})
    assert is_nothing(mastra(1, None, "model.step"))


def test_q29_a_failed_run_of_mastra() -> None:
    """`chat` fails by finish reason with status OK, and the root is never exported: an orphan that
    failed.
    """
    lost = mastra(2, 1, "chat", gen_ai__response__finish_reasons="error")
    tool = mastra(3, 2, "tool.execute", gen_ai__tool__name="search")
    found = run(lost, tool)

    assert (found.implicit, found.incomplete, found.outcome) == (True, True, Outcome.FAILURE)


def test_q28_mastras_sub_agent_below_a_model_span_counts_apart() -> None:
    """One `chat` spans the whole loop, tools and sub-agents with it."""
    usage = {"gen_ai__usage__input_tokens": 100, "gen_ai__usage__output_tokens": 10}
    found = run(
        mastra(1, None, "agent.run", gen_ai__agent__id="support"),
        mastra(2, 1, "chat", **usage),
        mastra(3, 2, "tool.execute", gen_ai__tool__name="billing"),
        mastra(4, 3, "agent.run", gen_ai__agent__id="billing"),
        mastra(5, 4, "chat", **usage),
    )

    assert (found.input_tokens, found.output_tokens) == (200, 20)


def test_a_tool_that_had_no_success_failed() -> None:
    failed, made = [
        mastra(1, None, "tool.execute", gen_ai__tool__name="search", gen_ai__tool__success=success)
        for success in (False, True)
    ]

    assert call(failed).failed
    assert not call(made).failed
