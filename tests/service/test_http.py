from __future__ import annotations

import gc
import gzip
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict, Parse
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from otel_reliability.model.span import Evaluation
from otel_reliability.service.http import _Submission
from otel_reliability.sources.otlp_write import logs_json, traces_json
from otel_reliability.testing import at, span, trace_id
from tests.real.waiting import until
from tests.real.web import Answer, ask
from tests.service.logs import logs_protobuf
from tests.service.running import JSON, PROTOBUF, Running, body_of, run_of, runs_of, serving

KINDS = (PROTOBUF, JSON)
PACKED = {"plain": {}, "gzip": {"content_encoding": "gzip"}}


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    """One service for all rules that leave no trace behind."""
    with serving(max_request=100_000, queue=200_000) as found:
        yield found


def written(spans: Any, kind: str, packing: str = "plain") -> bytes:
    """A request in an encoding, packed or not."""
    body = body_of(spans) if kind == PROTOBUF else json.dumps(traces_json(spans)).encode()
    return gzip.compress(body) if packing == "gzip" else body


def status_of(answer: Answer, kind: str) -> Status:
    """The `google.rpc.Status` of an answer, which must be in the encoding of its request."""
    assert answer.headers["Content-Type"].partition(";")[0] == kind
    if kind == JSON:
        return Parse(answer.body, Status())
    return Status.FromString(answer.body)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("packing", PACKED)
def test_spans_are_taken_in_every_encoding(kind: str, packing: str) -> None:
    """Protobuf and JSON, packed or not: full success, `partial_success` unset, and the run is there."""
    with serving() as running:
        answer = running.post("traces", written(runs_of(5), kind, packing), kind, **PACKED[packing])
        running.finalize()

        assert (answer.status, answer.headers["Content-Type"].partition(";")[0]) == (200, kind)
        assert answer.body == (b"{}" if kind == JSON else b"")
        assert running.sum("agent_reliability_runs_total", gen_ai_agent_name="support") == 5
        assert running.sum("otel_reliability_spans_total", disposition="used") == 10


@pytest.mark.parametrize(("kind", "body"), [(PROTOBUF, b""), (JSON, b"{}"), (JSON, b'{"resourceSpans": []}')])
@pytest.mark.parametrize("signal", ["traces", "logs"])
def test_an_empty_request_is_a_success(running: Running, signal: str, kind: str, body: bytes) -> None:
    """Nothing to take is nothing to refuse."""
    answer = running.post(signal, body, kind)

    assert (answer.status, answer.body) == (200, b"{}" if kind == JSON else b"")


@pytest.mark.parametrize("kind", KINDS)
def test_one_malformed_span_is_refused_and_its_batch_lives(kind: str) -> None:
    """The answer is a success that counts and names what was refused."""
    broken = span(9, 1, trace=1)._replace(span_id=b"\1\2")
    with serving() as running:
        answer = running.post("traces", written([*run_of(), broken], kind), kind)
        told = ExportTraceServiceResponse()
        told = Parse(answer.body, told) if kind == JSON else ExportTraceServiceResponse.FromString(answer.body)
        running.finalize()

        assert answer.status == 200
        assert told.partial_success.rejected_spans == 1
        assert "span_id" in told.partial_success.error_message
        assert running.sum("otel_reliability_spans_total", disposition="malformed", reason="span_id") == 1
        assert running.sum("agent_reliability_runs_total") == 1


def test_json_counts_what_it_refused_as_a_text() -> None:
    """64-bit numbers are strings in OTLP-JSON, and unset fields are left out."""
    broken = span(9, trace=1)._replace(trace_id=bytes(16))
    with serving() as running:
        answer = running.post("traces", written([broken], JSON), JSON)

    assert json.loads(answer.body)["partialSuccess"]["rejectedSpans"] == "1"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("packing", PACKED)
def test_a_body_beyond_the_limit_is_too_large(running: Running, kind: str, packing: str) -> None:
    """413, for good: no `Retry-After`. Packed bodies count as they unpack."""
    body = b" " * 100_001 if kind == JSON else b"\x0a" * 100_001
    answer = running.post("traces", gzip.compress(body) if packing == "gzip" else body, kind, **PACKED[packing])

    assert answer.status == 413
    assert status_of(answer, kind).code == 8
    assert answer.headers["Retry-After"] is None


