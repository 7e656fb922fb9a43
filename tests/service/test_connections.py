"""Clients that open connections or calls and send little or nothing: others are served."""

from __future__ import annotations

import contextlib
import resource
import socket
import struct
import time
from collections.abc import Generator, Iterator

import pytest

from otel_reliability.service import connections
from otel_reliability.service import grpc as receiver
from otel_reliability.service.answers import Refused
from otel_reliability.service.connections import MAX_CONNECTIONS
from otel_reliability.service.grpc import Calls
from tests.real.waiting import until
from tests.real.web import ask
from tests.service.running import EXPORT_TRACES, HEALTH, body_of, run_of, serving
from tests.service.served import Services
from tests.service.test_stalled_calls import SERVING, stalled

HEADERS = b"POST /v1/traces HTTP/1.1\r\nHost: x\r\n"
BODY = HEADERS + b"Content-Type: application/x-protobuf\r\nContent-Length: 100\r\n\r\n\x0a"


@pytest.fixture
def _many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextlib.contextmanager
def opened(address: tuple[str, int], number: int, sent: bytes) -> Generator[list[socket.socket]]:
    """Connections that have sent something, or nothing, and wait."""
    with contextlib.ExitStack() as stack:
        found: list[socket.socket] = []
        for _ in range(number):
            client = stack.enter_context(socket.create_connection(address, timeout=20))
            client.sendall(sent)
            found.append(client)
        yield found


def is_closed(client: socket.socket) -> bool:
    """Return whether the server has closed the connection."""
    client.setblocking(False)
    try:
        while client.recv(4_096):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    return True


@pytest.mark.usefixtures("_many_files")
@pytest.mark.parametrize("sent", [b"", HEADERS, BODY], ids=["silent", "headers", "body"])
def test_clients_that_wait_keep_no_other_out(serve: Services, sent: bytes) -> None:
    served = serve()
    host, port = served.http.removeprefix("http://").split(":")
    with opened((host, int(port)), MAX_CONNECTIONS + 200, sent) as clients:
        begun = time.monotonic()
        for _ in range(5):
            assert ask(f"{served.pages}/readyz", timeout=5).status == 200
            assert ask(f"{served.http}/v1/traces", body=b"", headers=PROTOBUF).status == 200
        took = time.monotonic() - begun
        closed = sum(map(is_closed, clients))

        assert took < 3
        assert closed >= 200
        assert served.sum("otel_reliability_requests_total", outcome="connections") >= 200
    assert served.log.stat().st_size < 10_000


PROTOBUF = {"Content-Type": "application/x-protobuf"}


def test_headers_have_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_TIMEOUT", 0.3)
    with serving() as running:
        place = running.service.addresses["http"]
        with opened((place.host, place.port), 250, HEADERS) as clients:
            until(lambda: all(map(is_closed, clients)), "all connections to be closed", patience=5)

        assert running.sum("otel_reliability_requests_total", outcome="slow") == 250


def test_headers_that_drip_have_the_same_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_TIMEOUT", 0.3)
    with serving() as running:
        place = running.service.addresses["http"]
        with opened((place.host, place.port), 1, HEADERS) as (client,):
            begun = time.monotonic()
            answer = b""
            client.settimeout(0.05)
            while not answer and time.monotonic() < begun + 5:
                client.sendall(b"x: y\r\n")
                with contextlib.suppress(TimeoutError):
                    answer = client.recv(4_096)

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert time.monotonic() < begun + 3


def test_slow_body_outlives_the_deadline_of_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_TIMEOUT", 0.2)
    body = body_of(run_of())
    head = HEADERS + f"Content-Type: application/x-protobuf\r\nContent-Length: {len(body)}".encode()
    with serving() as running:
        place = running.service.addresses["http"]
        with opened((place.host, place.port), 1, head + b"\r\n\r\n") as (client,):
            for number in range(4):
                time.sleep(0.15)
                client.sendall(body[number * 10 : number * 10 + 10])
            client.sendall(body[40:])

            assert client.recv(4_096).startswith(b"HTTP/1.1 200 ")


