from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from otel_reliability.assembly import memory
from otel_reliability.assembly.lifecycle import MAX_HURRIED_SPANS
from otel_reliability.assembly.limits import SPAN_BYTES
from otel_reliability.assembly.rebuild import Rebuild, Rebuilt
from otel_reliability.config import AssemblySettings, Settings
from otel_reliability.model.run import CloseReason, Run, RunChange
from otel_reliability.model.span import AgentSpan, Notes, Session
from otel_reliability.testing import agent, model, other, span_id, tool, trace_id
from tests.assembly.rebuilding import Watched, counted_lines, used

CLOSED = RunChange.CLOSED
REVISED = RunChange.REVISED
WITHDRAWN = RunChange.WITHDRAWN
FINAL = RunChange.FINAL


def watched(remember: float = 30.0, **limits: int) -> Watched:
    """Return an assembler with short times."""
    times = AssemblySettings(linger=2.0, idle_timeout=12.0, reopen=20.0, remember=remember)
    return Watched(times, **limits)


def changes(found: list[tuple[RunChange, Run]]) -> list[RunChange]:
    return [change for change, _ in found]


def keyed(number: int, trace: int) -> AgentSpan:
    return replace(tool(number, trace=trace), notes=Notes(run_key="aa"))


def is_remembered(watched: Watched, trace: int) -> bool:
    assembler = watched.assembler
    return (
        assembler.holds(trace_id(trace))
        or assembler.final_trace(trace_id(trace), watched.clock()) is not None
    )


def test_a_late_span_revises_its_run_and_postpones_its_finalization() -> None:
    """Each closing of the trace gives it the whole `reopen` again."""
    assembler = watched()
    assembler.add(agent(1), tool(2, 1))
    assert changes(assembler.wait(2)) == [CLOSED]
    assembler.wait(15)
    assembler.add(tool(3, 1))

    assert changes(assembler.wait(2)) == [REVISED]
    assert changes(assembler.wait(19)) == []
    assert changes(assembler.wait(1)) == [FINAL]


def test_a_parent_above_withdraws_the_run() -> None:
    assembler = watched()
    assembler.add(agent(2, called="same"), tool(3, 2))
    assembler.wait(3)
    assembler.add(agent(1, called="same", end=9), agent(2, 1, "same", end=2))

    assert changes(assembler.wait(3)) == [WITHDRAWN, CLOSED]


def test_a_trace_is_forgotten_in_time() -> None:
    assembler = watched()
    assembler.add(agent(1), tool(2, 1), other(3, 1))
    assembler.wait(60)

    assert not is_remembered(assembler, 1)
    assert not any(used(assembler.assembler).values())


def test_traces_are_remembered_in_tables_and_forgotten_oldest_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "TABLE", 2)
    assembler = watched()
    for trace in range(5):
        assembler.add(agent(1, trace=trace))
        assembler.wait(5)
    assembler.wait(22)
    for trace in (1, 4, 3):
        assembler.add(agent(1, trace=trace))

    assert assembler.accounts == {("used", ""): 5, ("duplicate", ""): 3}
    remembered = [trace for trace in range(5) if is_remembered(assembler, trace)]
    assembler.wait(16)
    assert remembered == list(range(5))
    assert [trace for trace in range(5) if is_remembered(assembler, trace)] == [1, 3, 4]


# --- Parts of a trace -----------------------------------------------------------------------------


def test_only_runs_with_a_missing_local_parent_wait_for_it() -> None:
    assembler = watched()
    assembler.add(agent(1, called="one"), tool(2, 1), agent(4, 3, "two"), tool(5, 4))

    assert [(run.key.agent, run.closed_by) for _, run in assembler.wait(3)] == [
        ("one", CloseReason.ROOT)
    ]
    assert [(run.key.agent, run.closed_by) for _, run in assembler.wait(10)] == [
        ("two", CloseReason.IDLE)
    ]


def test_a_parent_that_arrives_in_time_ends_the_waiting() -> None:
    assembler = watched()
    assembler.add(agent(4, 3, "two"))
    assembler.wait(5)
    assembler.add(other(3))

    assert [run.closed_by for _, run in assembler.wait(2)] == [CloseReason.ROOT]


