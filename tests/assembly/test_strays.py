"""Tool calls in traces of their own, beside agents of the same service."""

from __future__ import annotations

import itertools

import pytest
from msgspec.structs import replace

from otel_reliability.assembly.lifecycle import Assembler
from otel_reliability.config import AssemblySettings, Settings
from otel_reliability.engine import Engine
from otel_reliability.model.flaws import SPLIT_TRACE
from otel_reliability.model.run import CloseReason, Run, RunChange, Tools
from otel_reliability.model.span import AgentSpan, Evaluation, Resource, Session
from otel_reliability.testing import FakeClock, agent, model, other, tool, trace_id, workflow
from tests.assembly.rebuilding import Watched

OTHER = Resource.of({"service.name": "other"})


def final(*traces: list[AgentSpan]) -> list[Run]:
    """The final runs of traces that arrive one after the other, a second apart."""
    clock = FakeClock()
    engine = Engine(clock=clock, wall=None)
    for spans in traces:
        engine.receive(spans)
        for _ in range(30):
            clock.advance(1.0)
            engine.tick()
    engine.flush(CloseReason.SHUTDOWN)
    runs = engine.take_final()
    assert engine.accounts["used", ""] == sum(run.span_count for run in runs)
    return sorted(runs, key=lambda run: run.run_id)


def stray(trace: int, start: float, **fields: object) -> list[AgentSpan]:
    return [replace(tool(1, None, "search", start=start, end=start + 0.5, trace=trace), **fields)]


def asks(trace: int, start: float) -> list[AgentSpan]:
    """A run of ten seconds with a model call and no tool span."""
    return [
        agent(1, called="bot", start=start, end=start + 10, trace=trace),
        model(2, 1, start=start + 1, end=start + 2, trace=trace),
    ]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_call_beside_an_agent_is_no_run_and_hides_the_path_of_the_run_around_it(
    order: tuple[int, ...],
) -> None:
    traces = [asks(1, 0.0), stray(2, 3.0), asks(3, 100.0)]

    around, apart = final(*(traces[at] for at in order))

    assert (around.key.agent, around.path, around.tool_calls) == ("bot", None, None)
    assert (around.tools, around.flaws) == (Tools.UNOBSERVABLE, (SPLIT_TRACE,))
    assert (apart.key.agent, apart.path, apart.flaws) == ("bot", (), ())


def test_an_agent_that_shows_no_step_may_have_made_a_call_after_its_end() -> None:
    bare = [agent(1, called="bot", start=0, end=0.01, trace=1)]

    assert [run.path for run in final(bare, stray(2, 3.0))] == [None]
    assert [run.path for run in final([agent(1, start=9, end=10, trace=1)], stray(2, 3.0))] == [()]


def test_calls_of_a_service_without_an_agent_are_runs() -> None:
    assert [run.path for run in final(stray(1, 0.0), stray(2, 5.0))] == [("search",)] * 2


def test_another_service_is_not_concerned() -> None:
    run, other = final(asks(1, 0.0), stray(2, 3.0, resource=OTHER))

    assert (run.path, run.flaws) == ((), ())
    assert (other.key.service_name, other.path) == ("other", ("search",))


def test_a_run_that_has_its_calls_keeps_its_path() -> None:
    spans = [*asks(1, 0.0), tool(3, 1, "book", start=4, end=5, trace=1)]

    [run] = final(spans, stray(2, 3.0))

    assert (run.path, run.flaws) == (("book",), ())


def test_runs_of_a_file_are_held_until_its_end() -> None:
    engine = Engine(clock=lambda: 0.0, wall=None)
    engine.receive(asks(1, 0.0))
    engine.complete([trace_id(1)])
    assert engine.take_final() == []

    engine.receive(stray(2, 3.0))
    engine.complete([trace_id(2)])
    engine.flush(CloseReason.END_OF_INPUT)

    assert [run.path for run in engine.take_final()] == [None]


# --- Workflows that lost all of their steps -------------------------------------------------------


