"""Export of many agents: a Prometheus scrape after some of them changed, and an OTLP push, as CPU
time of the service.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final, cast

from benchmarks.measure import Row, row
from benchmarks.otlp import request
from benchmarks.serving import CLOSED_S, QUICK, Server, send, service
from benchmarks.shapes import Shape, each_run
from tests.real.ports import HOST
from tests.real.waiting import until
from tests.real.web import ask

AGENTS: Final = 1_000
CHANGED: Final = 100
RUNS: Final = 5
"""Runs per agent: from here on an agent has a score."""
ROUNDS: Final = 5
PUSH_S: Final = 2.0


class Sink(ThreadingHTTPServer):
    """Accepts OTLP over HTTP, counts the requests and drops them."""

    def __init__(self) -> None:
        self.requests = 0
        super().__init__((HOST, 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        cast("Sink", self.server).requests += 1
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    # the name is http.server's
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def rows(number: int = AGENTS, changed: int = CHANGED) -> list[Row]:
    """Return the CPU seconds of a scrape and of a push."""
    against = f"{number:,} agents"
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        sink = running.enter_context(_sink())
        folder = Path(name)
        push = {
            "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": f"http://{HOST}:{sink.server_port}/v1/metrics",
            "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/protobuf",
            "OTEL_METRIC_EXPORT_INTERVAL": f"{PUSH_S * 1000:.0f}",
        }
        quiet = service(folder / "quiet", *QUICK)
        pushing = service(folder / "pushing", *QUICK, env=push)
        runs = (request(run).SerializeToString() for run in each_run(Shape(agents=number)))
        first = [next(runs) for _ in range(number * RUNS)]
        for server in (quiet, pushing):
            running.callback(server.process.stop)
            server.process.start()
            send(server.otlp, first)
        time.sleep(CLOSED_S)
        _scrape(quiet)
        scrapes = [_after(quiet, [next(runs) for _ in range(changed)]) for _ in range(ROUNDS)]
        until(lambda: sink.requests, "the first push")
        pushes = [_pushed(pushing, quiet) for _ in range(ROUNDS)]
    return [
        row(
            "Prometheus scrape",
            scrapes,
            at_most=0.2,
            unit="s CPU",
            against=f"{against}, {changed} changed since the last",
        ),
        row("OTLP push", pushes, at_most=1.0, unit="s CPU", against=against),
    ]


def _after(server: Server, requests: list[bytes]) -> float:
    """Return the CPU seconds of a scrape after these runs."""
    send(server.otlp, requests)
    time.sleep(CLOSED_S)
    before = server.cpu()
    _scrape(server)
    return server.cpu() - before


def _scrape(server: Server) -> None:
    answer = ask(f"http://{server.metrics}/metrics", timeout=120.0)
    if answer.status != 200:
        raise RuntimeError(f"the scrape failed with {answer.status}")


def _pushed(server: Server, idle: Server) -> float:
    """Return the CPU seconds of one push: what the service uses over two intervals, less what an
    idle one uses meanwhile.
    """
    before = server.cpu()
    alone = idle.cpu()
    time.sleep(2 * PUSH_S)
    return ((server.cpu() - before) - (idle.cpu() - alone)) / 2


@contextmanager
def _sink() -> Generator[Sink]:
    sink = Sink()
    thread = threading.Thread(target=sink.serve_forever)
    thread.start()
    try:
        yield sink
    finally:
        sink.shutdown()
        thread.join()
        sink.server_close()
