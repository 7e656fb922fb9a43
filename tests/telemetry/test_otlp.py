from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from otel_reliability.telemetry import otlp
from otel_reliability.telemetry.otlp import ACCEPTED, Answer, Sender, Target, sender_of
from tests.real.waiting import until
from tests.service.certificates import Authority
from tests.telemetry.receivers import over_grpc, over_http

BODY = b"a request" * 100
IN_3_S = {"google.rpc.retryinfo-bin": RetryInfo(retry_delay=Duration(seconds=3)).SerializeToString()}


def within_status(code: grpc.StatusCode, *details: Message) -> dict[str, bytes]:
    """The same, as servers in Go tell it: within the status."""
    status = Status(code=cast("Any", code).value[0])
    for detail in details:
        status.details.add().Pack(detail)
    return {"grpc-status-details-bin": status.SerializeToString()}


FULL, AWAY = grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE
IN_2_S = RetryInfo(retry_delay=Duration(seconds=2))


def nowhere() -> str:
    """An address that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


def once(sender: Sender) -> Answer:
    """Send one request, and nothing more."""
    try:
        return sender.send(BODY, 5)
    finally:
        sender.close()


@pytest.mark.parametrize("compression", ["gzip", "none"])
def test_http_sends_protobuf_to_the_signal_s_path(compression: str) -> None:
    """To /v1/metrics unless the endpoint has a path of its own; packed and with the headers that were asked for."""
    headers = {"Authorization": "Bearer secret"}
    with over_http() as receiver:
        base = Target(receiver.url, "http/protobuf", headers, "gzip" if compression == "gzip" else "none")
        answer = once(sender_of(base, "metrics"))
        once(sender_of(Target(receiver.url + "/api/v1/otlp/v1/metrics", "http/protobuf"), "metrics"))
        once(sender_of(Target(receiver.url + "/", "http/protobuf"), "logs"))
    first, own_path, logs = receiver.came

    assert answer == ACCEPTED
    assert (first.path, first.body, first.headers["content-type"]) == ("/v1/metrics", BODY, "application/x-protobuf")
    assert first.headers["authorization"] == "Bearer secret"
    assert first.headers.get("content-encoding") == ("gzip" if compression == "gzip" else None)
    assert (own_path.path, logs.path) == ("/api/v1/otlp/v1/metrics", "/v1/logs")


@pytest.mark.parametrize(
    ("status", "headers", "answer"),
    [
        (200, {}, ACCEPTED),
        (202, {}, ACCEPTED),
        (503, {"Retry-After": "7"}, Answer(False, "http_503", 7.0)),
        (429, {}, Answer(False, "http_429", 0.0)),
        (502, {"Retry-After": "soon"}, Answer(False, "http_502", 0.0)),
        (504, {}, Answer(False, "http_504", 0.0)),
        (400, {"Retry-After": "7"}, Answer(False, "http_400")),
        (401, {}, Answer(False, "http_401")),
        (413, {}, Answer(False, "http_413")),
        (500, {}, Answer(False, "http_500")),
    ],
)
def test_http_answers_are_read_as_specified(status: int, headers: Mapping[str, str], answer: Answer) -> None:
    """Only 429, 502, 503 and 504 may be tried again, after the time that is told."""
    with over_http() as receiver:
        receiver.answers.append((status, headers))
        assert once(sender_of(Target(receiver.url, "http/protobuf"), "metrics")) == answer


def test_http_keeps_its_connection_and_notices_that_it_was_closed() -> None:
    """Requests share a connection; one that the receiver has closed meanwhile is opened anew, without a failure."""
    with over_http() as receiver:
        sender = sender_of(Target(receiver.url, "http/protobuf"), "metrics")
        receiver.answers.extend([(200, {}), (200, {"Connection": "close"})])
        answers = [sender.send(BODY) for _ in range(4)]
        sender.close()

    assert answers == [ACCEPTED] * 4
    assert len(receiver.came) == 4


@pytest.mark.parametrize("compression", ["gzip", "none"])
def test_grpc_calls_the_signal_s_service(compression: str) -> None:
    """With metadata in lower case, as gRPC asks; packed or not."""
    with over_grpc() as receiver:
        target = Target(receiver.url, "grpc", {"X-Token": "secret"}, "gzip" if compression == "gzip" else "none")
        answers = [once(sender_of(target, "metrics")), once(sender_of(target, "logs"))]
    metrics, logs = receiver.came

    assert answers == [ACCEPTED, ACCEPTED]
    assert metrics.path == "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
    assert logs.path == "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
    assert (metrics.body, metrics.headers["x-token"]) == (BODY, "secret")


@pytest.mark.parametrize(
    ("code", "trailing", "answer"),
    [
        (grpc.StatusCode.UNAVAILABLE, IN_3_S, Answer(False, "unavailable", 3.0)),
        (grpc.StatusCode.UNAVAILABLE, {}, Answer(False, "unavailable", 0.0)),
        (grpc.StatusCode.ABORTED, {}, Answer(False, "aborted", 0.0)),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, IN_3_S, Answer(False, "resource_exhausted", 3.0)),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, {}, Answer(False, "resource_exhausted")),
        (grpc.StatusCode.INVALID_ARGUMENT, IN_3_S, Answer(False, "invalid_argument")),
        (grpc.StatusCode.UNAUTHENTICATED, {}, Answer(False, "unauthenticated")),
        (grpc.StatusCode.UNAVAILABLE, {"google.rpc.retryinfo-bin": b"\xff"}, Answer(False, "unavailable", 0.0)),
        (AWAY, within_status(AWAY, IN_2_S), Answer(False, "unavailable", 2.0)),
        (FULL, within_status(FULL, Duration(seconds=9), IN_2_S), Answer(False, "resource_exhausted", 2.0)),
        (FULL, within_status(FULL, IN_2_S) | IN_3_S, Answer(False, "resource_exhausted", 2.0)),
        (FULL, within_status(FULL) | IN_3_S, Answer(False, "resource_exhausted", 3.0)),
        (FULL, within_status(FULL, Duration(seconds=9)), Answer(False, "resource_exhausted")),
        (AWAY, {"grpc-status-details-bin": b"\xff"}, Answer(False, "unavailable", 0.0)),
    ],
)
def test_grpc_answers_are_read_as_specified(
    code: grpc.StatusCode, trailing: Mapping[str, bytes], answer: Answer
) -> None:
    """RESOURCE_EXHAUSTED may be tried again only where it is told when."""
    with over_grpc() as receiver:
        receiver.answers.append((code, trailing))
        assert once(sender_of(Target(receiver.url), "metrics")) == answer


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_a_receiver_that_is_not_there_is_an_answer(protocol: str) -> None:
    """Nothing is raised; it may be tried again."""
    target = Target(nowhere(), "grpc" if protocol == "grpc" else "http/protobuf")
    answer = once(sender_of(target, "metrics"))

    assert not answer.taken
    assert answer.retry_after == 0.0


def test_a_receiver_that_comes_back_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the time that is said here, not that of the library, which doubles it up to two minutes."""
    monkeypatch.setattr(otlp, "RECONNECT", 200)
    url, end = nowhere(), time.monotonic() + 3.0
    sender = sender_of(Target(url), "metrics")
    while time.monotonic() < end:
        assert not sender.send(BODY).taken
        time.sleep(0.05)
    with over_grpc(port=int(url.rpartition(":")[2])):
        back = time.monotonic()
        until(lambda: sender.send(BODY).taken, "the receiver to be found")
        found = time.monotonic() - back
    sender.close()

    assert found < 1.5


