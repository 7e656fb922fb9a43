"""Malformed openings of HTTP and gRPC: no byte of theirs is logged, and nothing is lost to them."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, cast

import grpc
import pytest

from tests.real.web import ask
from tests.service.openings import CANARY, openings
from tests.service.running import PROTOBUF, body_of, run_of
from tests.service.served import Served, Services

MEGABYTE = 1024 * 1024
WARM_UP = 1_000
GARBAGE = 25 * MEGABYTE
"""Limit of what a service adds to its memory while it becomes warm. Measured: 13 MB."""
FLAT_AFTER = 8
"""Rounds of openings after which memory does not grow by more than a tenth."""
FLAT = 1.1
BEGUN_LATER = 8
"""Threads that our pools and gRPC begin when they need one. Were an opening to lose one, there would
be thousands.
"""


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(2_000, id="2000"),
        pytest.param(20_000, id="20000", marks=pytest.mark.real),
        pytest.param(100_000, id="100000", marks=pytest.mark.soak),
    ],
)
def test_malformed_openings_harm_nobody(serve: Services, number: int) -> None:
    served = serve("--log-level", "debug")
    for seed in range(2):
        open_all(served, seed, WARM_UP)
    threads = threads_of(served)
    memory = [served.resident()]

    for seed in range(2, 2 + number // WARM_UP):
        open_all(served, seed, WARM_UP)
        body = body_of(run_of(seed))
        headers = {"Content-Type": PROTOBUF}
        assert ask(f"{served.http}/v1/traces", body=body, headers=headers).status == 200
        assert ask(f"{served.pages}/readyz").status == 200
        memory.append(served.resident())

    assert threads_of(served) <= threads + BEGUN_LATER
    assert memory[-1] - memory[0] < GARBAGE
    assert all(later < FLAT * memory[FLAT_AFTER] for later in memory[FLAT_AFTER + 1 :])
    log = served.log.read_text(errors="replace")
    assert CANARY not in log
    assert "Traceback" not in log
    assert len(log) < MEGABYTE
    assert served.sum("otel_reliability_requests_total", outcome="not_http") > number / 10


@pytest.mark.parametrize(
    ("endpoint", "number", "limit"),
    [
        ("http", 1_000, 30 * MEGABYTE),
        ("unknown path", 1_000, 15 * MEGABYTE),
        ("grpc", 2_000, 30 * MEGABYTE),
    ],
    ids=["http", "unknown path", "grpc"],
)
def test_large_openings_are_not_kept(
    serve: Services, endpoint: str, number: int, limit: int
) -> None:
    """A connection or call that a library keeps until cycles are collected keeps its bytes."""
    served = serve()
    send = {"http": send_garbage, "unknown path": ask_for_nothing, "grpc": call_nothing}[endpoint]
    send(served, 100)
    before = served.resident()
    send(served, number)

    assert served.resident() - before < limit


def send_garbage(served: Served, number: int) -> None:
    """Send what no parser takes, each on a connection of its own."""
    host, _, port = served.http.removeprefix("http://").rpartition(":")
    for _ in range(number):
        with connected(host, int(port)) as client, suppress(OSError):
            client.sendall(b"\x00" * 60_000)
            client.shutdown(socket.SHUT_WR)
            while client.recv(65_536):
                pass


def ask_for_nothing(served: Served, number: int) -> None:
    """Ask for paths that do not exist, with long headers, on one connection."""
    client = HTTPConnection(served.http.removeprefix("http://"))
    for _ in range(number):
        client.request("GET", "/nothing", headers={f"x-{name}": "x" * 6_000 for name in range(5)})
        assert client.getresponse().read()
    client.close()


def call_nothing(served: Served, number: int) -> None:
    """Call methods that do not exist, with metadata as large as it may be."""
    with grpc.insecure_channel(served.grpc) as channel:
        for _ in range(number):
            call: Any = cast("Any", channel).unary_unary("/nothing/Export")
            with pytest.raises(grpc.RpcError):
                call(b"", metadata=[("x", "x" * 7_000)])


def open_all(served: Served, seed: int, number: int) -> None:
    """Send openings, each on a connection that is closed at once or half closed first."""
    addresses = {"http": served.http.removeprefix("http://"), "grpc": served.grpc}
    for index, (endpoint, opening) in enumerate(openings(seed, number)):
        host, _, port = addresses[endpoint].rpartition(":")
        with connected(host, int(port)) as client:
            with suppress(OSError):
                client.sendall(opening)
                if index % 5 == 0:
                    client.shutdown(socket.SHUT_WR)
            if index % 5 == 0 and endpoint == "http":
                with suppress(OSError):
                    while client.recv(65_536):
                        pass


def connected(host: str, port: int) -> socket.socket:
    """Return a connection. The gRPC endpoint may be closed for a moment: it is opened again."""
    for _ in range(250):
        with suppress(ConnectionError):
            return socket.create_connection((host, port), timeout=10)
        time.sleep(0.02)
    raise ConnectionRefusedError


def threads_of(served: Served) -> int:
    return len(list(Path(f"/proc/{served.pid}/task").iterdir()))