def test_a_body_of_unknown_length_is_too_large_as_soon_as_it_is(running: Running) -> None:
    """Without a length the body is counted as it comes, and the rest is not waited for."""
    place = running.service.addresses["http"]
    with socket.create_connection((place.host, place.port)) as client:
        client.sendall(
            b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
            b"Content-Type: application/x-protobuf\r\n\r\n"
        )
        client.sendall(b"10000\r\n" + b"\x0a" * 0x10000 + b"\r\n" + b"10000\r\n" + b"\x0a" * 0x10000 + b"\r\n")
        said = client.recv(4096)

    assert b" 413 " in said.partition(b"\r\n")[0]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (PROTOBUF, b"\xff\xff"),
        (PROTOBUF, body_of(run_of())[:-1]),
        (JSON, b"{"),
        (JSON, b"[]"),
        (JSON, b'"text"'),
        (JSON, b"[" * 50_000),
        (JSON, b"\xff"),
    ],
    ids=["garbage", "cut off", "half an object", "a list", "a text", "deep", "not UTF-8"],
)
def test_a_body_that_cannot_be_read_is_a_bad_request(running: Running, kind: str, body: bytes) -> None:
    """400, for good, in the encoding the client said it wrote."""
    answer = running.post("traces", body, kind)

    assert answer.status == 400
    assert status_of(answer, kind).code == 3


@pytest.mark.parametrize(
    ("kind", "body"),
    [(PROTOBUF, b"\xff\xff"), (PROTOBUF, b"\xff\xff" + bytes(50_000)), (JSON, b"{" + bytes(50_000))],
    ids=["small", "large", "json"],
)
def test_a_refused_body_is_let_go_at_once(running: Running, kind: str, body: bytes) -> None:
    """Not only when somebody looks for circles of objects, which may be thousands of bodies later."""
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            assert running.post("traces", body, kind).status == 400
        until(
            lambda: not any(isinstance(one, _Submission) for one in gc.get_objects()), "the bodies to go", patience=10
        )
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "body", [b"not gzip", gzip.compress(b"{}")[:-3], b"\x1f\x8b"], ids=["other", "cut off", "begun"]
)
def test_damaged_gzip_is_a_bad_request(running: Running, body: bytes) -> None:
    """What is said to be packed and is not cannot be read."""
    assert running.post("traces", body, JSON, content_encoding="gzip").status == 400


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD", "OPTIONS"])
def test_another_method_is_not_allowed(running: Running, method: str) -> None:
    """405, and which one is."""
    answer = ask(running.url("http", "/v1/traces"), method=method)

    assert (answer.status, answer.headers["Allow"]) == (405, "POST")
    if method != "HEAD":
        assert status_of(answer, JSON).code == 12


@pytest.mark.parametrize("kind", ["text/plain", "application/octet-stream", "application/xml", "multipart/form-data"])
def test_another_media_type_is_not_supported(running: Running, kind: str) -> None:
    """415; where the encoding of the request is unknown, the status is JSON."""
    answer = running.post("traces", b"{}", kind)

    assert answer.status == 415
    assert status_of(answer, JSON).message


def test_a_media_type_may_have_parameters(running: Running) -> None:
    """`application/json; charset=utf-8` is JSON."""
    assert running.post("traces", b"{}", "application/json; charset=utf-8").status == 200


def test_another_packing_is_not_supported(running: Running) -> None:
    """Only gzip is a must; of others a client learns at once, and not by a failure to read."""
    answer = running.post("traces", b"{}", JSON, content_encoding="br")

    assert answer.status == 415
    assert "gzip" in status_of(answer, JSON).message


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("signal", ["profiles", "nonsense"])
def test_a_signal_that_is_not_taken_is_not_found(running: Running, kind: str, signal: str) -> None:
    """404, in the request's encoding: the client drops it, and does not try again."""
    answer = running.post(signal, b"{}", kind)

    assert answer.status == 404
    assert status_of(answer, kind).code == 12


