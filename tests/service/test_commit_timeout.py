"""A writer that takes too long is an overload: the client hears so in time, and its request is not applied behind its back."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, cast

import grpc
import pytest

from otel_reliability.service.decoded import Decoded
from otel_reliability.service.journal import Memory
from tests.real.waiting import until
from tests.service.running import Running, body_of, run_of, serving


class Slow(Memory):
    """A disk that hangs until it is told to go on."""

    def __init__(self) -> None:
        self.goes_on = threading.Event()

    def commit(self, group: Sequence[Decoded]) -> None:
        self.goes_on.wait(20)


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
    """Before the client's own patience ends. What waited its turn is taken back; what was begun may be sent twice."""
    slow = Slow()
    with serving(journal_of=lambda _: slow, commit_timeout=0.3) as running:
        first = refused_by(running, door)
        second = refused_by(running, door)
        slow.goes_on.set()
        until(lambda: running.service.engine.open_runs == 1, "the request that was begun to be applied")
        running.post("traces", body_of(run_of(2)))
        running.settle()

        assert (first, second) == (status, status)
        assert running.sum("otel_reliability_requests_total", outcome="commit_timeout") == 2
        assert running.sum("otel_reliability_spans_total", disposition="received") == 4
        assert running.sum("otel_reliability_spans_total", disposition="duplicate") == 2
        assert running.sum("agent_reliability_runs_total") == 1
        assert running.service.intake.room.used == 0