def hollow(trace: int, start: float, session: str | None = "thread") -> list[AgentSpan]:
    """A workflow of ten seconds that names its conversation, and has nothing below it."""
    named = None if session is None else Session(0, session)
    return [workflow(1, None, "graph", start=start, end=start + 10, trace=trace, session=named)]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_workflow_around_a_call_without_a_parent_is_the_run_that_lost_it(
    order: tuple[int, ...],
) -> None:
    lone_model = [model(1, None, start=2.0, trace=3)]
    traces = [hollow(1, 0.0), stray(2, 3.0), lone_model]

    (run,) = final(*(traces[at] for at in order))

    assert (run.key.agent, run.session_id, run.path) == ("graph", "thread", None)
    assert (run.tools, run.flaws, run.outcome.value) == (
        Tools.UNOBSERVABLE,
        (SPLIT_TRACE,),
        "completed",
    )


@pytest.mark.parametrize(
    "traces",
    [
        [hollow(1, 0.0)],
        [hollow(1, 0.0), asks(2, 0.0)],
        [hollow(1, 0.0), [replace(stray(2, 3.0)[0], resource=OTHER)]],
        [hollow(1, 0.0), stray(2, 30.0)],
        [hollow(1, 0.0, session=None), stray(2, 3.0)],
    ],
)
def test_an_empty_workflow_is_no_run_where_nothing_shows_that_it_lost_a_call(
    traces: list[list[AgentSpan]],
) -> None:
    assert "graph" not in {run.key.agent for run in final(*traces)}


def test_an_empty_workflow_whose_steps_come_late_is_a_run_with_them() -> None:
    (run,) = final(hollow(1, 0.0), [tool(2, 1, "search", start=3.0, trace=1)])

    assert (run.key.agent, run.path, run.flaws) == ("graph", ("search",), ())


def test_an_empty_workflow_takes_in_work_whose_parent_is_missing() -> None:
    (run,) = final([*hollow(1, 0.0), tool(2, 9, "search", start=3.0, trace=1)])

    assert (run.key.agent, run.path) == ("graph", ("search",))


def test_where_traces_of_a_service_go_to_several_workers_an_empty_workflow_is_no_run() -> None:
    assembler = Assembler(Settings(), whole_services=False)
    assembler.add_all(hollow(1, 0.0), 0.0)
    events = assembler.close_all(CloseReason.SHUTDOWN, 0.0)

    assert events == []
    assert assembler.accounts.spans["other", "no_run"] == 1
    assert assembler.accounts.spans["used", ""] == 0


# --- Runs that turn out to be calls without an agent, and back ------------------------------------


SOON = AssemblySettings(linger=2.0, idle_timeout=5.0, reopen=60.0)


def test_work_whose_missing_parent_turns_out_to_be_no_agent_is_withdrawn() -> None:
    """It was a run of its own as long as its parent might have been one."""
    watched = Watched(SOON)
    watched.add(*asks(1, 100.0))
    watched.wait(10)
    watched.add(tool(2, 9, "search", start=3.0, trace=2))
    assert [change for change, _ in watched.wait(10)] == [RunChange.CLOSED]
    watched.add(other(9, None, start=2.0, end=5.0, trace=2))

    assert [change for change, _ in watched.wait(10)] == [RunChange.WITHDRAWN]


def test_a_call_beside_an_agent_that_turns_out_to_lie_in_one_is_a_run() -> None:
    """A span's two versions have one id, and so have their runs."""
    watched = Watched(SOON)
    watched.add(*asks(1, 100.0))
    watched.wait(10)
    span = tool(2, None, "search", start=3.0, end=4.0, trace=2)
    watched.add(span)
    assert watched.wait(10) == []
    watched.add(agent(2, None, "late", start=3.0, end=6.0, trace=2))

    [(change, run)] = watched.wait(10)
    assert (change, run.key.agent) == (RunChange.CLOSED, "late")


def test_an_evaluation_of_a_call_that_is_no_run_changes_nothing() -> None:
    assembler = Assembler(Settings())
    assembler.add_all(asks(1, 100.0), 0.0)
    assembler.add_all(stray(2, 3.0), 0.0)
    assembler.close_all(CloseReason.SHUTDOWN, 0.0)
    rating = Evaluation("tone", 1.0, None, 7, trace_id=trace_id(2))
    assembler.evaluate([rating], 1.0)

    assert assembler.tick(1.0) == []
