"""Runs of one agent in one container, and agents without their steps."""

from __future__ import annotations

from otel_reliability.model.span import AgentSpan, Session
from otel_reliability.testing import agent, model, tool
from tests.assembly.rebuilding import chain, rebuilt, run_of


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
