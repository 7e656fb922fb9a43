"""The bounds of runs whose work goes on in the background, or on another clock."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from otel_reliability.model.span import KIND_CONSUMER, KIND_SERVER, AgentSpan, Resource
from otel_reliability.testing import RESOURCE, agent, model, tool
from tests.assembly.rebuilding import rebuilt, run_of

REMOTE = replace(RESOURCE, service_name="remote")


def delegating(start: float, end: float, resource: Resource = RESOURCE) -> list[AgentSpan]:
    """An agent of 10 s that calls another by a tool of 2 s."""
    return [
        agent(1, called="front", start=0, end=10),
        tool(2, 1, "ask", start=2, end=4),
        agent(3, 2, "back", start=start, end=end, resource=resource),
        model(4, 3, (7, 3), start=start, end=end, resource=resource),
        tool(5, 1, "notify", start=6, end=7),
    ]


@pytest.mark.parametrize(("resource", "tokens"), [(RESOURCE, 7), (REMOTE, None)])
def test_an_agent_in_the_background_moves_no_bounds(resource: Resource, tokens: int | None) -> None:
    """It was started by a tool, and lasted longer than the run that started it. In another service
    its tokens are its own.
    """
    front, back = rebuilt(*delegating(3, 300, resource))

    assert (front.key.agent, front.duration_s, front.input_tokens) == ("front", 10, tokens)
    assert (back.key.agent, back.duration_s, back.input_tokens) == ("back", 297, 7)


@pytest.mark.parametrize("start", [-30, 2, 40])
def test_another_clock_moves_no_bounds(start: float) -> None:
    front = run_of(*delegating(start, start + 1, REMOTE))

    assert (front.duration_s, front.input_tokens) == (10, 7)


def test_own_steps_after_the_end_of_an_agent_are_part_of_its_duration() -> None:
    assert run_of(agent(1, end=0), model(2, 1, start=1, end=7)).duration_s == 7


@pytest.mark.parametrize(
    ("start", "kind", "flaws"),
    [
        (3, KIND_SERVER, ()),
        (40, KIND_SERVER, ("clock_skew",)),
        (-40, KIND_SERVER, ("clock_skew",)),
        (40, KIND_CONSUMER, ()),
    ],
)
def test_an_answer_outside_of_its_caller_shows_a_clock_that_is_ahead_or_behind(
    start: float, kind: int, flaws: tuple[str, ...]
) -> None:
    served = tool(3, 2, "ask", start=start, end=start + 1, resource=REMOTE, span_kind=kind)
    run = run_of(agent(1, end=10), tool(2, 1, "ask", start=2, end=5), served)

    assert run.flaws == flaws