def test_connection_is_used_for_several_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_TIMEOUT", 0.3)
    body = body_of(run_of())
    head = HEADERS + f"Content-Type: application/x-protobuf\r\nContent-Length: {len(body)}".encode()
    with serving() as running:
        place = running.service.addresses["http"]
        with opened((place.host, place.port), 1, b"") as (client,):
            for _ in range(3):
                time.sleep(0.4)
                client.sendall(head + b"\r\n\r\n" + body)
                assert client.recv(4_096).startswith(b"HTTP/1.1 200 ")


def test_busy_connection_is_not_closed_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 5)
    with serving() as running:
        place = running.service.addresses["ui"]
        with (
            opened((place.host, place.port), 1, b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"),
            opened((place.host, place.port), 20, b""),
        ):
            assert running.get("ui", "/readyz").status == 200


@pytest.mark.parametrize("method", [EXPORT_TRACES, HEALTH])
def test_stalled_calls_of_many_connections_fill_no_limit(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver, "MAX_CALLS", 200)
    monkeypatch.setattr(receiver, "MAX_CHECKS", 200)
    with serving() as running, stalled(running, method, 100, connections=5):
        assert running.call(b"", HEALTH) == SERVING
        if method == HEALTH:
            assert running.call(body_of(run_of())) == b""
        else:
            refused = running.service.intake.requests["traces", "grpc", "too_many_calls"]
            assert refused == 400  # one client has half of the limit


def test_calls_of_one_client_leave_room_for_others() -> None:
    calls = Calls(100)

    def taken(client: str) -> int:
        number = 0
        with contextlib.suppress(Refused):
            while True:
                stack.enter_context(calls.of(client))
                number += 1
        return number

    with contextlib.ExitStack() as stack:
        assert [taken(client) for client in "abcd"] == [50, 25, 13, 6]
    with contextlib.ExitStack() as stack:
        assert taken("a") == 50


def test_call_whose_method_is_no_text_ends_no_endpoint() -> None:
    call = (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        + _frame(4, 0, 0, b"")
        + _frame(
            1,
            4,
            1,
            b"".join(
                b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value
                for name, value in (
                    (b":method", b"POST"),
                    (b":scheme", b"http"),
                    (b":authority", b"a"),
                    (b":path", b"/gr\xd9c.health.v1.Health/Check"),
                    (b"te", b"trailers"),
                    (b"content-type", b"application/grpc"),
                )
            ),
        )
    )
    with serving() as running:
        place = running.service.addresses["grpc"]
        for number in range(1, 6):
            with opened((place.host, place.port), 1, call):
                until(
                    lambda number=number: (
                        running.service.intake.requests["", "grpc", "not_grpc"] == number
                    ),
                    "the call to be counted",
                )
            assert running.call(b"", HEALTH, wait_for_ready=True) == SERVING
            assert running.call(body_of(run_of()), wait_for_ready=True) == b""


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def test_grpc_library_logs_nothing_of_its_own(serve: Services) -> None:
    served = serve()
    fields = {
        b":method": b"POST",
        b":scheme": b"http",
        b":authority": b"a",
        b":path": EXPORT_TRACES.encode(),
        b"te": b"trailers",
        b"content-type": b"application/grpc",
        b"grpc-encoding": b"zstd",
    }
    block = b"".join(
        bytes([0, len(name)]) + name + bytes([len(value)]) + value for name, value in fields.items()
    )
    opening = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(4, 0, 0, b"") + _frame(1, 4, 1, block)
    host, _, port = served.grpc.rpartition(":")
    for _ in range(3):
        with socket.create_connection((host, int(port)), timeout=10) as client:
            client.sendall(opening)
            answer = b""
            while b"grpc-encoding" not in answer:
                answer += client.recv(65_536)

    assert "grpc-encoding" not in served.log.read_text()