def test_a_receiver_that_never_answers_is_not_waited_for() -> None:
    """After the timeout it may be tried again."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        sender = sender_of(Target(url, "http/protobuf"), "metrics")
        answer = sender.send(BODY, 0.1)
        sender.close()

    assert answer == Answer(False, "timeout", 0.0)


def test_headers_are_not_shown() -> None:
    """They may hold a token."""
    assert "secret" not in repr(Target("http://x:1", headers={"authorization": "secret"}))


def test_https_asks_for_a_certificate_and_shows_one(tmp_path: Path) -> None:
    """Only a receiver whose signer is trusted is sent anything; where it asks who we are, it is told."""
    ours, theirs = Authority(tmp_path, "ours"), Authority(tmp_path, "theirs")
    server, client = ours.issue("server"), ours.issue("client")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(ours.certificate))
    context.load_cert_chain(server.certificate, server.key)
    context.verify_mode = ssl.CERT_REQUIRED
    told: dict[str, Any] = {"certificate": str(client.certificate), "key": str(client.key)}
    with over_http(context) as receiver:
        trusting = Target(receiver.url, "http/protobuf", ca=str(ours.certificate), **told)
        answers = [
            once(sender_of(target, "metrics"))
            for target in (trusting, replace(trusting, ca=str(theirs.certificate)), replace(trusting, ca=None))
        ]

    assert [answer.taken for answer in answers] == [True, False, False]
    assert len(receiver.came) == 1


def test_grpc_over_tls_asks_for_a_certificate_and_shows_one(tmp_path: Path) -> None:
    """The same by gRPC."""
    ours, theirs = Authority(tmp_path, "ours"), Authority(tmp_path, "theirs")
    server, client = ours.issue("server"), ours.issue("client")
    pair = (server.key.read_bytes(), server.certificate.read_bytes())
    credentials = cast("Any", grpc).ssl_server_credentials([pair], ours.certificate.read_bytes(), True)
    told: dict[str, Any] = {"certificate": str(client.certificate), "key": str(client.key)}
    with over_grpc(credentials) as receiver:
        trusting = Target(receiver.url, ca=str(ours.certificate), **told)
        nameless = replace(trusting, certificate=None, key=None)
        answers = [
            once(sender_of(target, "metrics"))
            for target in (trusting, replace(trusting, ca=str(theirs.certificate)), nameless)
        ]

    assert [answer.taken for answer in answers] == [True, False, False]
    assert len(receiver.came) == 1
