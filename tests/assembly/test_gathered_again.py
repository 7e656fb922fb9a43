"""A span comes in another version, and its trace is gathered again: what was told before is told on, or taken back, once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from otel_reliability.config import AssemblySettings
from otel_reliability.model.event import RunChange
from otel_reliability.model.run import Run
from otel_reliability.model.span import AgentSpan
from otel_reliability.testing import agent, span_id, tool, trace_id
from tests.assembly.rebuilding import Watched, noted

SETTINGS = AssemblySettings(linger=2.0, idle_timeout=12.0, reopen=20.0, remember=30.0)
SMALL = replace(SETTINGS, span_limit=3)


def far(number: int, trace: int, end: float = 0.5, below: int = 9) -> AgentSpan:
    """A tool call that hangs on a span of the first trace."""
    return tool(number, trace=trace, end=end)._replace(link=(trace_id(1), span_id(below)))


def told(changes: Sequence[tuple[RunChange, Run]]) -> list[RunChange]:
    """What became of one run after another."""
    return [change for change, _ in changes]


def test_what_two_traces_told_together_goes_on_where_one_is_left() -> None:
    """The part of the other hangs on a run that takes no more spans."""
    watched = Watched(SMALL)
    watched.add(far(5, trace=2), far(5, trace=3))
    ((change, run),) = watched.wait(15)
    assert (change, run.trace_id, run.span_count) == (RunChange.CLOSED, trace_id(2), 2)
    watched.add(agent(1), tool(2, 1), tool(3, 1), far(5, trace=3, end=0.9, below=1))
    changes = [(change, one.span_count) for change, one in watched.wait(80) if one.run_id == run.run_id]

    assert changes == [(RunChange.REVISED, 1), (RunChange.SETTLED, 1)]
    assert watched.accounts == {("used", ""): 4, ("duplicate", ""): 1, ("refused", "span_limit"): 1}
    assert watched.assembler.gathered == 0


def test_a_run_of_which_nothing_is_left_is_withdrawn() -> None:
    """And its trace is forgotten in time, as any other."""
    watched = Watched(SMALL)
    watched.add(far(5, trace=3))
    assert told(watched.wait(15)) == [RunChange.CLOSED]
    watched.add(agent(1), tool(2, 1), tool(3, 1), far(5, trace=3, end=0.9, below=1))

    assert told(watched.wait(3)) == [RunChange.CLOSED, RunChange.WITHDRAWN]
    assert watched.accounts == {("used", ""): 3, ("duplicate", ""): 1, ("refused", "span_limit"): 1}
    assert told(watched.wait(80)) == [RunChange.SETTLED]
    assert (watched.assembler.gathered, watched.assembler.open_bytes) == (0, 0)


def test_what_joins_a_run_told_before_is_counted_once() -> None:
    """It was a run of its own before."""
    watched = Watched(SETTINGS)
    watched.add(agent(1), tool(2, 1), tool(5, trace=2))
    assert told(watched.wait(15)) == [RunChange.CLOSED, RunChange.CLOSED]
    watched.add(far(5, trace=2, end=2.0, below=1))

    assert set(told(watched.wait(3))) == {RunChange.REVISED, RunChange.WITHDRAWN}
    assert watched.accounts == {("used", ""): 3, ("duplicate", ""): 1}


STIRRING = AssemblySettings(linger=2.0, idle_timeout=60.0, reopen=9.0, remember=9.0, open_runs=1)


def stirring() -> Watched:
    """An assembler where closing one has another gathered: what it hung on was forgotten, and has come again since."""
    watched = Watched(STIRRING)
    watched.add(far(5, trace=2), tool(6, 5, trace=2))
    watched.wait(20)
    watched.add(agent(1), agent(1, trace=3))
    return watched


def test_above_a_ceiling_one_may_stir_another() -> None:
    """That one is not closed as what it was."""
    watched = stirring()
    watched.wait(1)
    watched.end()

    assert watched.accounts == {("used", ""): 4}


def test_at_the_end_one_may_stir_another() -> None:
    """That one is closed too."""
    watched = stirring()
    settled = [run.trace_id for change, run in watched.end() if change is RunChange.SETTLED]

    assert sorted(settled) == [trace_id(1), trace_id(2), trace_id(3)]
    assert watched.accounts == {("used", ""): 4}
    assert watched.assembler.open_runs == 0


def test_a_trace_of_which_all_is_late_is_forgotten() -> None:
    """The run that its work belongs to, by the user's own key, has settled."""
    watched = Watched(SETTINGS)
    watched.add(noted(tool(5, trace=2), run_key="aa"))
    watched.wait(40)
    watched.add(noted(tool(5, trace=3), run_key="aa"))
    watched.wait(80)

    assert watched.accounts == {("used", ""): 1, ("late", ""): 1}
    assert watched.assembler.gathered == 0
