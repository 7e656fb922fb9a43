from __future__ import annotations

import gc
import gzip
import json
import socket
import zlib
from collections.abc import Callable
from typing import Any

import pytest
import zstandard
from google.protobuf.json_format import Parse
from google.rpc.status_pb2 import Status
from msgspec.structs import replace
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, ResourceMetrics, ScopeMetrics

from otel_reliability.model.span import Evaluation
from otel_reliability.service.answers import Refused
from otel_reliability.sources.otlp_write import logs_json, traces_json
from otel_reliability.testing import at, span, trace_id
from tests.real.waiting import until
from tests.real.web import Answer, ask
from tests.service.running import JSON, PROTOBUF, Running, body_of, run_of, serving

KINDS = (PROTOBUF, JSON)


def status_of(answer: Answer, kind: str) -> Status:
    """The `google.rpc.Status` of an answer, which must be in the encoding of its request."""
    assert answer.headers["Content-Type"].partition(";")[0] == kind
    if kind == JSON:
        return Parse(answer.body, Status())
    return Status.FromString(answer.body)


def test_json_counts_what_it_refused_as_a_text() -> None:
    """64-bit numbers are strings in OTLP-JSON, and unset fields are left out."""
    broken = replace(span(9, trace=1), trace_id=bytes(16))
    with serving() as running:
        answer = running.post("traces", json.dumps(traces_json([broken])).encode(), JSON)

    assert json.loads(answer.body)["partialSuccess"]["rejectedSpans"] == "1"


@pytest.mark.parametrize("signal", ["traces", "metrics"])
def test_a_body_of_unknown_length_is_too_large_as_soon_as_it_is(
    running: Running, signal: str
) -> None:
    place = running.service.addresses["http"]
    with socket.create_connection((place.host, place.port)) as client:
        client.sendall(
            f"POST /v1/{signal}".encode()
            + b" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
            b"Content-Type: application/x-protobuf\r\n\r\n"
        )
        client.sendall(
            b"10000\r\n" + b"\x0a" * 0x10000 + b"\r\n" + b"10000\r\n" + b"\x0a" * 0x10000 + b"\r\n"
        )
        said = client.recv(4096)

    assert b" 413 " in said.partition(b"\r\n")[0]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (PROTOBUF, b"\xff\xff"),
        (PROTOBUF, b"\xff\xff" + bytes(50_000)),
        (JSON, b"{" + bytes(50_000)),
    ],
    ids=["small", "large", "json"],
)
def test_a_refused_body_is_let_go_at_once(running: Running, kind: str, body: bytes) -> None:
    """The error, whose frames hold the body, is in no cycle: these are collected rarely, thousands
    of bodies later.
    """
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            assert running.post("traces", body, kind).status == 400
        until(
            lambda: not any(isinstance(one, Refused) for one in gc.get_objects()),
            "the errors to go",
            patience=10,
        )
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "body", [b"not gzip", gzip.compress(b"{}")[:-3], b"\x1f\x8b"], ids=["other", "cut off", "begun"]
)
def test_damaged_gzip_is_a_bad_request(running: Running, body: bytes) -> None:
    assert running.post("traces", body, JSON, content_encoding="gzip").status == 400


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD", "OPTIONS"])
def test_another_method_is_not_allowed(running: Running, method: str) -> None:
    answer = ask(running.url("http", "/v1/traces"), method=method)

    assert (answer.status, answer.headers["Allow"]) == (405, "POST")
    if method != "HEAD":
        assert status_of(answer, JSON).code == 12


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/octet-stream", "application/xml", "multipart/form-data"]
)
def test_another_media_type_is_not_supported(running: Running, kind: str) -> None:
    answer = running.post("traces", b"{}", kind)

    assert answer.status == 415
    assert status_of(answer, JSON).message


