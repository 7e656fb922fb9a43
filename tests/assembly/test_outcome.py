"""How a run ended, by its spans."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from otel_reliability.model.run import Outcome
from otel_reliability.model.span import PAUSED, AgentSpan, InvocationFacts
from otel_reliability.testing import agent, at, model, tool
from tests.assembly.rebuilding import chain, run_of


@pytest.mark.parametrize(
    ("last", "outcome", "in_error"),
    [
        (model(3, 1, start=4, end=6, failed=True), Outcome.FAILURE, True),
        (model(3, 1, start=4, end=6), Outcome.COMPLETED, False),
        (tool(3, 1, "search", start=4, end=6, failed=True), Outcome.COMPLETED, False),
        (model(3, 1, start=4, end=12, failed=True), Outcome.COMPLETED, False),
    ],
    ids=["a failed model call", "a model call", "a failed tool call", "in the background"],
)
def test_a_run_without_an_answer_ended_in_an_error(
    last: AgentSpan, outcome: Outcome, in_error: bool
) -> None:
    """Its root says nothing: many agents catch what their model raises."""
    run = run_of(agent(1, start=0, end=10), model(2, 1, start=1, end=3), last)

    assert (run.outcome, run.ended_in_error) == (outcome, in_error)


def test_a_model_call_that_was_tried_again_decides_nothing() -> None:
    run = run_of(
        agent(1, start=0, end=10),
        model(2, 1, start=1, end=3, failed=True),
        model(3, 1, start=4, end=6),
    )

    assert (run.outcome, run.ended_in_error) == (Outcome.COMPLETED, False)


@pytest.mark.parametrize(("later", "outcome"), [(1, Outcome.PAUSED), (7, Outcome.COMPLETED)])
def test_a_step_of_a_graph_that_waits_pauses_its_run(later: float, outcome: Outcome) -> None:
    """Middleware that asks a person raises in a node of its own; the root ends well."""
    node = replace(chain(2, 1), start_ns=at(3), end_ns=at(5), facts=InvocationFacts(stopped=PAUSED))
    run = run_of(agent(1, start=0, end=10), node, model(3, 1, start=later, end=later + 1))

    assert run.outcome is outcome
