"""A service as a process of its own, which is killed and started again, and the clients that send
to it meanwhile.
"""

from __future__ import annotations

import multiprocessing
import shutil
import signal
import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from msgspec.structs import replace

from otel_reliability.model.run import CloseReason
from otel_reliability.model.span import RawSpan
from otel_reliability.service.answers import Encoding, OtlpSignal
from otel_reliability.service.decoded import Decoder
from otel_reliability.testing import FakeClock
from tests.real.ports import HOST, free_port
from tests.real.web import ask
from tests.service import keeping
from tests.service.dying import serve
from tests.service.keeping import Kept, Look
from tests.service.running import PROTOBUF, body_of, run_of

_FORK_SERVER = multiprocessing.get_context("forkserver")
_FORK_SERVER.set_forkserver_preload(["tests.service.dying", "otel_reliability.cli.serve"])
CLIENTS = 3
SETTINGS = replace(
    keeping.SETTINGS, assembly=replace(keeping.SETTINGS.assembly, linger=0.2, reopen=1.0)
)
"""Those of `Victim`: runs become final between the kills, and what is sent again may come after
that.
"""
TOOLS = ("search", "book", "pay")
PAUSE = 0.02
"""Seconds between two requests of a client."""


class Victim:
    """`otel-reliability serve` as a process of its own, killed and started again on the same
    directory. It is forked by a process that has imported it, since it begins many times.
    """

    def __init__(self, state: Path) -> None:
        self.port = free_port()
        self._state = state
        self._process: ForkServerProcess | None = None

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/v1/traces"

    def start(self, moment: str | None = None, times: int = 1) -> None:
        """Start it; to die at a moment of `dying`, at the so-many-th time."""
        settings = {
            "assembly.linger": "200ms",
            "assembly.reopen": "1s",
            "hash_key": "00" * 16,
        }
        arguments = [
            *("serve", "--state", str(self._state)),
            *("--http", f"{HOST}:{self.port}"),
            *(part for name in ("--grpc", "--metrics", "--ui") for part in (name, "off")),
            *(part for pair in settings.items() for part in ("--set", "=".join(pair))),
        ]
        self._process = _FORK_SERVER.Process(target=serve, args=(arguments, moment, times))
        self._process.start()

    def kill(self) -> None:
        process = self._process
        if process is not None:
            process.kill()
            process.join(30)

    def died(self) -> bool:
        """Whether it was killed, by whomever."""
        return self._process is not None and self._process.exitcode == -signal.SIGKILL

    def listens(self) -> bool:
        with suppress(OSError), socket.create_connection((HOST, self.port), timeout=0.2):
            return True
        return False


class Client(threading.Thread):
    """Sends runs in halves, the root last, and sends a half again until it is acknowledged, as
    exporters do.
    """

    def __init__(self, victim: Victim, number: int) -> None:
        super().__init__(daemon=True)
        self.acknowledged: list[bytes] = []
        self.refusals = 0
        self._victim = victim
        self._number = number
        self.ending = threading.Event()

    def run(self) -> None:
        trace = self._number
        while not self.ending.is_set():
            trace += CLIENTS
            spans = run_of(trace, TOOLS[: 1 + trace % 3], f"agent {trace % 4}", float(trace))
            for part in (spans[1:], spans[:1]):
                self._send(part)
                time.sleep(PAUSE)

    def _send(self, part: list[RawSpan]) -> None:
        body = body_of(part)
        while True:
            with suppress(OSError, HTTPException):
                answer = ask(
                    self._victim.url, body=body, headers={"Content-Type": PROTOBUF}, timeout=10
                )
                if answer.status == 200:
                    self.acknowledged.append(body)
                    return
            self.refusals += 1
            time.sleep(PAUSE)


@contextmanager
def clients_of(victim: Victim) -> Generator[list[Client]]:
    clients = [Client(victim, number) for number in range(1, CLIENTS + 1)]
    for client in clients:
        client.start()
    yield clients
    for client in clients:
        client.ending.set()
    for client in clients:
        client.join(60)
        assert not client.is_alive()


def check(state: Path, acknowledged: list[bytes], twin_path: Path) -> None:
    """Open what is on disk, and hold it against a twin that nobody killed and that got everything
    once: as it is, and when all of it is sent twice again.
    """
    as_it_is = Path(shutil.copytree(state, twin_path.with_name("as-it-is")))
    twin, kept, again = (
        Kept(path, FakeClock(1e6), SETTINGS) for path in (twin_path, as_it_is, state)
    )
    decode = Decoder(twin.engine.reader)
    for body in acknowledged:
        assert twin.take(decode(OtlpSignal.TRACES, Encoding.PROTOBUF, body))
    for body in (*acknowledged, *acknowledged):
        assert again.take(decode(OtlpSignal.TRACES, Encoding.PROTOBUF, body))
    for one in (twin, kept, again):
        one.finalize()
        one.engine.flush(CloseReason.SHUTDOWN)
    meant = twin.look()

    assert not list(state.glob("*.damaged-*"))
    for found in (kept.look(), again.look()):
        _agree(found, meant)


def _agree(found: Look, meant: Look) -> None:
    assert found.open_runs == 0
    assert found.windows == meant.windows
    runs = [
        {labels: cell[0] for labels, cell in look.series["agent.reliability.runs"].items()}
        for look in (found, meant)
    ]
    assert not {
        labels: [one.get(labels) for one in runs]
        for labels in {**runs[0], **runs[1]}
        if len({one.get(labels) for one in runs}) > 1
    }
    assert found.accounts["used", ""] == meant.accounts["used", ""], (
        found.accounts,
        meant.accounts,
    )
