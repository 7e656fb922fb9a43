"""The one thread that changes state: what it commits together, what a fault costs, and when it
counts as hanging.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from otel_reliability.service import service as services
from otel_reliability.service.answers import Problem, Refused
from otel_reliability.service.decoded import Decoded
from otel_reliability.service.writer import GROUP, STUCK_CHECKS, Ack, WriterProgress
from otel_reliability.state.store import OtherLayout
from otel_reliability.telemetry.guard import Guard
from otel_reliability.testing import agent, tool
from tests.real.waiting import until
from tests.service.running import Controlled, Running, body_of, run_of, serving

RUN = Decoded((agent(1), tool(2, 1)))


@pytest.fixture
def disk() -> Controlled:
    """The disk of the service under test: nothing is committed until `may_commit` is set."""
    return Controlled()


@pytest.fixture
def running(disk: Controlled) -> Iterator[Running]:
    with serving(persistence_of=disk, commit_timeout=0.1) as found:
        yield found
        disk.may_commit.set()


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Faults are counted, as in production."""
    monkeypatch.setattr(Guard, "loud", False)


def refusal_of(answer: Future[Ack]) -> Refused:
    error = answer.exception(60)
    assert isinstance(error, Refused)
    return error


def test_requests_that_wait_are_committed_together_before_they_are_applied(
    running: Running, disk: Controlled
) -> None:
    answers = [running.service.writer.commit(RUN) for _ in range(GROUP + 20)]
    until(lambda: running.service.writer._queue.qsize() < len(answers), "the writer to begin")
    assert running.service.engine.open_runs == 0
    assert not any(answer.done() for answer in answers)
    disk.may_commit.set()

    assert {answer.result(60) for answer in answers} == {Ack(0, "")}
    assert running.service.engine.open_runs == 1
    assert sum(disk.groups) == GROUP + 20
    assert max(disk.groups) <= GROUP
    assert len(disk.groups) <= 4


def test_a_fault_costs_one_request(running: Running, disk: Controlled, quiet: None) -> None:
    disk.may_commit.set()
    broken: Any = (object(),)
    before = Guard.faults["applying a request"]

    assert refusal_of(running.service.writer.commit(Decoded(broken))).problem is Problem.FAULT
    assert running.service.writer.commit(RUN).result(60)
    assert Guard.faults["applying a request"] == before + 1


def test_a_save_that_finds_no_room_is_no_fault(
    running: Running, disk: Controlled, quiet: None
) -> None:
    before = Guard.faults.copy()
    disk.full_disk = frozenset({"after_deadlines"})
    running.clock.advance(1.0)
    until(lambda: "state" in running.service.readiness.reasons, "the failure to show")
    disk.full_disk = frozenset()
    running.clock.advance(1.0)
    until(lambda: not running.service.readiness.reasons, "the service to be ready again")

    assert Guard.faults == before


def test_a_request_after_the_end_was_asked_for_is_refused(
    running: Running, disk: Controlled
) -> None:
    writer = running.service.writer
    answer = writer.commit(RUN)
    stopping = threading.Thread(target=writer.stop, args=(60,))
    stopping.start()
    until(lambda: writer.commit(Decoded()).done(), "the end to be asked for")
    late = writer.commit(Decoded())
    disk.may_commit.set()
    stopping.join(60)

    assert answer.result(60) == Ack(0, "")
    assert refusal_of(late).reason == "stopping"
    assert running.service.engine.closed == {"shutdown": 1}


# --- Progress -------------------------------------------------------------------------------------


@pytest.fixture
def progress(running: Running) -> WriterProgress:
    """What watches a writer that commits a request, on a disk that does not answer."""
    found = WriterProgress(running.service.writer, running.service.state)
    running.service.writer.commit(RUN)
    until(lambda: not running.service.writer._queue.qsize(), "the writer to take it")
    running.clock.advance(3_600)
    return found


def is_stuck(progress: WriterProgress, checks: int) -> bool:
    for _ in range(checks):
        progress.check()
    return progress.stuck


def test_a_writer_that_hangs_is_noticed(
    running: Running, disk: Controlled, progress: WriterProgress
) -> None:
    assert not is_stuck(progress, STUCK_CHECKS - 1)
    assert is_stuck(progress, 2)
    disk.may_commit.set()
    running.writer_came_round()
    assert not is_stuck(progress, 1)


def test_a_writer_with_much_to_do_does_not_hang(running: Running, progress: WriterProgress) -> None:
    for _ in range(10):
        assert not is_stuck(progress, STUCK_CHECKS - 1)
        running.service.state.apply(Decoded())


def test_a_process_that_did_not_run_does_not_hang(progress: WriterProgress) -> None:
    """Stopped for an hour, or starved: the clock went on, and nothing could check meanwhile."""
    assert not is_stuck(progress, 2)


def test_a_writer_with_nothing_to_do_does_not_hang(running: Running) -> None:
    running.writer_came_round()
    assert not is_stuck(
        WriterProgress(running.service.writer, running.service.state), 10 * STUCK_CHECKS
    )


def test_the_probe_shows_a_writer_that_hangs(
    disk: Controlled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "CHECK_INTERVAL_S", 0.002)
    with serving(persistence_of=disk, commit_timeout=0.1) as running:
        first = running.get("ui", "/healthz").status
        refused = running.post("traces", body_of(run_of())).status
        running.clock.advance(100)
        until(lambda: running.get("ui", "/healthz").status == 503, "the probe to show it")
        disk.may_commit.set()
        until(lambda: running.get("ui", "/healthz").status == 200, "the writer to go on")

    assert (first, refused) == (200, 503)


def test_a_state_that_cannot_be_loaded_is_a_refusal_that_says_why() -> None:
    class Other(Controlled):
        def restore(self) -> None:
            raise OtherLayout("it has layout 3")

    with serving(persistence_of=Other()) as running:
        refusal = refusal_of(running.service.writer.commit(RUN))
        assert "it has layout 3" in str(refusal)
        assert running.service.writer.alive