def test_a_run_with_an_open_span_waits_and_its_neighbours_do_not() -> None:
    assembler = watched()
    assembler.assembler.opened([(trace_id(1), span_id(9), span_id(1))], 0.0)
    assembler.add(agent(1, called="one"), agent(2, called="two"))

    assert [run.key.agent for _, run in assembler.wait(100)] == ["two", "two"]
    assembler.assembler.ended([(trace_id(1), span_id(9))])
    assert [run.key.agent for _, run in assembler.wait(3)] == ["one"]


def test_a_trace_that_waits_for_a_parent_is_not_assembled_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its cost does not grow with the time that it waits: here for the parent of work that is
    linked to a run.
    """
    assembled = list[int]()
    real = Rebuild.__call__

    def counted(self: Rebuild, spans: Sequence[AgentSpan], *more: Any, **options: Any) -> Rebuilt:
        assembled.append(len(spans))
        return real(self, spans, *more, **options)

    monkeypatch.setattr(Rebuild, "__call__", counted)
    assembler = Watched(AssemblySettings(linger=1.0, idle_timeout=600.0, reopen=1.0))
    assembler.add(agent(1, end=9), tool(3, 2, start=2))

    assert changes(assembler.wait(598)) == [CLOSED]
    assert len(assembled) == 1
    assert changes(assembler.wait(10)) == [FINAL]


@pytest.mark.parametrize("pause", [1, 5])
def test_the_runs_of_an_endless_trace_close_and_leave_it(pause: int) -> None:
    assembler = watched()
    final = 0
    for turn in range(1, 400 // pause):
        assembler.add(agent(2 * turn, start=turn), tool(2 * turn + 1, 2 * turn, start=turn))
        final += changes(assembler.wait(pause)).count(FINAL)
        assert used(assembler.assembler)["open_bytes"] <= 900 * 2 * 330
    assert final > 50
    final += changes(assembler.wait(60)).count(FINAL)

    assert final == 400 // pause - 1
    assert assembler.accounts == {("used", ""): 2 * final}


def test_spans_of_runs_that_left_an_endless_trace_are_late() -> None:
    assembler = watched()
    for turn in range(1, 120):
        assembler.add(agent(2 * turn, start=turn), tool(2 * turn + 1, 2 * turn, start=turn))
        assembler.wait(1)
    assembler.add(tool(900, 2), model(901, 900), tool(3, 2))
    assembler.wait(60)

    assert assembler.accounts == {("used", ""): 238, ("late", ""): 2, ("duplicate", ""): 1}


# --- Late spans -----------------------------------------------------------------------------------


def test_a_late_root_opens_no_run() -> None:
    """The missing parent of a final implicit run is remembered; so is that of work that was linked
    to a run.
    """
    for spans in ([tool(3, 2)], [agent(1, end=9), tool(3, 2, start=2)]):
        assembler = watched()
        assembler.add(*spans)
        assembler.wait(40)
        assembler.add(agent(2, called="late"), tool(4, 2), tool(6, 5), other(5, 2))
        assembler.wait(40)

        assert assembler.accounts["late", ""] == 4


def test_of_final_runs_the_name_of_the_agent_stays() -> None:
    assembler = watched(remember=300.0)
    assembler.add(agent(1, called="support"), tool(2, 1))
    assembler.wait(40)
    assembler.add(tool(5, 4), tool(6))
    found = assembler.wait(40)

    assert [(run.key.agent, run.implicit) for change, run in found if change is CLOSED] == [
        ("support", True)
    ]
    assert assembler.accounts["other", "beside_agent"] == 1


def test_an_agent_below_a_request_of_long_ago_is_no_late_span() -> None:
    assembler = watched()
    assembler.add(other(1), agent(2, 1))
    assembler.wait(25)
    assembler.add(agent(3, 1))

    assert CLOSED in changes(assembler.wait(5))


# --- Run keys -------------------------------------------------------------------------------------


def test_a_run_of_a_run_key_grows_with_its_traces() -> None:
    assembler = watched()
    assembler.add(keyed(5, trace=2))
    assert [run.span_count for _, run in assembler.wait(3)] == [1]
    assembler.add(keyed(6, trace=3))
    found = assembler.wait(30)

    assert [(change, run.span_count) for change, run in found] == [(REVISED, 2), (FINAL, 2)]
    assert assembler.accounts == {("used", ""): 2}


def test_an_agent_above_takes_lone_work_back() -> None:
    assembler = watched()
    assembler.add(keyed(5, trace=2))
    assembler.wait(3)
    assembler.add(
        agent(1, trace=2),
        replace(keyed(5, trace=2), parent_id=span_id(1), end_ns=keyed(5, 2).end_ns + 1),
    )
    found = assembler.wait(30)

    assert [(change, run.implicit) for change, run in found] == [
        (WITHDRAWN, True),
        (CLOSED, False),
        (FINAL, False),
    ]


def test_work_of_a_run_key_closes_once_when_all_that_is_due_has_joined() -> None:
    assembler = watched()
    assembler.add(*[keyed(5, trace=trace) for trace in range(1, 50)])

    assert [(change, run.span_count) for change, run in assembler.wait(3)] == [(CLOSED, 49)]


def test_work_of_a_final_run_key_is_late() -> None:
    assembler = watched()
    assembler.add(keyed(5, trace=2))
    assembler.wait(40)
    assembler.add(keyed(5, trace=3))
    assembler.wait(80)

    assert assembler.accounts == {("used", ""): 1, ("late", ""): 1}
    assert not any(is_remembered(assembler, trace) for trace in (2, 3))


# --- Limits ---------------------------------------------------------------------------------------


def test_a_run_is_closed_and_final_at_the_span_limit() -> None:
    assembler = watched(span_limit=10)
    assembler.add(agent(1), *[tool(n, 1) for n in range(2, 30)], agent(90, called="another"))
    assembler.add(tool(31, 1), tool(91, 90))
    found = assembler.wait(40)

    assert [
        (change, run.span_count, run.closed_by) for change, run in found if run.key.agent == "agent"
    ] == [
        (CLOSED, 10, CloseReason.SPAN_LIMIT),
        (FINAL, 10, CloseReason.SPAN_LIMIT),
    ]
    assert [run.span_count for _, run in found if run.key.agent == "another"] == [2, 2]
    assert assembler.accounts == {("used", ""): 12, ("refused", "span_limit"): 20}


def test_a_caller_that_may_not_be_held_up_leaves_the_span_limit_to_others() -> None:
    """What becomes of the spans is the same."""
    spans = [agent(1), *[tool(n, 1) for n in range(2, 40)]]
    left, held = watched(span_limit=10), watched(span_limit=10)
    left.assembler.add_all(spans, left.clock(), hurried=True)
    held.add(*spans)

    assert [event.run for event in left.assembler.tick(left.clock(), 16)] == []
    found, expected = left.wait(40), held.wait(40)
    assert found == expected
    assert [run.closed_by for _, run in found] == [CloseReason.SPAN_LIMIT] * 2
    assert left.accounts == held.accounts == {("used", ""): 10, ("refused", "span_limit"): 29}


@pytest.mark.parametrize("ends", ["close_all", "complete"])
def test_an_end_divides_what_waits_at_the_span_limit(ends: str) -> None:
    def ended(*, hurried: bool) -> list[tuple[CloseReason, int]]:
        assembler = watched(span_limit=10).assembler
        spans = [*[tool(n, 1) for n in range(2, 40)], agent(1)]
        assembler.add_all(spans, 0.0, hurried=hurried)
        reason = CloseReason.END_OF_INPUT
        events = (
            assembler.close_all(reason, 1.0)
            if ends == "close_all"
            else assembler.complete([trace_id(1)], reason, 1.0)
        )
        return [(event.run.closed_by, len(event.run.tool_calls or ())) for event in events]

    assert ended(hurried=True) == ended(hurried=False)
    assert (CloseReason.SPAN_LIMIT, 10) in ended(hurried=True)


def test_a_full_trace_that_joins_a_larger_one_waits_with_it() -> None:
    left = watched(span_limit=10)
    now = left.clock()
    left.assembler.add_all([agent(1), *[tool(n, 1) for n in range(2, 13)]], now, hurried=True)
    hop = agent(1, trace=2, link=(trace_id(1), span_id(2)))
    steps = [tool(n, 1, trace=2) for n in range(2, 30)]
    left.assembler.add_all([*steps, hop], now, hurried=True)
    found = left.wait(40)

    assert {run.closed_by for _, run in found} == {CloseReason.SPAN_LIMIT}
    assert sum(left.accounts.values()) == 12 + 29


def test_a_large_trace_that_nobody_closes_takes_no_more_than_its_memory() -> None:
    """A hook neither closes it nor holds more of it. What is open of it waits for no refused
    span.
    """
    most = 2 * MAX_HURRIED_SPANS
    assembler = watched(open_bytes=most * SPAN_BYTES)
    left = assembler.assembler
    now = assembler.clock()
    left.opened([(trace_id(1), span_id(n), span_id(1)) for n in range(2, 2 * most)], now)
    left.add_all([agent(1)], now, hurried=True)
    for n in range(2, 2 * most):
        left.add_all([tool(n, 1)], now, hurried=True)
        assert left.tick(now, 16) == []
    left.add_all([agent(1, trace=2)], now, hurried=True)

    assert used(left)["open_bytes"] == (most + 2) * SPAN_BYTES
    found = assembler.wait(3)
    assert [run.span_count for change, run in found if change is CLOSED] == [most + 1, 1]
    assert left.accounts.spans["refused", "open_bytes"] == most - 2
    assert sum(one.used or 0 for one in left.limits if one.name == "open_bytes") == 0


def test_where_it_may_not_be_held_up_the_heaviest_of_the_small_traces_are_closed() -> None:
    assembler = watched(open_runs=2)
    left = assembler.assembler
    now = assembler.clock()
    large = [tool(n, 1, trace=9) for n in range(2, 3 + MAX_HURRIED_SPANS)]
    left.add_all([*large, tool(2, 1, trace=1), tool(2, 1, trace=2), tool(3, 1, trace=2)], now)
    found = left.tick(now, 16)

    assert [event.run.trace_id for event in found] == [trace_id(2)]


def test_what_a_run_key_joins_to_a_large_trace_waits_with_it() -> None:
    assembler = watched()
    left = assembler.assembler
    now = assembler.clock()
    left.add_all([keyed(n, trace=1) for n in range(2, 3 + MAX_HURRIED_SPANS)], now)
    assembler.wait(3)
    assembler.clock.advance(1)
    left.add_all([keyed(5, trace=2)], assembler.clock(), hurried=True)
    assembler.clock.advance(3)
    while left.is_behind(assembler.clock()):
        assert left.tick(assembler.clock(), 16) == []

    found = assembler.wait(1)
    assert [(change, run.span_count) for change, run in found] == [(REVISED, MAX_HURRIED_SPANS + 2)]


def test_above_the_limit_of_open_runs_the_heaviest_are_closed() -> None:
    assembler = watched(open_runs=2)
    for trace, steps in ((1, 1), (2, 3), (3, 1)):
        assembler.add(*[tool(n, 1, trace=trace) for n in range(2, 2 + steps)])
    found = assembler.wait(1)

    assert [(run.trace_id, run.closed_by) for _, run in found] == [
        (trace_id(2), CloseReason.OPEN_RUNS)
    ]


def test_above_the_limit_of_bytes_the_heaviest_are_closed() -> None:
    assembler = watched(open_bytes=2_000, reopenable_bytes=1_000)
    assembler.add(tool(2, 1, trace=1), tool(2, 1, trace=2), tool(3, 1, trace=2))
    found = assembler.wait(1)

    assert [(change, run.trace_id) for change, run in found] == [
        (CLOSED, trace_id(2)),
        (FINAL, trace_id(2)),
    ]
    assert assembler.assembler.accounts.losses["limit", "reopenable_bytes"] == 1


@pytest.mark.parametrize("below", [agent, tool])
def test_spans_below_a_long_chain_cost_no_more_than_others(below: Callable[..., AgentSpan]) -> None:
    """Each asks what lies above it: two million steps if none remembers what another has found."""
    chain = [replace(other(n, n - 1), session=Session(0, "s")) for n in range(2, 2_000)]
    executed: list[int] = []
    for end in (100, 1_999):
        spans = [*chain, *[below(n, end) for n in range(2_000, 3_000)]]
        with counted_lines() as lines:
            assembled = Rebuild(Settings())(spans)
        executed.append(lines.total())
        assert {run.session_id for run in assembled.runs} == {"s"}

    assert executed[1] < 1.2 * executed[0]
