"""Runs of one agent in one container, and agents without their steps."""

from __future__ import annotations

from msgspec.structs import replace

from otel_reliability.conventions.sketch import sketch_of
from otel_reliability.model.span import (
    PAUSED,
    AgentSpan,
    InvocationFacts,
    Kind,
    ModelFacts,
    RejectionFacts,
    Session,
    Tokens,
)
from otel_reliability.testing import agent, agent_span, model, tool, workflow
from tests.assembly.rebuilding import asking, chain, rebuilt, run_of


def looped(second_input: int = 10) -> list[AgentSpan]:
    """A chain of the user, and in it an agent that is invoked twice."""
    return [
        chain(1, start=0, end=20, scope="own"),
        agent(2, 1, start=1, end=5),
        model(3, 2, (10, 1), start=1, end=2),
        tool(4, 2, "post", start=3, end=4),
        agent(5, 1, start=6, end=10),
        model(6, 5, (second_input, 1), start=6, end=7),
        tool(7, 5, "post", start=8, end=9),
    ]


def test_a_loop_over_an_agent_is_a_run_for_each_round() -> None:
    assert [(run.key.agent, run.path, run.nested) for run in rebuilt(*looped())] == [
        ("agent", ("post",), False),
        ("agent", ("post",), False),
    ]


def test_an_agent_whose_input_grows_is_reported_once_a_step() -> None:
    assert run_of(*looped(second_input=25)).path == ("post", "post")


def test_a_container_with_steps_of_its_own_is_one_run() -> None:
    assert run_of(*looped(), tool(8, 1, "save", start=11)).path == ("post", "post", "save")


def test_what_begins_again_after_its_end_is_a_later_run_though_it_lies_below() -> None:
    """A context that was kept (a team's, a decorated function's, a job's that a tool left) puts
    every run below the one before.
    """
    for made in (agent, workflow):
        spans = [
            made(1, called="desk", end=5),
            tool(2, 1, "plan", end=4),
            made(3, 2, called="desk", start=60, end=65),
            tool(4, 3, "remind", start=61, end=62),
        ]
        found = rebuilt(*spans)

        assert [(run.path, run.nested) for run in found] == [
            (("plan",), False),
            (("remind",), False),
        ]
        assert [run.end_ns - run.start_ns for run in found] == [5_000_000_000] * 2


def test_what_follows_one_that_paused_is_its_resumption() -> None:
    """Mastra puts it below the one that was suspended."""
    first = agent(1, called="desk", end=5)
    paused = replace(first, facts=InvocationFacts("desk", stopped=PAUSED))
    resumed = agent(3, 1, "desk", start=60, end=65)
    spans = [tool(2, 1, "plan", end=4), resumed, tool(4, 3, "pay", start=61, end=62)]

    assert run_of(paused, *spans).path == ("plan", "pay")
    waiting = agent_span(Kind.TOOL, RejectionFacts(pending=True), 5, 1, start=4)
    assert run_of(first, waiting, *spans).path == ("plan", "pay")


def test_below_an_invocation_that_did_nothing_before_its_end_nothing_is_later() -> None:
    """It reported its end too early: its steps come after it."""
    spans = [
        agent(1, called="desk", end=0.1),
        agent(2, 1, "desk", start=1, end=5),
        tool(3, 2, "plan", start=2),
    ]

    assert [(run.path, run.nested) for run in rebuilt(*spans)] == [(("plan",), False)]


def test_another_agent_after_the_end_of_its_caller_is_nested() -> None:
    spans = [
        agent(1, called="desk", end=5),
        tool(2, 1, "plan", end=4),
        agent(3, 2, "billing", start=60, end=65),
        tool(4, 3, "refund", start=61, end=62),
    ]

    assert [(run.key.agent, run.nested) for run in rebuilt(*spans)] == [
        ("desk", False),
        ("billing", True),
    ]


def turns(first: str, second: str, *, container: InvocationFacts | None = None) -> list[AgentSpan]:
    """A container of the agent's own framework, and in it two answers, the second to longer input.

    The framework is one that reports the request of an invocation.
    """

    def asked(number: int, request: str, start: float) -> AgentSpan:
        facts = InvocationFacts("agent", request=sketch_of(request))
        return agent_span(Kind.AGENT, facts, number, 1, start=start, end=start + 4)

    return [
        chain(1, facts=container, start=0, end=20),
        asked(2, first, 1),
        model(3, 2, (10, 1), start=1, end=2),
        asked(4, second, 6),
        model(5, 4, (25, 1), start=6, end=7),
    ]


FLIGHT = "Where can I find the cheapest flight from Oslo to Rome?"
CANCEL = "Cancel my order and refund the card, please"


def test_turns_below_one_span_of_their_framework_are_runs_by_what_is_asked() -> None:
    assert len(rebuilt(*turns(FLIGHT, CANCEL))) == 2
    assert len(rebuilt(*turns(FLIGHT, FLIGHT))) == 1
    # the container was asked: what it asks of the agent is part of its answer
    asked = InvocationFacts(request=sketch_of(FLIGHT))
    assert len(rebuilt(*turns(FLIGHT, CANCEL, container=asked))) == 1


def test_an_invocation_that_asks_for_a_tool_has_not_ended_a_turn() -> None:
    spans = turns(FLIGHT, CANCEL)
    spans[2] = asking(ModelFacts(tokens=Tokens(10, 1), asked_for_tools=True), 3, 2, start=1, end=2)

    assert len(rebuilt(*spans)) == 1


def test_agents_of_different_conversations_are_runs_of_their_own() -> None:
    spans = [
        chain(1, start=0, end=20),
        agent(2, 1, start=1, end=5, session=Session(1, "a")),
        tool(3, 2, "post", start=3, end=4),
        agent(4, 1, start=6, end=10, session=Session(1, "b")),
        tool(5, 4, "post", start=8, end=9),
    ]

    assert [(run.session_id, run.path) for run in rebuilt(*spans)] == [
        ("a", ("post",)),
        ("b", ("post",)),
    ]


def test_the_path_of_an_agent_whose_steps_lie_below_its_caller_is_unknown() -> None:
    spans = [
        agent(1, called="front", end=20),
        tool(2, 1, "Task", start=1, end=10),
        agent(3, 2, "back", start=2, end=9),
        tool(4, 1, "Bash", start=4, end=5),
    ]
    front, back = rebuilt(*spans)

    assert (front.path, back.path, back.nested) == (("Bash", "Task"), None, True)
    assert [run.key.agent for run in rebuilt(*spans[:3])] == ["front"]
