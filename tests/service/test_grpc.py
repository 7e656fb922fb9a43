from __future__ import annotations

import gc
from typing import Any, cast

import grpc
import pytest
from google.rpc.status_pb2 import Status

from otel_reliability.errors import ConfigurationError
from otel_reliability.service.answers import Refused
from tests.real.waiting import until
from tests.service.running import EXPORT_TRACES, HEALTH, Running, body_of, run_of, serving


def refusal(running: Running, body: bytes, method: str = EXPORT_TRACES, **options: Any) -> Any:
    with pytest.raises(grpc.RpcError) as raised:
        running.call(body, method, **options)
    return cast("Any", raised.value)


def test_a_bomb_is_refused_before_it_has_unpacked() -> None:
    """The library would unpack a message without a bound; a hundred megabytes pack into a tenth of
    one.
    """
    with serving() as running:
        error = refusal(running, b"\n" * 100_000_000, compression=grpc.Compression.Gzip)

        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert Status.FromString(
            dict(error.trailing_metadata())["grpc-status-details-bin"]
        ).message.startswith("the body decompresses to more")


@pytest.mark.parametrize(
    "method",
    [
        "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
        "/opentelemetry.proto.collector.trace.v1.TraceService/Nonsense",
        "/grpc.health.v1.Health/Watch",
        "/nobody/Knows",
    ],
)
def test_other_methods_are_unimplemented(running: Running, method: str) -> None:
    """A client drops what nobody takes, and does not try again."""
    assert refusal(running, b"", method).code() is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("compression", grpc.Compression)
def test_every_compression_of_the_library_is_read(compression: grpc.Compression) -> None:
    with serving() as running, grpc.insecure_channel(running.target) as channel:
        export = cast("Any", channel).unary_unary(EXPORT_TRACES)
        body = body_of(run_of(1, ["search"] * 50))
        export(body, timeout=10, compression=compression)
        assert running.service.engine.accounts["received", ""] == 51
        assert running.service.intake.requests["traces", "grpc", "accepted"] == 1


def test_the_health_service_says_whether_requests_are_taken(running: Running) -> None:
    serving_now = running.call(b"", HEALTH)
    running.service.readiness.hold("test", "for a while")
    try:
        not_now = running.call(b"", HEALTH)
    finally:
        running.service.readiness.release("test")

    assert (serving_now, not_now) == (b"\x08\x01", b"\x08\x02")


@pytest.mark.parametrize(
    ("name", "known"),
    [
        (b"opentelemetry.proto.collector.trace.v1.TraceService", True),
        (b"opentelemetry.proto.collector.logs.v1.LogsService", True),
        (b"opentelemetry.proto.collector.metrics.v1.MetricsService", True),
        (b"x", False),
    ],
)
def test_health_is_known_of_the_services_there_are(
    running: Running, name: bytes, known: bool
) -> None:
    request = b"\x0a" + bytes((len(name),)) + name
    if known:
        assert running.call(request, HEALTH) == b"\x08\x01"
    else:
        assert refusal(running, request, HEALTH).code() is grpc.StatusCode.NOT_FOUND


def test_connections_grow_only_so_old() -> None:
    """After their age the server asks clients to connect anew, so that they spread; requests go on
    without an error.
    """
    with (
        serving(max_connection_age=1.0) as running,
        grpc.insecure_channel(running.target) as channel,
    ):
        export: Any = cast("Any", channel).unary_unary(EXPORT_TRACES)
        states: list[grpc.ChannelConnectivity] = []
        channel.subscribe(states.append, try_to_connect=True)

        def asked_to_connect_anew() -> bool:
            assert export(b"", timeout=60, wait_for_ready=True) == b""
            return grpc.ChannelConnectivity.IDLE in states[1:]

        until(asked_to_connect_anew, "the server to ask for a new connection", pause=0.1)


def test_an_address_that_is_taken_is_told(running: Running) -> None:
    with pytest.raises(ConfigurationError, match=r"service\.grpc"), serving(grpc=running.target):
        pass
    with (
        pytest.raises(ConfigurationError, match=r"service\.http"),
        serving(http=str(running.service.addresses["http"])),
    ):
        pass


def test_a_refused_call_leaves_nothing_to_the_garbage_collector(running: Running) -> None:
    """An error that its own frame holds would keep the body, which the service collects seldom."""
    body = b"\xff\xff" + bytes(20_000)
    gc.collect()
    gc.disable()
    try:
        before = alive(Refused)
        for _ in range(20):
            with pytest.raises(grpc.RpcError):
                running.call(body)
        until(lambda: alive(Refused) <= before, "refusals are gone")
    finally:
        gc.enable()


def alive(kind: type[object]) -> int:
    return sum(type(one) is kind for one in gc.get_objects())
