"""Clients that open calls of gRPC and send nothing: others are served, and the calls end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, cast

import grpc
import pytest

from otel_reliability.service import grpc as receiver
from otel_reliability.service import intake
from tests.service.running import EXPORT_TRACES, HEALTH, Running, body_of, run_of, serving

SERVING = b"\x08\x01"
METRICS = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
METHODS = [EXPORT_TRACES, METRICS, HEALTH]


@contextmanager
def stalled(
    running: Running, method: str, number: int, connections: int = 1
) -> Generator[list[Any]]:
    """Calls that have sent their headers and no message, so many of each connection."""
    end = threading.Event()

    def nothing() -> Iterator[bytes]:
        end.wait(60)
        yield from ()

    own_connection = [("grpc.use_local_subchannel_pool", 1)]
    calls: list[Any] = []
    with ExitStack() as open_ones:
        for _ in range(connections):
            channel = open_ones.enter_context(
                grpc.insecure_channel(running.target, options=own_connection)
            )
            call: Callable[..., Any] = cast("Any", channel).stream_unary(method).future
            calls += [call(nothing(), timeout=60) for _ in range(number)]
        time.sleep(0.5)  # their headers arrive before anything else is sent
        open_ones.callback(end.set)  # first, for the channels wait for their calls
        yield calls


@pytest.mark.parametrize("method", METHODS)
def test_calls_without_a_message_hold_up_no_export_and_no_health_check(method: str) -> None:
    with serving() as running, stalled(running, method, 64):
        assert running.call(b"", HEALTH) == SERVING
        assert running.call(body_of(run_of())) == b""


@pytest.mark.parametrize("method", METHODS)
def test_call_without_a_message_ends(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver, "BODY_TIMEOUT", 0.2)
    monkeypatch.setattr(intake, "BODY_TIMEOUT", 0.2)
    with serving() as running, stalled(running, method, 20) as calls:
        found = [call.exception(timeout=20) for call in calls]

        assert {error.code() for error in found} == {grpc.StatusCode.DEADLINE_EXCEEDED}
        assert running.call(b"", HEALTH) == SERVING
        assert running.sum("otel_reliability_requests_total", outcome="slow") == len(calls)
