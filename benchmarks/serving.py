"""Services and Collectors as processes: how they are started, what they cost, and a client that
keeps its connections.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.real.collector.handle import Collector
from tests.real.ports import HOST, free_port
from tests.real.process import Process
from tests.real.web import answers

CONNECTIONS: Final = 4
"""Concurrent connections, each with one request under way."""
MAX_RETRIES: Final = 100
QUICK: Final = ("--set", "assembly.linger=1s", "--set", "assembly.reopen=1s")
"""Runs are final after two seconds, so that closing is inside the measurement; everything else is
as by default.
"""
CLOSED_S: Final = 3.0
"""Seconds after which all runs are closed and final."""
SPAN_METRICS: Final[Mapping[str, Any]] = {
    "receivers": {"otlp": {"protocols": {"grpc": {}, "http": {}}}},
    "connectors": {
        "span_metrics": {
            "dimensions": [{"name": "gen_ai.agent.name"}, {"name": "gen_ai.tool.name"}]
        }
    },
    "exporters": {"nop": {}},
    "service": {
        "pipelines": {
            "traces": {"receivers": ["otlp"], "exporters": ["span_metrics"]},
            "metrics": {"receivers": ["span_metrics"], "exporters": ["nop"]},
        }
    },
}
"""A Collector that makes metrics of spans, by two dimensions besides the connector's own four."""
_TICK: Final = os.sysconf("SC_CLK_TCK")
_SCHEDULED: Final = 2
"""Kind of the CPU clock of another process in Linux's numbers of clocks: in nanoseconds, where
/proc/PID/stat counts 10 ms.
"""
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_OK = 200
_OVERLOADED = 503
_RUN: Final = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
"""


class Rejected(Exception):
    """A server did not accept a request."""


class Used(NamedTuple):
    """CPU seconds of a process, and the most bytes of it that were in memory."""

    seconds: float
    memory: int


class Server(NamedTuple):
    """A process and its addresses: OTLP over HTTP, and Prometheus metrics ('' where
    it has none).
    """

    process: Process
    otlp: str
    metrics: str = ""

    def cpu(self) -> float:
        """Return the CPU seconds of the process and of all its children, those that ended among
        them.
        """
        return cpu(self.process.pid)

    def resident(self) -> int:
        """Return the bytes of the process that are in memory."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * _PAGE


def service(
    folder: Path, *options: str, native: bool = True, env: Mapping[str, str] | None = None
) -> Server:
    """Return a service with all its endpoints on free ports, not started yet."""
    module = "otel_reliability.cli" if native else "benchmarks.without_native"
    otlp, metrics, grpc, pages = (f"{HOST}:{free_port()}" for _ in range(4))
    endpoints = ("--http", otlp, "--metrics", metrics, "--grpc", grpc, "--ui", pages)
    command = [sys.executable, "-m", module, "serve", *endpoints, *options]
    process = Process(
        "service",
        command,
        log=folder / "service.log",
        ready=lambda _: answers(f"http://{pages}/readyz"),
        env=env,
    )
    return Server(process, otlp, metrics)


def finished(*arguments: str) -> Used:
    """Run Python with these arguments to its end, without its output. Raises `RuntimeError` where
    it fails.

    A small process starts it: Linux counts the memory of whoever starts a process as the process's
    own.
    """
    command = (sys.executable, "-c", _RUN, sys.executable, *arguments)
    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    if found[0] != "0":
        raise RuntimeError(f"{' '.join(arguments)[:80]} ended with exit code {found[0]}")
    return Used(float(found[1]), int(found[2]) * 1024)


def collector(folder: Path, program: Path) -> Server:
    """Return a Collector with an OTLP receiver and `span_metrics`, not started yet."""
    folder.mkdir(parents=True)
    process = Collector(program, folder, SPAN_METRICS, {}, {})
    return Server(process, process.http.partition("//")[2])


def cpu(pid: int) -> float:
    """Return the CPU seconds of a process and of all its children, those that ended among them."""
    total = 0.0
    for one in (pid, *_children(pid)):
        with suppress(OSError):
            ended = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[13:15]
            total += time.clock_gettime(~one << 3 | _SCHEDULED) + sum(map(int, ended)) / _TICK
    return total


def send(address: str, requests: Sequence[bytes]) -> None:
    """Send all requests over a few connections; repeat what an overloaded server rejects. Raises
    `Rejected` otherwise.
    """
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        for _ in threads.map(
            partial(_send, address), [requests[at::CONNECTIONS] for at in range(CONNECTIONS)]
        ):
            pass  # raises what the thread raised


def _send(address: str, requests: Sequence[bytes]) -> None:
    with closing(HTTPConnection(address, timeout=60)) as connection:
        for body in requests:
            status = next(
                filter(_OVERLOADED.__ne__, (_status(connection, body) for _ in range(MAX_RETRIES))),
                _OVERLOADED,
            )
            if status != _OK:
                raise Rejected(f"the server answered {status}")


def _status(connection: HTTPConnection, body: bytes) -> int:
    """Send one request and return the status, after a pause where the server is overloaded."""
    connection.request("POST", "/v1/traces", body, {"Content-Type": "application/x-protobuf"})
    answer = connection.getresponse()
    answer.read()
    if answer.status == _OVERLOADED:
        time.sleep(0.2)
    return answer.status


def _children(pid: int) -> Iterator[int]:
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield int(child)
                yield from _children(int(child))
