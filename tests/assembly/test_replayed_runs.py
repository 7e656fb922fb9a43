"""Runs that a durable engine reports again in another trace."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from msgspec.structs import replace

from otel_reliability.assembly import emission, replayed_runs
from otel_reliability.assembly.lifecycle import Assembler
from otel_reliability.config import AssemblySettings, Settings
from otel_reliability.engine import Engine
from otel_reliability.kafka.partition_agents import PartitionAgents
from otel_reliability.kafka.stage import KafkaMessage, write
from otel_reliability.model.flaws import REPLAYS, RUN_REPLAYED
from otel_reliability.model.record import RunRecord
from otel_reliability.model.run import CloseReason, Run, RunChange, RunEvent
from otel_reliability.model.span import (
    AgentSpan,
    Evaluation,
    Kind,
    ModelFacts,
    Session,
    Tokens,
    TraceId,
)
from otel_reliability.testing import FakeClock, agent, agent_span, at, span_id, tool, trace_id
from tests.assembly.rebuilding import Watched, rebuilt
from tests.kafka.streams import BEGIN, MemoryValues

TALK = Session(0, "talk")


def said(
    number: int, parent: int | None, response: str | None, tokens: int = 100, **place: Any
) -> AgentSpan:
    facts = ModelFacts("model-1", tokens=Tokens(tokens, 10), response_id=response)
    return agent_span(Kind.MODEL, facts, number, parent, **place)


def attempt(
    trace: int,
    start: float,
    steps: int = 3,
    *,
    session: Session | None = TALK,
    ids: tuple[str, str, str] = ("r1", "c1", "r2"),
    has_root: bool = True,
    **root: Any,
) -> list[AgentSpan]:
    """A run that asks a model, calls a tool and asks again, or the first of these steps."""
    made = [
        said(2, 1, ids[0], start=start + 1, trace=trace, session=session),
        tool(3, 1, "search", call_id=ids[1], start=start + 2, trace=trace, session=session),
        said(4, 1, ids[2], 200, start=start + 3, trace=trace, session=session),
    ][:steps]
    facts: dict[str, Any] = {
        "start": start,
        "end": start + 5,
        "trace": trace,
        "session": session,
        **root,
    }
    return [*made, agent(1, **facts)] if has_root else made


FIRST = attempt(1, 0, 1, failed=True)
SECOND = attempt(2, 100, 2, failed=True)
LAST = attempt(3, 200)


@pytest.mark.parametrize("order", list(permutations((FIRST, SECOND, LAST))))
def test_attempts_in_several_traces_are_one_run(order: tuple[list[AgentSpan], ...]) -> None:
    """It has the id of the first one, and the steps of the whole one."""
    (run,) = rebuilt(*[span for spans in order for span in spans])

    assert (run.trace_id, run.path, run.input_tokens) == (trace_id(1), ("search",), 300)
    assert (run.start_ns, run.end_ns, run.outcome.value) == (at(0), at(205), "completed")
    assert run.flaws == (RUN_REPLAYED,)


def test_an_attempt_whose_root_was_lost_with_its_process_is_none_of_its_service() -> None:
    (run,) = rebuilt(*attempt(1, 0, 2, has_root=False), *LAST)

    assert (run.key.agent, run.implicit, run.path, run.input_tokens) == (
        "agent",
        False,
        ("search",),
        300,
    )


def test_a_replay_of_a_finished_run_changes_nothing_but_the_finding() -> None:
    (whole,) = rebuilt(*LAST)
    (run,) = rebuilt(*LAST, *attempt(4, 9_000, 2))

    assert run == replace(whole, flaws=(RUN_REPLAYED,))


def test_a_step_that_failed_is_executed_again() -> None:
    failed = [
        said(2, 1, "r1", start=1, session=TALK),
        said(3, 1, None, start=2, failed=True, session=TALK),
        agent(1, end=3, failed=True, session=TALK),
    ]
    (run,) = rebuilt(*failed, *LAST)
    assert run.input_tokens == 300


OTHERS = {
    "another conversation": attempt(2, 100, session=Session(0, "other")),
    "no conversation": attempt(2, 100, session=None),
    "another response": attempt(2, 100, ids=("r9", "c1", "r2")),
    "another agent": attempt(2, 100, called="other"),
    "other content": [
        said(12, 11, "r1", 7, trace=2, start=101, session=TALK),
        agent(11, trace=2, start=100, end=105, session=TALK),
    ],
}


@pytest.mark.parametrize("other", OTHERS)
def test_equal_ids_of_unlike_runs_are_no_replays(other: str) -> None:
    runs = rebuilt(*FIRST, *OTHERS[other])

    assert [run.flaws for run in runs] == [(), ()]


def test_an_id_that_every_response_of_a_run_has_identifies_none() -> None:
    ids = ("chatcmpl-123", "call-1", "chatcmpl-123")
    runs = rebuilt(*attempt(1, 0, ids=ids), *attempt(2, 100, ids=ids))

    assert [(run.first_step, run.flaws) for run in runs] == [(None, ()), (None, ())]


UNKNOWN = {
    "no conversation": (attempt(1, 0, session=None), attempt(2, 100, session=None)),
    "each has a step that the other lacks": (
        attempt(1, 0),
        [
            *attempt(2, 100, 2)[:2],
            said(4, 1, "r7", 333, trace=2, start=103, session=TALK),
            agent(1, trace=2, start=100, end=105, session=TALK),
        ],
    ),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_where_it_cannot_be_known_both_say_so(case: str) -> None:
    one, other = UNKNOWN[case]
    for order in ((one, other), (other, one)):
        runs = rebuilt(*order[0], *order[1])
        assert [run.flaws for run in runs] == [(REPLAYS,), (REPLAYS,)]


def test_ids_of_calls_without_any_tokens_are_not_enough() -> None:
    """Some models repeat them."""
    spans = [
        *(tool(2, 1, call_id="c1", session=TALK), agent(1, session=TALK)),
        tool(2, 1, call_id="c1", trace=2, start=100, session=TALK),
        agent(1, trace=2, start=100, session=TALK),
    ]
    assert [run.flaws for run in rebuilt(*spans)] == [(REPLAYS,), (REPLAYS,)]


# --- As they arrive -------------------------------------------------------------------------------


def test_a_closed_attempt_is_revised_when_the_next_one_comes() -> None:
    watched = Watched()
    watched.add(*FIRST)
    changes = watched.wait(20)
    watched.add(*LAST)
    changes += watched.wait(200)

    assert [change.value for change, _ in changes] == ["closed", "revised", "final"]
    assert {run.run_id for _, run in changes} == {changes[0][1].run_id}
    assert changes[-1][1].input_tokens == 300


def test_a_final_attempt_is_revised_and_counted_once() -> None:
    watched = Watched()
    watched.add(*FIRST)
    changes = watched.wait(200)
    watched.add(*LAST)
    changes += watched.wait(200) + watched.end()

    assert [change.value for change, _ in changes] == ["closed", "final", "revised"]
    assert changes[-1][1].input_tokens == 300


def test_an_earlier_attempt_that_comes_later_takes_the_place_of_the_other() -> None:
    watched = Watched()
    watched.add(*LAST)
    changes = watched.wait(20)
    watched.add(*FIRST)
    changes += watched.wait(200)

    assert [(change.value, run.trace_id) for change, run in changes] == [
        ("closed", trace_id(3)),
        ("withdrawn", trace_id(3)),
        ("closed", trace_id(1)),
        ("final", trace_id(1)),
    ]


def test_an_evaluation_of_an_attempt_is_one_of_the_run() -> None:
    watched = Watched()
    watched.add(*FIRST, *LAST)
    watched.wait(200)
    watched.add(Evaluation("success", 1.0, None, at(300), trace_id(3), span_id(1)))
    ((change, run),) = watched.wait(5)

    assert (change, run.trace_id, run.outcome.value) == (RunChange.REVISED, trace_id(1), "success")


def test_windows_and_counters_have_one_run() -> None:
    clock = FakeClock()
    engine = Engine(Settings(), clock=clock, wall=None)
    for spans in (FIRST, SECOND, LAST):
        engine.receive(spans)
        for _ in range(90):
            clock.advance(1)
            engine.tick()
    engine.flush(CloseReason.SHUTDOWN)
    (key,) = engine.agents.keys()
    state = engine.agents.agent(key)
    assert state is not None

    assert [run.input_tokens for run in state.recent] == [300]
    assert len(engine.take_final()) == 1


def test_a_final_attempt_is_known_after_a_restart() -> None:
    watched = Watched()
    watched.add(*FIRST)
    (final,) = [run for change, run in watched.wait(200) if change is RunChange.FINAL]
    assembler = Assembler(Settings())
    assembler.restore_final([final])
    assembler.add_all(LAST, 0.0)
    events = assembler.close_all(CloseReason.SHUTDOWN, 0.0)

    assert [(event.change.value, event.run.run_id) for event in events] == [
        ("revised", final.run_id)
    ]


# --- Limits ---------------------------------------------------------------------------------------


def test_more_runs_than_are_compared_say_that_it_cannot_be_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replayed_runs, "MAX_ALIKE", 2)
    runs = rebuilt(*[span for trace in range(1, 5) for span in attempt(trace, 100 * trace)])

    assert [run.flaws for run in runs] == [(RUN_REPLAYED,), (REPLAYS,), (REPLAYS,)]


def test_an_id_that_more_runs_than_are_compared_have_identifies_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replayed_runs, "MAX_ALIKE", 2)
    spans = [span for trace in range(1, 5) for span in attempt(trace, 100 * trace, session=None)]

    assert [run.flaws for run in rebuilt(*spans)] == [(REPLAYS,), (REPLAYS,), (), ()]


def test_what_is_held_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replayed_runs, "MAX_HELD", 4)
    known = replayed_runs.ReplayedRuns(Settings().outcome, lambda _trace, _run: None)
    watched = Watched()
    for number in range(1, 40):
        ids = (f"r{number}", "c1", "r0")
        watched.add(*attempt(number, 0, ids=ids), *attempt(100 + number, 9, ids=ids))
    watched.wait(20)
    known.pass_on(watched.events)

    assert len(known._known) <= 39
    assert known._held <= 6


def test_a_final_run_that_is_no_longer_remembered() -> None:
    (final,) = rebuilt(*FIRST)
    (other,) = rebuilt(*LAST)

    def forgotten(_trace: TraceId, _run: str) -> Run | None:
        return None

    known = replayed_runs.ReplayedRuns(Settings().outcome, forgotten)
    known.restore_final(final)
    watched = Watched()
    watched.add(*LAST)
    watched.wait(20)
    (event,) = known.pass_on(watched.events)

    assert event.run == replace(other, flaws=(REPLAYS,), closed_by=event.run.closed_by)


# --- Kafka ----------------------------------------------------------------------------------------


def test_runs_from_kafka() -> None:
    """Traces are in other partitions; the agent's are not."""
    agents = PartitionAgents(Settings(hash_key="00" * 16), MemoryValues(), {})
    seen: list[tuple[str, int | None]] = []
    agents.engine.observers.append(
        lambda event, _: seen.append((event.change.value, event.run.input_tokens))
    )
    for number, spans in enumerate((FIRST, LAST), 1):
        (run,) = rebuilt(*spans)
        made = write(RunRecord(RunChange.CLOSED, run, number))
        agents.take(KafkaMessage("runs", made.key, made.value, 0), BEGIN)

    assert seen == [("closed", 100), ("revised", 300)]


