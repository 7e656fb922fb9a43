"""Runs that go on with one that waited for a person."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from msgspec.structs import replace

from otel_reliability.assembly import resumptions
from otel_reliability.assembly.lifecycle import Assembler
from otel_reliability.config import Settings
from otel_reliability.kafka.partition_agents import PartitionAgents
from otel_reliability.kafka.stage import KafkaMessage, write
from otel_reliability.model.flaws import FIRST_CALL_MISSING
from otel_reliability.model.record import RunRecord
from otel_reliability.model.run import CloseReason, Outcome, RunChange
from otel_reliability.model.span import (
    PAUSED,
    AgentSpan,
    InvocationFacts,
    ModelFacts,
    Notes,
    Session,
)
from otel_reliability.report.run_fields import facts_of, record_of
from otel_reliability.testing import at, model, tool
from tests.assembly.rebuilding import Watched, invocation, rebuilt
from tests.kafka.streams import BEGIN, MemoryValues

TALK = Session(0, "talk")


def run(
    trace: int, *, paused: bool = False, task: str | None = None, session: Session | None = TALK
) -> list[AgentSpan]:
    facts = InvocationFacts("desk", stopped=PAUSED if paused else None)
    place: dict[str, Any] = {"trace": trace, "session": session}
    start = 100.0 * trace
    notes = None if task is None else Notes(task_id=task)
    root = invocation(facts, 1, start=start, end=start + 9, notes=notes, **place)
    return [root, model(2, 1, start=start + 1, **place)]


PARTS = (run(1, paused=True, task="refund"), run(2, paused=True), run(3), run(4))


@pytest.mark.parametrize("order", list(permutations(PARTS)))
def test_the_next_run_of_a_conversation_goes_on_with_one_that_waited(
    order: tuple[list[AgentSpan], ...],
) -> None:
    first, second, third, other = rebuilt(*[span for spans in order for span in spans])

    assert [one.outcome for one in (first, second)] == [Outcome.PAUSED, Outcome.PAUSED]
    assert [one.resumes for one in (first, second, third, other)] == [
        None,
        first.run_id,
        second.run_id,
        None,
    ]
    assert [one.task_id for one in (first, second, third, other)] == [
        "refund",
        "refund",
        "refund",
        None,
    ]
    assert third.duration_s == pytest.approx(9)


def test_a_run_that_resumes_another_lacks_no_model_call() -> None:
    """Its first model call answers the call that was approved, which another run asked for."""
    approved, root = run(2)[1], run(2)[0]
    approved = replace(approved, facts=ModelFacts(request=b""), start_ns=at(205), end_ns=at(206))
    called = tool(3, 1, "refund", trace=2, session=TALK, start=201, end=202)
    second = [root, called, approved]
    for first, flaws in ((run(1), (FIRST_CALL_MISSING,)), (run(1, paused=True), ())):
        for order in ([*first, *second], [*second, *first]):
            assert rebuilt(*order)[1].flaws == flaws


def test_it_is_shown() -> None:
    first, second = rebuilt(*run(1, paused=True), *run(2))

    assert record_of(second)["resumes"] == first.run_id
    assert ("Resumes", first.run_id) in facts_of(second)
    assert "resumes" not in record_of(first)


@pytest.mark.parametrize(
    "second",
    [run(2, session=Session(0, "other")), run(2, session=None)],
)
def test_a_run_of_no_or_another_conversation_resumes_nothing(second: list[AgentSpan]) -> None:
    assert rebuilt(*run(1, paused=True), *second)[1].resumes is None


def test_a_task_of_its_own_stays() -> None:
    found = rebuilt(*run(1, paused=True, task="refund"), *run(2, task="other"))
    assert [one.task_id for one in found] == ["refund", "other"]


def test_a_run_that_waits_no_longer_is_resumed_by_none() -> None:
    """A late span may show that it went on after all."""
    watched = Watched()
    watched.add(*run(1, paused=True), *run(2))
    first = watched.wait(5)
    watched.add(replace(run(1)[0], end_ns=run(1)[0].end_ns + 1))
    changes = watched.wait(5)

    assert [one.resumes is None for _, one in first] == [True, False]
    assert [(change.value, one.resumes) for change, one in changes] == [
        ("revised", None),
        ("revised", None),
    ]


@pytest.mark.parametrize("gone", [1, 2])
def test_a_run_that_leaves_the_conversation_resumes_nothing_there(gone: int) -> None:
    """A late span may name another conversation."""
    watched = Watched()
    watched.add(*run(1, paused=True, task="refund"), *run(2))
    watched.wait(5)
    shown = {event.run.run_id: event.run for event in watched.events}
    root = run(gone, paused=gone == 1)[0]
    watched.add(replace(root, session=Session(0, "another"), end_ns=root.end_ns + 1))
    watched.wait(5)
    for event in watched.events:
        assert shown[event.run.run_id] == event.previous
        shown[event.run.run_id] = event.run

    assert {one.session_id for one in shown.values()} == {"talk", "another"}
    assert [one.resumes for one in shown.values()] == [None, None]


def test_a_final_run_that_waited_is_known_later_and_after_a_restart() -> None:
    watched = Watched()
    watched.add(*run(1, paused=True))
    (final,) = [one for change, one in watched.wait(200) if change is RunChange.FINAL]
    watched.add(*run(2))
    (_, live), *_ = watched.wait(5)
    assembler = Assembler(Settings())
    assembler.restore_final([final])
    assembler.add_all(run(2), 0.0)
    restored = assembler.close_all(CloseReason.SHUTDOWN, 0.0)

    assert live.resumes == restored[0].run.resumes == final.run_id


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resumptions, "MAX_RUNS", 3)
    known = resumptions.Resumptions(lambda _trace, _run: None)
    watched = Watched()
    for number in range(1, 20):
        watched.add(*run(number, paused=True))
    watched.wait(20)
    known.pass_on(watched.events)

    assert [len(one) for one in known._runs.values()] == [3]


def test_runs_from_kafka() -> None:
    agents = PartitionAgents(Settings(hash_key="00" * 16), MemoryValues(), {})
    seen: list[str | None] = []
    agents.engine.observers.append(lambda event, _: seen.append(event.run.resumes))
    first, _ = found = rebuilt(*run(1, paused=True), *run(2))
    for number, one in enumerate(found, 1):
        record = RunRecord(RunChange.CLOSED, replace(one, resumes=None), number)
        made = write(record)
        agents.take(KafkaMessage("runs", made.key, made.value, 0), BEGIN)

    assert seen == [None, first.run_id]
