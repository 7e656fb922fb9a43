from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benchmarks import serving

BURN = "import subprocess, sys, time\nwhile time.process_time() < 0.3: pass\n"
CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BURN!r}]); input()"


class Door(BaseHTTPRequestHandler):
    """Takes everything but what is called bad."""

    protocol_version = "HTTP/1.1"
    taken: list[tuple[object, bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.taken.append((self.client_address, body))
        self.send_response(503 if body == b"bad" else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Nobody reads it."""


@contextmanager
def door() -> Generator[tuple[str, list[tuple[object, bytes]]]]:
    """A server's address, and what it has taken from whom."""
    Door.taken = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", Door.taken
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_each_request_is_sent_once_over_connections_that_stay() -> None:
    """As many connections as clients, not as requests."""
    bodies = [str(number).encode() for number in range(40)]
    with door() as (place, taken):
        serving.send(place, bodies, 3)

    assert sorted(body for _, body in taken) == sorted(bodies)
    assert len({client for client, _ in taken}) <= 3


def test_a_request_that_is_not_taken_ends_the_measurement() -> None:
    """Else a row would tell of less work than it says."""
    with door() as (place, _), pytest.raises(serving.Refused, match="503"):
        serving.send(place, [b"good", b"bad"], 1)


def test_cpu_of_children_counts() -> None:
    """Also of those that have ended."""
    command = [sys.executable, "-c", CHILD]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        found, until = 0.0, time.monotonic() + 30
        while (
            found < 0.3 and time.monotonic() < until
        ):  # a child that ends between two looks is in neither for a moment
            time.sleep(0.05)
            found = serving.cpu(process.pid)
        process.communicate(b"\n")

    assert found >= 0.3


def test_resident_memory_is_that_of_the_process() -> None:
    """In bytes."""
    assert 5_000_000 < serving.resident(os.getpid()) < 5_000_000_000
