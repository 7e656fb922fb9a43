"""A writer that takes too long is an overload: the client hears so in time, and its request is not
applied behind its back.
"""

from __future__ import annotations

import gc
import gzip
import time
from typing import Any, cast

import grpc
import pytest

from tests.real.waiting import until
from tests.service.running import Controlled, Running, body_of, run_of, serving


def refused_by(running: Running, door: str) -> str:
    """How a run is refused, and with a hint."""
    if door == "http":
        answer = running.post("traces", body_of(run_of(2)))
        assert answer.headers["Retry-After"]
        return str(answer.status)
    with pytest.raises(grpc.RpcError) as raised:
        running.call(body_of(run_of(2)))
    error = cast("Any", raised.value)
    assert "google.rpc.retryinfo-bin" in dict(error.trailing_metadata())
    return error.code().name


@pytest.mark.parametrize(("door", "status"), [("http", "503"), ("grpc", "UNAVAILABLE")])
def test_a_commit_that_takes_too_long_is_an_overload(door: str, status: str) -> None:
    """Before the client's own patience ends. What waited its turn is taken back; what was begun may
    be sent twice.
    """
    slow = Controlled()
    with serving(persistence_of=slow, commit_timeout=0.3) as running:
        first = refused_by(running, door)
        second = refused_by(running, door)
        slow.may_commit.set()
        until(
            lambda: running.service.engine.open_runs == 1,
            "the request that was begun to be applied",
        )
        running.post("traces", body_of(run_of(2)))
        running.finalize()

        assert (first, second) == (status, status)
        assert running.sum("otel_reliability_requests_total", outcome="commit_timeout") == 2
        assert running.sum("otel_reliability_spans_total", disposition="received") == 4
        assert running.sum("otel_reliability_spans_total", disposition="duplicate") == 2
        assert running.sum("agent_reliability_runs_total") == 1
        assert running.service.intake.budget.used == 0


def test_the_time_that_reading_takes_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(commit_timeout=2.0) as running:
        intake = running.service.intake
        submit = intake.submit

        def slowly(*args: Any, **options: Any) -> Any:
            time.sleep(2.5)
            return submit(*args, **options)

        monkeypatch.setattr(intake, "submit", slowly)
        body = gzip.compress(body_of(run_of(2)))
        assert running.post("traces", body, content_encoding="gzip").status == 200
        running.finalize()
        assert running.sum("agent_reliability_runs_total") == 1


def test_an_error_that_comes_too_late_is_heard_by_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """The client was told to come again long before the disk failed; nothing complains of an error
    nobody looked at.
    """
    full = Controlled()
    full.full_disk = frozenset({"before_apply"})
    with serving(persistence_of=full, commit_timeout=0.3) as running:
        assert refused_by(running, "http") == "503"
        full.may_commit.set()
        running.clock.advance(1)
        running.writer_came_round()
        gc.collect()
    assert "never retrieved" not in caplog.text
