from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benchmarks import serving

BURN = "import sys, time\nwhile time.process_time() < 0.3: pass\n"
CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BURN!r}]); input()"


class Endpoint(BaseHTTPRequestHandler):
    """Answers 400 to `bad`, 503 to the first `busy`, else 200."""

    protocol_version = "HTTP/1.1"
    received: list[tuple[object, bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        first = (self.client_address, body) not in self.received
        self.received.append((self.client_address, body))
        self.send_response({b"bad": 400, b"busy": 503 if first else 200}.get(body, 200))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Log nothing."""


@contextmanager
def endpoint() -> Generator[tuple[str, list[tuple[object, bytes]]]]:
    """Return a server's address, and what it receives from whom."""
    Endpoint.received = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", Endpoint.received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_each_request_is_sent_once_over_few_connections() -> None:
    bodies = [*(str(number).encode() for number in range(40)), b"busy"]
    with endpoint() as (address, received):
        serving.send(address, bodies)

    assert sorted(body for _, body in received) == sorted([*bodies, b"busy"])
    assert len({client for client, _ in received}) <= serving.CONNECTIONS


def test_a_rejected_request_ends_the_measurement() -> None:
    """Otherwise a row would report the cost of less work than it names."""
    with endpoint() as (address, _), pytest.raises(serving.Rejected, match="400"):
        serving.send(address, [b"good", b"bad"])


def test_cpu_of_children_counts() -> None:
    command = [sys.executable, "-c", CHILD]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        found, deadline = 0.0, time.monotonic() + 30
        while found < 0.3 and time.monotonic() < deadline:
            time.sleep(0.05)
            found = serving.cpu(process.pid)
        process.communicate(b"\n")

    assert found >= 0.3