# --- Files ----------------------------------------------------------------------------------------


def test_a_trace_of_a_file_that_is_complete_waits_for_later_ones() -> None:
    assembler = Assembler(Settings())
    events: list[RunEvent] = []
    for spans in (FIRST, SECOND, LAST):
        assembler.add_all(spans, 0.0)
        events += assembler.complete([spans[0].trace_id], CloseReason.END_OF_INPUT, 0.0)
    assert RunChange.FINAL not in [event.change for event in events]
    events = assembler.close_all(CloseReason.END_OF_INPUT, 0.0)

    assert [(event.change.value, event.run.input_tokens) for event in events] == [("final", 300)]


def test_no_more_runs_of_a_file_wait_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emission, "MAX_HELD", 2)
    assembler = Assembler(Settings())
    final: list[Run] = []
    for number in range(1, 6):
        spans = attempt(number, 0, ids=(f"r{number}", "c1", "r0"))
        assembler.add_all(spans, 0.0)
        events = assembler.complete([spans[0].trace_id], CloseReason.END_OF_INPUT, 0.0)
        final += [event.run for event in events if event.change is RunChange.FINAL]

    assert [run.trace_id for run in final] == [trace_id(1), trace_id(2), trace_id(3)]


def test_traces_that_are_alone_are_final_at_once_and_leave_no_memory() -> None:
    assembler = Assembler(Settings())
    events: list[RunEvent] = []
    for number in range(1, 5):
        spans = attempt(number, 0, ids=(f"r{number}", "c1", f"s{number}"))
        assembler.add_all(spans, 0.0)
        reason = CloseReason.END_OF_INPUT
        events += assembler.complete([spans[0].trace_id], reason, 0.0, alone=True)

    assert [event.change.value for event in events] == ["closed", "final"] * 4
    used = {limit.name: limit.used for limit in assembler.limits}
    assert [used[name] for name in ("first_steps", "response_turns", "conversations")] == [0] * 3
    assert assembler.close_all(CloseReason.END_OF_INPUT, 0.0) == []


