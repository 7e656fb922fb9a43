"""The rules of OTLP that hold for every receiver: protobuf and JSON over HTTP, and gRPC, plain and
compressed with gzip.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, cast

import grpc
import pytest
from google.protobuf.json_format import Parse
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from msgspec.structs import replace
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from otel_reliability.model.span import Evaluation, RawSpan
from otel_reliability.sources.otlp_write import logs_json, traces_json
from otel_reliability.testing import at, span, trace_id
from tests.otlp import logs_protobuf
from tests.service.running import (
    EXPORT_LOGS,
    EXPORT_TRACES,
    JSON,
    PROTOBUF,
    Running,
    body_of,
    run_of,
    runs_of,
    serving,
)

METHODS: Final = {
    "traces": EXPORT_TRACES,
    "logs": EXPORT_LOGS,
    "metrics": "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
}
STATUSES: Final = {3: 400, 8: 413, 14: 503}
"""The HTTP status for each gRPC code."""
every_receiver = pytest.mark.parametrize("kind", [PROTOBUF, JSON, "grpc"])
every_packing = pytest.mark.parametrize("packing", ["plain", "gzip"])


class Answer(NamedTuple):
    """An answer of any receiver. `code` is that of gRPC, 0 for success; `retry` are seconds, None
    without a hint.
    """

    code: int
    body: bytes = b""
    message: str = ""
    retry: float | None = None


def sent(
    running: Running, kind: str, body: bytes, signal: str = "traces", packing: str = "plain"
) -> Answer:
    """Send a request; check that an answer says the same wherever a client may read it."""
    return (_over_grpc if kind == "grpc" else _over_http)(running, kind, body, signal, packing)


def _over_grpc(running: Running, _: str, body: bytes, signal: str, packing: str) -> Answer:
    compression = grpc.Compression.Gzip if packing == "gzip" else grpc.Compression.NoCompression
    try:
        return Answer(0, running.call(body, METHODS[signal], compression=compression))
    except grpc.RpcError as raised:
        error = cast("Any", raised)
    metadata = dict(error.trailing_metadata())
    code = error.code().value[0]
    if "grpc-status-details-bin" not in metadata:  # the library's own refusal
        return Answer(code)
    answer = _refusal(Status.FromString(metadata["grpc-status-details-bin"]))
    assert answer.code == code
    assert answer.retry == _seconds(metadata.get("google.rpc.retryinfo-bin"))
    return answer


def _over_http(running: Running, kind: str, body: bytes, signal: str, packing: str) -> Answer:
    packed = {"content_encoding": "gzip"} if packing == "gzip" else {}
    answer = running.post(signal, gzip.compress(body) if packed else body, kind, **packed)
    assert answer.headers["Content-Type"].partition(";")[0] == kind
    if answer.status == 200:
        return Answer(0, answer.body)
    found = _refusal(_message(kind, answer.body, Status()))
    assert answer.status == STATUSES[found.code]
    assert answer.headers["Retry-After"] == (None if found.retry is None else f"{found.retry:g}")
    return found


def _refusal(status: Status) -> Answer:
    retry = _seconds(status.details[0].value if status.details else None)
    return Answer(status.code, message=status.message, retry=retry)


def _seconds(raw: bytes | None) -> float | None:
    return None if raw is None else float(RetryInfo.FromString(raw).retry_delay.seconds)


def _message(kind: str, body: bytes, into: Any) -> Any:
    if kind == JSON:
        return Parse(body, into)
    into.ParseFromString(body)
    return into


def written(kind: str, spans: Iterable[RawSpan]) -> bytes:
    return json.dumps(traces_json(spans)).encode() if kind == JSON else body_of(spans)


def nothing(kind: str) -> bytes:
    return b"{}" if kind == JSON else b""


@every_receiver
@every_packing
def test_full_success_is_an_empty_answer(kind: str, packing: str) -> None:
    with serving() as running:
        answer = sent(running, kind, written(kind, runs_of(5)), packing=packing)
        running.finalize()

        assert answer == Answer(0, nothing(kind))
        assert running.sum("agent_reliability_runs_total", gen_ai_agent_name="support") == 5
        assert running.sum("otel_reliability_spans_total", disposition="used") == 10


@every_receiver
@pytest.mark.parametrize("signal", ["traces", "logs"])
def test_an_empty_request_is_a_success(running: Running, signal: str, kind: str) -> None:
    assert sent(running, kind, nothing(kind), signal) == Answer(0, nothing(kind))


@every_receiver
@pytest.mark.parametrize(
    ("size", "unit"),
    [(10**9, "seconds"), (10**6, "milliseconds"), (10**3, "microseconds")],
)
def test_times_in_another_unit_are_refused_with_the_unit(kind: str, size: int, unit: str) -> None:
    wrong = replace(run_of(1)[1], start_ns=at(0) // size, end_ns=at(1) // size)
    with serving() as running:
        answer = sent(running, kind, written(kind, [*run_of(2), wrong]))
        partial = _message(kind, answer.body, ExportTraceServiceResponse()).partial_success

        assert (answer.code, partial.rejected_spans) == (0, 1)
        assert f"are {unit} since 1970, not nanoseconds; multiply them by" in partial.error_message
        assert running.service.engine.accounts["malformed", "start_time"] == 1


@every_receiver
def test_one_malformed_span_is_refused_and_its_batch_lives(kind: str) -> None:
    broken = replace(span(9, 1, trace=1), span_id=b"\1\2")
    with serving() as running:
        answer = sent(running, kind, written(kind, [*run_of(), broken]))
        partial = _message(kind, answer.body, ExportTraceServiceResponse()).partial_success
        running.finalize()

        assert (answer.code, partial.rejected_spans) == (0, 1)
        assert "span_id" in partial.error_message
        assert (
            running.sum("otel_reliability_spans_total", disposition="malformed", reason="span_id")
            == 1
        )
        assert running.sum("agent_reliability_runs_total") == 1


@every_receiver
def test_evaluations_come_as_logs(kind: str) -> None:
    good = Evaluation("correctness", 1.0, "pass", at(1), trace_id(1), None)
    both = [good, replace(good, name="")]
    with serving() as running:
        sent(running, kind, written(kind, run_of()))
        body = json.dumps(logs_json(both)).encode() if kind == JSON else logs_protobuf(both)
        answer = sent(running, kind, body, "logs")
        partial = _message(kind, answer.body, ExportLogsServiceResponse()).partial_success
        running.finalize()

        assert (answer.code, partial.rejected_log_records) == (0, 1)
        assert running.sum("agent_reliability_runs_total", outcome="success") == 1
        assert (
            running.sum(
                "otel_reliability_log_records_total", disposition="malformed", reason="evaluation"
            )
            == 1
        )


@every_receiver
def test_metrics_are_accepted_and_discarded(running: Running, kind: str) -> None:
    """An agent that exports every signal to one endpoint gets no error."""
    transport = "grpc" if kind == "grpc" else "http"
    before = running.service.intake.requests["metrics", transport, "discarded"]

    assert sent(running, kind, b"\xff anything", "metrics") == Answer(0, nothing(kind))
    assert running.service.intake.requests["metrics", transport, "discarded"] == before + 1


@every_receiver
@every_packing
def test_a_body_beyond_the_limit_is_refused_for_good(
    running: Running, kind: str, packing: str
) -> None:
    answer = sent(running, kind, (b" " if kind == JSON else b"\x0a") * 100_001, packing=packing)

    assert (answer.code, answer.retry) == (8, None)


GARBAGE: Final = (b"\xff\xff", body_of(run_of())[:-1])


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        *((kind, body) for kind in (PROTOBUF, "grpc") for body in GARBAGE),
        ("grpc", b"\x1f\x8b\x08"),
        *((JSON, body) for body in (b"{", b"[]", b'"text"', b"[" * 50_000, b"\xff")),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_for_good(
    running: Running, kind: str, body: bytes
) -> None:
    answer = sent(running, kind, body)

    assert (answer.code, answer.retry) == (3, None)


@every_receiver
def test_overload_is_reported_before_anything_is_read(kind: str) -> None:
    with serving() as running:
        with running.service.intake.budget.reserve(running.service.intake.budget.capacity):
            answer = sent(running, kind, b"\xff not read")
        after = sent(running, kind, nothing(kind))

        assert (answer.code, answer.retry, after.code) == (14, 1.0, 0)
        assert running.sum("otel_reliability_requests_total", outcome="queue_full") == 1


@every_receiver
def test_a_body_that_does_not_fit_the_queue_may_be_sent_again(kind: str) -> None:
    """Bytes are reserved for what a body decompresses to: a compressed one may fit, and its content
    not.
    """
    body = written(kind, runs_of(40))
    with (
        serving(queue=100_000, max_request=100_000) as running,
        running.service.intake.budget.reserve(90_000),
    ):
        answer = sent(running, kind, body, packing="gzip")

        assert len(gzip.compress(body)) < 10_000
        assert (answer.code, answer.retry) == (14, 1.0)
        assert running.service.intake.budget.used == 90_000
