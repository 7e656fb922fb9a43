from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from otel_reliability.errors import ConfigurationError
from otel_reliability.model.span import Evaluation
from otel_reliability.testing import at, span, trace_id
from tests.real.waiting import until
from tests.service.logs import logs_protobuf
from tests.service.running import EXPORT_LOGS, EXPORT_TRACES, HEALTH, Running, body_of, run_of, runs_of, serving

PACKED = {"plain": grpc.Compression.NoCompression, "gzip": grpc.Compression.Gzip}


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    """One service for all rules that leave no trace behind."""
    with serving(max_request=100_000, queue=200_000) as found:
        yield found


def refusal(running: Running, body: bytes, method: str = EXPORT_TRACES, **options: Any) -> Any:
    """How a request was refused."""
    with pytest.raises(grpc.RpcError) as raised:
        running.call(body, method, **options)
    return cast("Any", raised.value)


def details_of(error: Any) -> Status:
    """The `google.rpc.Status` among the trailing metadata."""
    return Status.FromString(dict(error.trailing_metadata())["grpc-status-details-bin"])


def delays_of(error: Any) -> tuple[float | None, float | None]:
    """When to come again, as Go's clients read it and as Python's do."""
    packed = details_of(error).details
    raw = dict(error.trailing_metadata()).get("google.rpc.retryinfo-bin")
    return _seconds(packed[0].value if packed else None), _seconds(raw)


def _seconds(raw: bytes | None) -> float | None:
    return None if raw is None else float(RetryInfo.FromString(raw).retry_delay.seconds)


@pytest.mark.parametrize("packing", PACKED)
def test_spans_are_taken(packing: str) -> None:
    """Packed or not: full success is an empty answer, and the run is there."""
    with serving() as running:
        answer = running.call(body_of(runs_of(5)), compression=PACKED[packing])
        running.finalize()

        assert answer == b""
        assert running.sum("agent_reliability_runs_total", gen_ai_agent_name="support") == 5


@pytest.mark.parametrize("method", [EXPORT_TRACES, EXPORT_LOGS])
def test_an_empty_request_is_a_success(running: Running, method: str) -> None:
    """Nothing to take is nothing to refuse."""
    assert running.call(b"", method) == b""


def test_one_malformed_span_is_refused_and_its_batch_lives() -> None:
    """A success that counts and names what was refused."""
    broken = span(9, 1)._replace(trace_id=b"short")
    with serving() as running:
        told = ExportTraceServiceResponse.FromString(running.call(body_of([*run_of(), broken])))
        running.finalize()

        assert told.partial_success.rejected_spans == 1
        assert "trace_id" in told.partial_success.error_message
        assert running.sum("agent_reliability_runs_total") == 1


def test_evaluations_come_as_logs() -> None:
    """The logs service joins judgements to their runs, and refuses one without a name."""
    good = Evaluation("correctness", 0.0, None, at(1), trace_id(1), None)
    with serving() as running:
        running.call(body_of(run_of()))
        told = running.call(logs_protobuf([good, good._replace(name="")]), EXPORT_LOGS)
        running.finalize()

        assert ExportLogsServiceResponse.FromString(told).partial_success.rejected_log_records == 1
        assert running.sum("agent_reliability_runs_total", outcome="failure") == 1


@pytest.mark.parametrize("packing", PACKED)
def test_a_message_beyond_the_limit_is_refused_for_good(running: Running, packing: str) -> None:
    """RESOURCE_EXHAUSTED without a hint when to come again, which is what tells clients not to. Packed, it counts unpacked."""
    error = refusal(running, b"\n" * 100_001, compression=PACKED[packing])

    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "google.rpc.retryinfo-bin" not in dict(error.trailing_metadata())


def test_a_bomb_is_refused_before_it_has_unpacked() -> None:
    """The library would unpack a message without a bound; a hundred megabytes pack into a tenth of one."""
    with serving() as running:
        error = refusal(running, b"\n" * 100_000_000, compression=grpc.Compression.Gzip)

        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert details_of(error).message.startswith("the body decompresses to more")


@pytest.mark.parametrize(
    "body", [b"\xff\xff", body_of(run_of())[:-1], b"\x1f\x8b\x08"], ids=["garbage", "cut off", "gzip"]
)
def test_a_message_that_cannot_be_read_is_an_invalid_argument(running: Running, body: bytes) -> None:
    """For good, with a `google.rpc.Status`."""
    error = refusal(running, body)

    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert details_of(error).code == 3
    assert delays_of(error) == (None, None)


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


def test_metrics_are_accepted_and_discarded(running: Running) -> None:
    """An agent that exports every signal to one endpoint gets no error; the requests are counted."""
    before = running.service.intake.requests["metrics", "grpc", "discarded"]

    assert running.call(b"\xff anything", "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export") == b""
    assert running.service.intake.requests["metrics", "grpc", "discarded"] == before + 1


def test_another_packing_is_unimplemented(running: Running) -> None:
    """As gRPC specifies for an encoding that the server does not have."""
    assert refusal(running, b"\n" * 1_000, compression=grpc.Compression.Deflate).code() is grpc.StatusCode.UNIMPLEMENTED


def test_overload_says_when_to_come_again_to_every_client() -> None:
    """UNAVAILABLE, with the delay where Go's clients look for it and where Python's do; then the request is taken."""
    with serving() as running:
        with running.service.intake.budget.reserve(running.service.intake.budget.capacity):
            error = refusal(running, b"\xff not read")
        after = running.call(b"")

        assert error.code() is grpc.StatusCode.UNAVAILABLE
        assert delays_of(error) == (1.0, 1.0)
        assert after == b""
        assert running.sum("otel_reliability_requests_total", transport="grpc", outcome="queue_full") == 1


def test_what_does_not_fit_the_queue_is_to_come_again(running: Running) -> None:
    """There is some room, but not enough for this message."""
    with running.service.intake.budget.reserve(150_000):
        error = refusal(running, b"\n" * 90_000)

    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert delays_of(error) == (1.0, 1.0)


def test_the_health_service_says_whether_requests_are_taken(running: Running) -> None:
    """SERVING (1) or NOT_SERVING (2)."""
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
def test_health_is_known_of_the_services_there_are(running: Running, name: bytes, known: bool) -> None:
    """Asked about one service by its name."""
    request = b"\x0a" + bytes((len(name),)) + name
    if known:
        assert running.call(request, HEALTH) == b"\x08\x01"
    else:
        assert refusal(running, request, HEALTH).code() is grpc.StatusCode.NOT_FOUND


def test_connections_grow_only_so_old() -> None:
    """After their age the server asks clients to connect anew, so that they spread; requests go on without an error."""
    with serving(max_connection_age=1.0) as running, grpc.insecure_channel(running.target) as channel:
        export: Any = cast("Any", channel).unary_unary(EXPORT_TRACES)
        states: list[grpc.ChannelConnectivity] = []
        channel.subscribe(states.append, try_to_connect=True)

        def asked_to_connect_anew() -> bool:
            assert export(b"", timeout=60, wait_for_ready=True) == b""
            return grpc.ChannelConnectivity.IDLE in states[1:]

        until(asked_to_connect_anew, "the server to ask for a new connection", pause=0.1)


def test_an_address_that_is_taken_is_told(running: Running) -> None:
    """As a setting that cannot be; and nothing of the second service stays behind."""
    with pytest.raises(ConfigurationError, match=r"service\.grpc"), serving(grpc=running.target):
        pass
    with (
        pytest.raises(ConfigurationError, match=r"service\.http"),
        serving(http=str(running.service.addresses["http"])),
    ):
        pass