@pytest.mark.parametrize("kind", KINDS)
def test_overload_is_told_before_anything_is_read(kind: str) -> None:
    """503 with `Retry-After` and the same delay in the status, even for a body that nobody could read."""
    with serving() as running:
        with running.service.intake.budget.reserve(running.service.intake.budget.capacity):
            answer = running.post("traces", b"\xff not read", kind)
        after = running.post("traces", b"" if kind == PROTOBUF else b"{}", kind)
        running.finalize()

        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        assert status_of(answer, kind).code == 14
        details = MessageToDict(status_of(answer, kind))["details"][0]
        assert details["@type"].endswith("google.rpc.RetryInfo")
        assert details["retryDelay"] == "1s"
        assert after.status == 200
        assert running.sum("otel_reliability_requests_total", outcome="queue_full") == 1


def test_what_does_not_fit_the_queue_is_to_come_again() -> None:
    """Room is taken for what a body unpacks to: a packed one may fit and what is in it not."""
    body = gzip.compress(body_of(runs_of(250)))
    with serving(queue=100_000, max_request=100_000) as running, running.service.intake.budget.reserve(90_000):
        answer = running.post("traces", body, content_encoding="gzip")

        assert len(body) < 10_000
        assert answer.status == 503
        assert running.service.intake.budget.used == 90_000


def test_values_of_a_wrong_type_are_absent_not_malformed() -> None:
    """A span is malformed for its ids and times only."""
    request: Any = traces_json(run_of())
    told = request["resourceSpans"][0]["scopeSpans"][0]["spans"][1]
    told["name"], told["status"], told["events"], told["kind"] = 7, "bad", {"a": 1}, "CLIENT"
    with serving() as running:
        answer = running.post("traces", json.dumps(request).encode(), JSON)
        running.finalize()

        assert (answer.status, answer.body) == (200, b"{}")
        assert running.sum("agent_reliability_runs_total") == 1


def test_json_as_other_senders_write_it() -> None:
    """Ids in upper case, numbers as numbers, unknown keys, another signal's key: all is taken, and nothing complained of."""
    request: Any = traces_json(run_of())
    for told in request["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        told["traceId"], told["spanId"] = told["traceId"].upper(), told["spanId"].upper()
        told["startTimeUnixNano"], told["endTimeUnixNano"] = (
            int(told["startTimeUnixNano"]),
            int(told["endTimeUnixNano"]),
        )
        told["somethingNew"] = {"deep": [1]}
    with serving() as running:
        answer = running.post("traces", json.dumps({**request, "resourceLogs": 7, "new": 1}).encode(), JSON)
        running.finalize()

        assert (answer.status, answer.body) == (200, b"{}")
        assert running.sum("agent_reliability_runs_total") == 1


@pytest.mark.parametrize("kind", KINDS)
def test_evaluations_come_as_logs(kind: str) -> None:
    """`/v1/logs` joins judgements to their runs; other log records are counted; a nameless judgement is refused."""
    good = Evaluation("correctness", 1.0, "pass", at(1), trace_id(1), None)
    nameless = Evaluation("", 1.0, None, at(1), trace_id(1), None)
    request = logs_json([good, nameless])
    with serving() as running:
        running.post("traces", body_of(run_of()))
        if kind == JSON:
            answer = running.post("logs", json.dumps(request).encode(), JSON)
            told = Parse(answer.body, ExportLogsServiceResponse())
        else:
            answer = running.post("logs", logs_protobuf([good, nameless]))
            told = ExportLogsServiceResponse.FromString(answer.body)
        running.finalize()

        assert answer.status == 200
        assert told.partial_success.rejected_log_records == 1
        assert running.sum("agent_reliability_runs_total", outcome="success") == 1
        assert running.sum("otel_reliability_log_records_total", disposition="malformed", reason="evaluation") == 1


def test_every_answer_is_counted_by_what_became_of_it(running: Running) -> None:
    """Requests by signal and outcome, refusals by their reason, from the wrong door on."""
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
    new = {key: number - before.get(key, 0) for key, number in after.items() if number != before.get(key, 0)}

    assert new == {
        ("traces", "http", "accepted"): 1,
        ("traces", "http", "undecodable"): 1,
        ("logs", "http", "undecodable"): 1,
        ("logs", "http", "content_type"): 1,
        ("metrics", "http", "discarded"): 1,
        ("", "http", "unknown_signal"): 1,
    }
