from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from otel_reliability.service import service as services
from otel_reliability.service.decoded import Decoded
from otel_reliability.service.persistence import Volatile
from otel_reliability.service.state import State
from otel_reliability.service.writer import STUCK_CHECKS, Progress
from tests.real.waiting import until
from tests.service.running import body_of, run_of, serving
from tests.service.test_writer import RUN, Under, under_test


def looked(progress: Progress, looks: int = STUCK_CHECKS) -> bool:
    """Whether the writer hangs, after so many looks."""
    for _ in range(looks):
        progress.check()
    return progress.stuck


def came_round(under: Under) -> None:
    """Wait for the writer."""
    until(lambda: under.writer.beat >= under.clock(), "the writer to come round")


def test_a_writer_that_hangs_is_noticed_and_one_that_goes_on_is_not() -> None:
    """Behind its time and at the same place, look after look; one sign of life, and it is well."""
    with under_test() as under:
        progress = Progress(under.writer, under.state)
        under.persistence.may_commit.clear()
        answer = under.writer.commit(RUN)
        until(lambda: not under.writer.waiting, "the writer to take it")
        under.clock.advance(100)
        before = looked(progress, STUCK_CHECKS - 1)
        after = looked(progress, 2)
        under.persistence.may_commit.set()
        answer.result(60)
        came_round(under)

        assert (before, after) == (False, True)
        assert not looked(progress, 1)


def test_a_writer_with_much_to_do_does_not_hang() -> None:
    """A group that takes for ever: the clock is far ahead, and each request that is applied is a sign of life."""
    with under_test() as under:
        progress = Progress(under.writer, under.state)
        under.persistence.may_commit.clear()
        answer = under.writer.commit(RUN)
        until(lambda: not under.writer.waiting, "the writer to take it")
        under.clock.advance(1_000)
        stuck: list[bool] = []
        for _ in range(10):
            stuck.append(looked(progress, STUCK_CHECKS - 1))
            under.state.apply(Decoded())
        under.persistence.may_commit.set()
        answer.result(60)

        assert not any(stuck)


def test_a_process_that_did_not_run_does_not_hang() -> None:
    """Stopped for an hour, or starved: the clock went on, and nobody could look meanwhile."""
    with under_test() as under:
        progress = Progress(under.writer, under.state)
        under.persistence.may_commit.clear()
        answer = under.writer.commit(RUN)
        until(lambda: not under.writer.waiting, "the writer to take it")
        under.clock.advance(3_600)

        assert not looked(progress, 2)
        under.persistence.may_commit.set()
        answer.result(60)


def test_a_writer_with_nothing_to_do_does_not_hang() -> None:
    """However long the clock stands still."""
    with under_test() as under:
        came_round(under)

        assert not looked(Progress(under.writer, under.state), 10 * STUCK_CHECKS)


class Hanging(Volatile):
    """A journal whose disk does not answer."""

    def __init__(self) -> None:
        self.hangs = threading.Event()

    def __call__(self, state: State) -> Volatile:
        super().__init__(state)
        return self

    def commit(self, group: Sequence[Decoded]) -> None:
        self.hangs.wait(60)


def test_the_probe_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    """503 while the writer hangs, although the doors answer, and 200 when it goes on."""
    monkeypatch.setattr(services, "CHECK_INTERVAL_S", 0.002)
    journal = Hanging()
    with serving(persistence_of=journal, commit_timeout=0.1) as running:
        first = running.get("ui", "/healthz").status
        refused = running.post("traces", body_of(run_of())).status
        running.clock.advance(100)
        until(lambda: running.get("ui", "/healthz").status == 503, "the probe to tell")
        journal.hangs.set()
        until(lambda: running.get("ui", "/healthz").status == 200, "the writer to go on")

    assert (first, refused) == (200, 503)