def test_a_media_type_may_have_parameters(running: Running) -> None:
    assert running.post("traces", b"{}", "application/json; charset=utf-8").status == 200


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("coding", "compress"),
    [
        ("gzip", gzip.compress),
        ("X-GZIP", gzip.compress),
        ("deflate", zlib.compress),
        ("zstd", zstandard.compress),
        ("identity", bytes),
    ],
)
def test_body_in_each_content_coding_is_read(
    coding: str, compress: Callable[[bytes], bytes], kind: str
) -> None:
    spans = run_of()
    body = body_of(spans) if kind == PROTOBUF else json.dumps(traces_json(spans)).encode()
    with serving() as running:
        answer = running.post("traces", compress(body), kind, content_encoding=coding)
        running.finalize()

        assert answer.status == 200
        assert running.sum("agent_reliability_runs_total") == 1


def test_another_content_coding_is_refused_and_counted(running: Running) -> None:
    """A client learns at once what is read, and not by a failure to read."""
    before = running.service.intake.requests["traces", "http", "content_encoding"]

    answer = running.post("traces", b"{}", JSON, content_encoding="br")

    assert answer.status == 415
    assert "gzip, deflate or zstd" in status_of(answer, JSON).message
    assert running.service.intake.requests["traces", "http", "content_encoding"] == before + 1


def test_byte_order_mark_before_json_is_skipped() -> None:
    body = b"\xef\xbb\xbf" + json.dumps(traces_json(run_of())).encode()
    with serving() as running:
        answer = running.post("traces", body, JSON)
        running.finalize()

        assert answer.status == 200
        assert running.sum("agent_reliability_runs_total") == 1


TRACES = traces_json(run_of())
LOGS = logs_json([Evaluation("correctness", 0.5, "pass", at(1), trace_id(5), None)])
METRICS: dict[str, Any] = {"resourceMetrics": []}
RESOURCE_SPANS = TRACES["resourceSpans"]


@pytest.mark.parametrize(
    ("signal", "request_", "cause"),
    [
        ("traces", {"hello": 1}, "has no resourceSpans"),
        ("traces", {"resource_spans": RESOURCE_SPANS}, "write resourceSpans"),
        ("traces", LOGS, "send it to /v1/logs"),
        ("traces", METRICS, "send it to /v1/metrics"),
        ("logs", TRACES, "send it to /v1/traces"),
        ("logs", {"resource_logs": []}, "write resourceLogs"),
        ("logs", {"logs": []}, "has no resourceLogs"),
    ],
)
def test_json_without_the_key_of_its_signal_is_refused_with_the_cause(
    running: Running, signal: str, request_: dict[str, Any], cause: str
) -> None:
    before = running.service.intake.requests[signal, "http", "undecodable"]

    answer = running.post(signal, json.dumps(request_).encode(), JSON)

    assert answer.status == 400
    assert cause in status_of(answer, JSON).message
    assert running.service.intake.requests[signal, "http", "undecodable"] == before + 1


@pytest.mark.parametrize("empty", [{}, {"resourceSpans": []}, {"resourceSpans": None}])
def test_empty_json_is_accepted(running: Running, empty: dict[str, Any]) -> None:
    answer = running.post("traces", json.dumps(empty).encode(), JSON)

    assert (answer.status, answer.body) == (200, b"{}")


@pytest.mark.parametrize(
    ("signal", "request_", "rejected"),
    [
        (
            "traces",
            {"resourceSpans": [{other: RESOURCE_SPANS[0]["scopeSpans"]}]},
            "rejectedSpans",
        )
        for other in ("scope_spans", "instrumentationLibrarySpans")
    ]
    + [
        ("logs", {"resourceLogs": [{"scope_logs": []}]}, "rejectedLogRecords"),
        ("logs", {"resourceLogs": [{"scopeLogs": [{"log_records": []}]}]}, "rejectedLogRecords"),
    ],
)
def test_list_under_another_key_is_rejected_with_the_right_one(
    running: Running, signal: str, request_: dict[str, Any], rejected: str
) -> None:
    answer = running.post(signal, json.dumps(request_).encode(), JSON)

    partial = json.loads(answer.body)["partialSuccess"]
    assert partial[rejected] == "1"
    assert "is no key of OTLP-JSON; write " in partial["errorMessage"]


