from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import pytest

from otel_reliability.engine import Engine
from otel_reliability.service.answers import Problem, Refused
from otel_reliability.service.decoded import Decoded
from otel_reliability.service.health import Readiness
from otel_reliability.service.persistence import Volatile
from otel_reliability.service.series_recording import SeriesRecording
from otel_reliability.service.state import State
from otel_reliability.service.store import Unavailable
from otel_reliability.service.writer import GROUP, Ack, Writer
from otel_reliability.telemetry.exposition import Registry
from otel_reliability.telemetry.guard import Guard
from otel_reliability.testing import FakeClock, agent, tool
from tests.real.waiting import until

RUN = Decoded((agent(1), tool(2, 1)))


class Noting(Volatile):
    """Notes what it is asked to keep, and fails, or waits, when it is told to."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.groups: list[int] = []
        self.fails = False
        self.restored = threading.Event()
        self.may_commit = threading.Event()
        self.may_commit.set()
        self.may_restore = threading.Event()
        self.may_restore.set()
        self.closed = False

    def restore(self) -> None:
        self.may_restore.wait(60)

    def commit(self, group: Sequence[Decoded]) -> None:
        self.may_commit.wait(60)
        self.groups.append(len(group))
        if self.fails:
            raise Unavailable("state_full", "the disk is full")

    def advancing(self) -> None:
        if self.fails:
            raise Unavailable("state_full", "the disk is full")

    def close(self) -> None:
        self.closed = True


class Under:
    """A writer under test."""

    def __init__(self) -> None:
        self.clock, self.readiness = FakeClock(), Readiness()
        self.engine = Engine(clock=self.clock, wall=self.clock.wall)
        self.state = State(self.engine, SeriesRecording(self.engine, Registry(self.clock.wall)))
        self.persistence = Noting(self.state)
        self.writer = Writer(self.state, self.persistence, self.readiness)


@contextmanager
def under_test(*, started: bool = True) -> Generator[Under]:
    """A writer that runs."""
    under = Under()
    if started:
        under.writer.start()
        until(lambda: not under.readiness.reasons, "the writer to begin")
    try:
        yield under
    finally:
        under.persistence.may_commit.set()
        under.persistence.may_restore.set()
        if under.writer.alive:
            under.writer.stop(60)


def refusal_of(answer: Future[Ack]) -> Refused:
    """How a request was refused."""
    error = answer.exception(60)
    assert isinstance(error, Refused)
    return error


def test_a_request_is_acknowledged_when_it_is_applied() -> None:
    """Then its spans are in the engine, and what of it was refused is told."""
    with under_test() as under:
        ack = under.writer.commit(RUN._replace(malformed={"span_id": 2}, message="two")).result(60)

        assert ack == Ack(2, "two")
        assert under.engine.open_runs == 1
        assert under.engine.accounts["malformed", "span_id"] == 2


def test_nothing_is_applied_before_it_is_kept() -> None:
    """The journal has the word first."""
    with under_test() as under:
        under.persistence.may_commit.clear()
        answer = under.writer.commit(RUN)
        until(lambda: not under.writer.waiting, "the writer to take it")

        assert under.engine.open_runs == 0
        assert not answer.done()
        under.persistence.may_commit.set()
        assert answer.result(60)
        assert under.engine.open_runs == 1


def test_requests_that_wait_are_kept_together() -> None:
    """In groups up to a size, in their order."""
    with under_test() as under:
        under.persistence.may_commit.clear()
        answers = [under.writer.commit(Decoded()) for _ in range(GROUP + 20)]
        under.persistence.may_commit.set()
        for answer in answers:
            answer.result(60)

        assert sum(under.persistence.groups) == GROUP + 20
        assert max(under.persistence.groups) <= GROUP
        assert len(under.persistence.groups) <= 4


def test_what_cannot_be_kept_is_refused_for_now() -> None:
    """And nothing of it is applied; when it can be kept again, the service is ready again without being asked."""
    with under_test() as under:
        under.persistence.fails = True
        refusal = refusal_of(under.writer.commit(RUN))

        assert (refusal.problem, refusal.reason) == (Problem.OVERLOAD, "state_full")
        assert refusal.retry_after
        assert under.engine.open_runs == 0
        assert "state" in under.readiness.reasons

        under.persistence.fails = False
        under.clock.advance(10)
        until(lambda: not under.readiness.reasons, "the service to be ready again")
        assert under.writer.commit(RUN).result(60)


def test_a_request_that_was_taken_back_is_never_applied() -> None:
    """Its sender was told to come again: it would count twice."""
    with under_test() as under:
        under.persistence.may_commit.clear()
        first = under.writer.commit(Decoded())
        until(lambda: not under.writer.waiting, "the writer to be busy")
        second = under.writer.commit(RUN)
        assert second.cancel()
        under.persistence.may_commit.set()
        first.result(60)
        under.writer.commit(Decoded()).result(60)

        assert under.engine.open_runs == 0


def test_a_fault_costs_one_request() -> None:
    """It is counted and answered, and the next one is applied."""
    with under_test() as under:
        broken: Any = (object(),)
        loud, Guard.loud = Guard.loud, False
        try:
            refusal = refusal_of(under.writer.commit(Decoded(broken)))
        finally:
            Guard.loud = loud

        assert refusal.problem is Problem.FAULT
        assert under.writer.commit(RUN).result(60)
        assert Guard.faults["applying a request"] >= 1


def test_it_is_not_ready_while_state_is_brought_back() -> None:
    """And requests that come anyway wait for it."""
    with under_test(started=False) as under:
        under.persistence.may_restore.clear()
        under.writer.start()
        answer = under.writer.commit(RUN)

        assert "recovering" in under.readiness.reasons
        assert not answer.done()
        under.persistence.may_restore.set()
        assert answer.result(60)
        assert not under.readiness.reasons


def test_deadlines_are_met_without_requests() -> None:
    """Runs close and become final by the clock, and whoever watches is told."""
    with under_test() as under:
        under.writer.commit(RUN).result(60)
        under.clock.advance(3)
        until(lambda: under.engine.closed["root"] == 1, "the run to close")
        under.clock.advance(100)
        until(lambda: sum(under.engine.recorded.values()) == 1, "the run to become final")


@pytest.mark.parametrize("keeps", [False, True])
def test_at_the_end_what_is_open_is_closed_unless_it_is_kept(keeps: bool) -> None:
    """What came before is applied, what comes after is refused, and the journal is closed."""
    with under_test() as under:
        under.persistence.keeps_open_runs = keeps
        under.persistence.may_commit.clear()
        answer = under.writer.commit(RUN)
        stopping = threading.Thread(target=under.writer.stop, args=(60,))
        stopping.start()
        until(lambda: under.writer._stopping, "the end to be asked for")
        late = under.writer.commit(RUN)
        under.persistence.may_commit.set()
        stopping.join(60)

        assert answer.result(60) == Ack(0, "")
        assert refusal_of(late).reason == "stopping"
        assert under.persistence.closed
        assert under.engine.closed["shutdown"] == (0 if keeps else 1)
