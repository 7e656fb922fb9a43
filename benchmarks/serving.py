"""Services as processes of their own, what they cost, and a client that keeps its connections."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from typing import Final

from tests.real.ports import HOST, free_port
from tests.real.process import Process

CONNECTIONS: Final = 4
"""Clients at a time, each with a request under way."""
OFF: Final = ("--grpc", "off", "--pages", "off")
_TICK: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_TYPE: Final = {"Content-Type": "application/x-protobuf"}
_OK: Final = 200


class Refused(Exception):
    """A request was not taken."""


def service(
    folder: Path, *options: str, env: Mapping[str, str] | None = None, module: Sequence[str] = ("otel_reliability.cli",)
) -> tuple[Process, str]:
    """A service that is not started yet, and its address for OTLP over HTTP."""
    place = f"{HOST}:{free_port()}"
    command = [sys.executable, "-m", *module, "serve", "--http", place, *OFF, *options]
    return Process("service", command, log=folder / "service.log", ready=lambda _: listens(place), env=env), place


def listens(place: str) -> bool:
    """Whether somebody listens there."""
    host, _, port = place.rpartition(":")
    with suppress(OSError), socket.create_connection((host, int(port)), timeout=0.2):
        return True
    return False


def cpu(pid: int) -> float:
    """CPU seconds of a process and of all that it began, of those that have ended too."""
    total = 0.0
    for one in (pid, *_below(pid)):
        with suppress(OSError):
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15])) / _TICK
    return total


def resident(pid: int) -> int:
    """Bytes of a process that are in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE


def send(place: str, requests: Sequence[bytes], connections: int = CONNECTIONS) -> None:
    """Send all of them, over connections that stay. Raises `Refused` where one is not taken."""
    turns, failed = count(), list[BaseException]()

    def work() -> None:
        try:
            _sent(place, _taken(requests, turns))
        except (OSError, Refused) as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def _taken(requests: Sequence[bytes], turns: Iterator[int]) -> Iterator[bytes]:
    while (turn := next(turns)) < len(requests):
        yield requests[turn]


def _sent(place: str, requests: Iterator[bytes]) -> None:
    connection = HTTPConnection(place, timeout=60)
    try:
        for body in requests:
            connection.request("POST", "/v1/traces", body, _TYPE)
            answer = connection.getresponse()
            told = answer.read()
            if answer.status != _OK:
                raise Refused(f"{answer.status}: {told[:200]!r}")
    finally:
        connection.close()


def _below(pid: int) -> Iterator[int]:
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield int(child)
                yield from _below(int(child))