def test_runs_of_two_agents_are_not_held_for_one_once_the_late_root_names_its_own() -> None:
    """Until then only the id that both begin with is known, as a model repeats it."""
    first = attempt(1, 0, session=None, called="planner")
    *steps, root = attempt(2, 100, session=None, called="support")
    watched = Watched(AssemblySettings(idle_timeout=10, reopen=100))
    watched.add(*first, *steps)
    before = {run.trace_id: run for _, run in watched.wait(35)}
    watched.add(root)
    last = before | {run.trace_id: run for _, run in watched.wait(200)}

    assert [run.flaws for run in before.values()] == [(REPLAYS,), (REPLAYS,)]
    assert [(run.key.agent, run.flaws) for run in last.values()] == [
        ("planner", ()),
        ("support", ()),
    ]


def exported(
    trace: int,
    start: float,
    tokens: int = 100,
    end: float = 9,
    steps: int = 2,
    session: Session | None = TALK,
) -> list[AgentSpan]:
    """A run whose steps have no ids."""
    place: dict[str, Any] = {"trace": trace, "session": session}
    made = [
        said(2, 1, None, tokens, start=start + 1, **place),
        tool(3, 1, "search", start=start + 2, **place),
    ]
    return [*made[:steps], agent(1, start=start, end=start + end, **place)]


@pytest.mark.parametrize("order", [1, -1])
def test_a_run_that_was_exported_twice_is_one(order: int) -> None:
    """The first export, while it was in progress, has a part of it, and other ids of spans."""
    twice = [exported(1, 0.352, end=8, steps=1), exported(2, 0.352)]
    (run,) = rebuilt(*[span for spans in twice[::order] for span in spans])
    assert (run.path, run.input_tokens, run.duration_s) == (("search",), 100, pytest.approx(9))
    assert RUN_REPLAYED in run.flaws


@pytest.mark.parametrize(
    "other",
    [
        exported(2, 0.353),  # a moment later
        exported(2, 0.352, tokens=101),
    ],
)
def test_runs_without_ids_are_one_where_all_of_their_times_and_tokens_agree(
    other: list[AgentSpan],
) -> None:
    assert len(rebuilt(*exported(1, 0.352), *other)) == 2


def test_times_of_whole_seconds_or_without_a_conversation_tell_nothing() -> None:
    assert len(rebuilt(*exported(1, 7), *exported(2, 7))) == 2
    alone = [exported(trace, 0.352, session=None) for trace in (1, 2)]
    assert [run.flaws for run in rebuilt(*alone[0], *alone[1])] == [(), ()]
