"""A restart in the middle: what an assembler writes down, another goes on with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.assembly.assembler import Assembler
from otel_reliability.model.event import RunChange, RunEvent
from otel_reliability.model.run import CloseReason, Run
from otel_reliability.model.span import AgentSpan, Evaluation, Notes
from otel_reliability.testing import agent, other, span_id, tool, trace_id
from tests.assembly.rebuilding import spans_in
from tests.laws.arrival import REOPEN, SETTINGS, Arrivals, read, schedules
from tests.laws.telemetry import cases

Restart = Callable[[Assembler, float], Assembler]


def restarted(assembler: Assembler, now: float) -> Assembler:
    """Another assembler that goes on."""
    return Assembler.from_state(SETTINGS, assembler.to_state(now), now)


def runs_after(  # noqa: C901 (one branch for each change)
    arrivals: Arrivals, restart: Restart, at: Sequence[int]
) -> tuple[dict[str, Run], dict[str, Run], object]:
    """The runs that are known in the end, those that became final, and the accounts, with restarts before these batches."""
    assembler, now = Assembler(SETTINGS), 0.0
    runs: dict[str, Run] = {}
    final: dict[str, Run] = {}

    def note(events: Sequence[RunEvent]) -> None:
        for change, run, previous in events:
            plain = run._replace(closed_by=CloseReason.ROOT)
            match change:
                case RunChange.CLOSED:
                    assert run.run_id not in runs, "a run is closed once"
                    runs[run.run_id] = plain
                case RunChange.REVISED:
                    assert previous is not None
                    assert runs[run.run_id] == previous._replace(closed_by=CloseReason.ROOT)
                    runs[run.run_id] = plain
                case RunChange.WITHDRAWN:
                    del runs[run.run_id]
                case RunChange.SETTLED:
                    assert run.run_id not in final, "a run is final once"
                    final[run.run_id] = plain

    for number, (pause, batch) in enumerate([*arrivals, (1.0, ())]):
        now += pause
        note(assembler.tick(now))
        if number in at:
            assembler = restart(assembler, now)
        assembler.add_all([one for one in batch if isinstance(one, AgentSpan)], now)
        for one in batch:
            if isinstance(one, Evaluation):
                assembler.evaluate(one, now)
    for step in range(60):
        now += 5
        note(assembler.tick(now))
        if step in at:
            assembler = restart(assembler, now)
    note(assembler.close_all(CloseReason.END_OF_INPUT, now))
    return runs, final, spans_in(assembler.accounts)


@given(st.data())
def test_a_restart_changes_nothing(data: st.DataObject) -> None:
    """Wherever it comes, and however often: the same runs, each emitted once, and the same accounts."""
    case = data.draw(cases())
    arrivals = data.draw(schedules(read([*case.everything, *case.evaluations])))
    at = data.draw(st.lists(st.integers(0, 20), max_size=3))

    assert runs_after(arrivals, restarted, at) == runs_after(arrivals, restarted, ())


def test_a_closed_run_is_emitted_once_over_a_restart() -> None:
    """Until a late span changes it; then it is revised."""
    assembler = Assembler(SETTINGS)
    assembler.add_all([agent(1), tool(2, 1)], 0.0)
    (closed,) = assembler.tick(3.0)
    assembler = restarted(assembler, 3.0)
    assert assembler.tick(10.0) == []
    assembler.add(tool(3, 1), 11.0)

    assert [(event.change, event.previous) for event in assembler.tick(14.0)] == [(RunChange.REVISED, closed.run)]


def test_the_time_that_a_process_was_down_does_not_count() -> None:
    """Ages are written down, not times."""
    assembler = Assembler(SETTINGS)
    assembler.add_all([agent(1), tool(2, 1)], 0.0)
    assembler.tick(3.0)
    state = assembler.to_state(3.0)
    found = Assembler.from_state(SETTINGS, state, 100_000.0)

    assert found.tick(100_000.0 + REOPEN - 5) == []
    assert [event.change for event in found.tick(200_000.0)] == [RunChange.SETTLED]


def test_what_is_remembered_of_final_runs_outlives_a_restart() -> None:
    """Ids, names of agents, spans that connect others, and evaluations that wait."""
    assembler = Assembler(SETTINGS)
    assembler.add_all([other(9), agent(1, 9, "support"), tool(2, 1)], 0.0)
    assembler.evaluate(Evaluation("success", 1.0, None, 1, trace_id(2), span_id(1)), 0.0)
    assembler.tick(3.0)
    assembler.tick(100.0)
    assembler = restarted(assembler, 100.0)
    assembler.add_all([tool(2, 1), tool(3, 1), agent(5, 9, "billing"), agent(1, trace=2)], 101.0)
    assembler.evaluate(Evaluation("success", 1.0, None, 1, trace_id(1), span_id(1)), 101.0)
    found = [(event.change, event.run.key.agent, event.run.outcome.value) for event in assembler.tick(110.0)]

    assert sorted(found, key=str) == [
        (RunChange.CLOSED, "agent", "success"),
        (RunChange.CLOSED, "billing", "completed"),
        (RunChange.REVISED, "support", "success"),
    ]
    assert spans_in(assembler.accounts) == {
        ("used", ""): 4, ("late", ""): 1, ("duplicate", ""): 1, ("other", "no_convention"): 1,
    }  # fmt: skip


def test_the_run_of_a_run_key_outlives_a_restart() -> None:
    """It is one run, over all of its traces."""
    assembler = Assembler(SETTINGS)
    for trace in (1, 2):
        assembler.add(tool(5, trace=trace)._replace(notes=Notes(run_key="aa")), 0.0)
    assert [event.run.span_count for event in assembler.tick(3.0)] == [2]
    assembler = restarted(assembler, 3.0)

    assert assembler.tick(10.0) == []
    assert [(event.change, event.run.span_count) for event in assembler.tick(200.0)] == [(RunChange.SETTLED, 2)]
