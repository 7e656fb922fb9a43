"""Roots that arrive after their runs are final: the run waited longer than `reopen`."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from otel_reliability.config import AssemblySettings, Settings
from otel_reliability.engine import Engine
from otel_reliability.model.flaws import LATE_ROOT
from otel_reliability.model.run import CloseReason, Outcome, Run, RunChange, Tools
from otel_reliability.model.span import AgentSpan, InvocationFacts, Notes, Session, Tokens
from otel_reliability.read_view import ReadView
from otel_reliability.testing import FakeClock, agent, at, model, tool, workflow
from tests.assembly.rebuilding import Watched, chain, invocation, noted

SOON = AssemblySettings(linger=2.0, idle_timeout=10.0, reopen=20.0)
ROOT = 7
STEPS = (model(2, ROOT, start=1, end=2), tool(3, ROOT, "search", start=3, end=4))


def waited(*late: AgentSpan, steps: tuple[AgentSpan, ...] = STEPS) -> list[tuple[RunChange, Run]]:
    """What changes when these come long after the steps of their run."""
    watched = Watched(SOON)
    watched.add(*steps)
    assert watched.wait(60)[-1][0] is RunChange.FINAL
    watched.add(*late)
    return watched.wait(60)


def test_a_late_root_names_and_completes_its_run() -> None:
    root = agent(ROOT, called="support", end=4_000, session=Session(0, "conversation"))

    [(change, run)] = waited(root)

    assert (change, run.key.agent, run.session_id) == (
        RunChange.REVISED,
        "support",
        "conversation",
    )
    assert (run.implicit, run.incomplete, run.root_span_id) == (False, False, root.span_id)
    assert (run.start_ns, run.end_ns, run.path) == (at(0), at(4_000), ("search",))
    assert (run.outcome, run.ended_in_error) == (Outcome.COMPLETED, False)
    assert run.flaws == (LATE_ROOT,)
    assert [call.agent for call in run.tool_calls or ()] == ["support"]


@pytest.mark.parametrize(
    ("root", "outcome", "source"),
    [
        (agent(ROOT, failed=True), Outcome.FAILURE, "root_error"),
        (invocation(InvocationFacts("a", stopped="cancelled"), ROOT), Outcome.CANCELLED, "stopped"),
        (invocation(InvocationFacts("a", limit_reached=True), ROOT), Outcome.FAILURE, "limit"),
        (noted(agent(ROOT), success=True), Outcome.SUCCESS, "reliability.run.success"),
    ],
)
def test_a_late_root_decides_the_outcome(root: AgentSpan, outcome: Outcome, source: str) -> None:
    [(_, run)] = waited(root)

    assert (run.outcome, run.outcome_source) == (outcome, source)


def test_what_lies_between_a_run_and_its_root_may_come_late_too() -> None:
    turn = chain(ROOT, 8, end=4_000)
    root = agent(8, 9, called="support", end=4_000)
    above = workflow(9, None, "service", end=4_000)

    changes = waited(turn, root, above)

    assert [(change, run.key.agent) for change, run in changes] == [(RunChange.REVISED, "support")]


def test_an_agent_above_that_has_more_below_it_stays_a_run_of_its_own() -> None:
    late = agent(ROOT, 8, called="helper", start=0, end=4_000)
    above = [tool(10, 8, "ask", start=3_500), agent(8, None, "main", end=4_100)]

    changes = waited(*above, late)

    assert [(run.key.agent, run.path) for change, run in changes if change is RunChange.FINAL] == [
        ("main", ("ask",))
    ]
    assert [run.key.agent for change, run in changes if change is RunChange.REVISED] == ["helper"]


def test_the_path_is_unknown_where_steps_came_late_too() -> None:
    [(_, run)] = waited(
        tool(4, ROOT, "book", start=3_000), agent(ROOT, called="support", end=4_000)
    )

    assert (run.key.agent, run.path, run.tools) == ("support", None, Tools.UNOBSERVABLE)


def test_the_tokens_that_a_late_root_reports_count_where_they_are_more() -> None:
    facts = InvocationFacts("support", tokens=Tokens(900, 5))
    [(_, run)] = waited(invocation(facts, ROOT))

    assert (run.input_tokens, run.output_tokens) == (900, 10)


def test_a_late_span_that_is_no_parent_of_a_run_changes_none() -> None:
    changes = waited(tool(5, 3), agent(6, None, "other", start=3_000))

    assert [(change, run.key.agent) for change, run in changes] == [
        (RunChange.CLOSED, "other"),
        (RunChange.FINAL, "other"),
    ]


def agents_in(view: ReadView) -> list[str]:
    keys = view.keys()
    return [key.agent for key in keys]


def test_windows_have_no_agent_beside_the_real_one() -> None:
    clock = FakeClock()
    engine = Engine(Settings(assembly=SOON), clock=clock, wall=None)
    other = [replace(span, trace_id=bytes(15) + b"\2") for span in (agent(ROOT, called="support"),)]
    for spans in (STEPS, other, [agent(ROOT, called="support", end=4_000)]):
        engine.receive(spans)
        for _ in range(60):
            clock.advance(1.0)
            engine.tick()
    engine.flush(CloseReason.SHUTDOWN)

    assert engine.read(agents_in) == ["support"]
    assert [run.path for run in engine.take_revised()] == [("search",)]


def test_notes_of_a_late_root_are_of_its_run() -> None:
    root = replace(agent(ROOT), notes=Notes(task_id="refund", trial=2, cost=0.5))
    [(_, run)] = waited(root)

    assert (run.task_id, run.trial, run.cost) == ("refund", 2, 0.5)