def metrics_protobuf() -> bytes:
    metric = Metric(name="latency", description="seconds")
    scoped = ScopeMetrics(metrics=[metric])
    request = ExportMetricsServiceRequest(
        resource_metrics=[ResourceMetrics(scope_metrics=[scoped])]
    )
    return request.SerializeToString()


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        (body_of(run_of()), "send them to /v1/traces"),
        (body_of([span(1, name="")]), "send them to /v1/traces"),
        (body_of([span(1, name="\x08\x01")]), "send them to /v1/traces"),
        (metrics_protobuf(), "send them to /v1/metrics"),
    ],
    ids=["spans", "a span without a name", "a span whose name is a value", "metrics"],
)
def test_protobuf_of_another_signal_is_no_accepted_nothing(
    running: Running, body: bytes, cause: str
) -> None:
    answer = running.post("logs", body, PROTOBUF)

    assert answer.status == 400
    assert cause in status_of(answer, PROTOBUF).message


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("signal", ["profiles", "nonsense"])
def test_a_signal_that_is_not_taken_is_not_found(running: Running, kind: str, signal: str) -> None:
    """404, in the request's encoding: the client drops it, and does not try again."""
    answer = running.post(signal, b"{}", kind)

    assert answer.status == 404
    assert status_of(answer, kind).code == 12


@pytest.mark.parametrize("path", ["/", "/v1/trace", "/v1/traces/", "/api/traces"])
def test_unknown_path_of_the_receiver_names_the_right_ones(running: Running, path: str) -> None:
    answer = ask(running.url("http", path), body=b"{}", headers={"Content-Type": JSON})

    assert answer.status == 404
    assert "/v1/traces" in status_of(answer, JSON).message
    assert "/v1/traces" not in running.get("ui", path.replace("/", "/none/", 1)).text


def test_json_as_other_senders_write_it() -> None:
    """Ids in upper case, numbers as numbers, unknown keys, another signal's key, and values of a
    wrong type, which are absent.

    All is accepted: a span is malformed for its ids and times only.
    """
    request: Any = traces_json(run_of())
    spans = request["resourceSpans"][0]["scopeSpans"][0]["spans"]
    for one in spans:
        one["traceId"], one["spanId"] = one["traceId"].upper(), one["spanId"].upper()
        one["startTimeUnixNano"], one["endTimeUnixNano"] = (
            int(one["startTimeUnixNano"]),
            int(one["endTimeUnixNano"]),
        )
        one["somethingNew"] = {"deep": [1]}
    spans[1].update({"name": 7, "status": "bad", "events": {"a": 1}, "kind": "CLIENT"})
    with serving() as running:
        answer = running.post(
            "traces", json.dumps({**request, "resourceLogs": 7, "new": 1}).encode(), JSON
        )
        running.finalize()

        assert (answer.status, answer.body) == (200, b"{}")
        assert running.sum("agent_reliability_runs_total") == 1


def test_every_answer_is_counted_by_what_became_of_it(running: Running) -> None:
    before = dict(running.service.intake.requests)
    for signal, body, kind in (
        ("traces", b"", PROTOBUF),
        ("traces", b"\xff", PROTOBUF),
        ("logs", b"{", JSON),
        ("logs", b"", "x/y"),
        ("metrics", b"\xff anything", PROTOBUF),
        ("profiles", b"", PROTOBUF),
    ):
        running.post(signal, body, kind)
    after = running.service.intake.requests
    new = {
        key: number - before.get(key, 0)
        for key, number in after.items()
        if number != before.get(key, 0)
    }

    assert new == {
        ("traces", "http", "accepted"): 1,
        ("traces", "http", "undecodable"): 1,
        ("logs", "http", "undecodable"): 1,
        ("logs", "http", "content_type"): 1,
        ("metrics", "http", "discarded"): 1,
        ("", "http", "unknown_signal"): 1,
    }
