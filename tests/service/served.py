"""`otel-reliability serve` as a process of its own, as users start it; and agents under a real SDK
that send to it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.real.ports import HOST, free_port
from tests.real.process import Process
from tests.real.web import answers, ask
from tests.service.running import sum_of

ENGINE: Mapping[str, Any] = {
    "windows": [{"last": 1_000}],
    "metrics": {"min_runs": 2},
    "assembly": {"linger": "300ms", "reopen": "3s"},
    "sessions": {"idle": "2s"},
    "change": {"enabled": False},
    "hash_key": "00" * 16,
}
"""All runs count, and close soon: what a report on the same spans tells is what the service tells a
little later.
"""
PAGE = os.sysconf("SC_PAGE_SIZE")


class Served(Process):
    """One service on free ports of loopback."""

    def __init__(
        self, folder: Path, settings: Mapping[str, Any], flags: tuple[str, ...], instance: str
    ) -> None:
        self.grpc, self.metrics_address = f"{HOST}:{free_port()}", f"{HOST}:{free_port()}"
        self.http, self.pages = f"http://{HOST}:{free_port()}", f"http://{HOST}:{free_port()}"
        self.instance = instance
        config = folder / "service.json"
        config.write_text(json.dumps({**ENGINE, **settings}))
        doors = ["--grpc", self.grpc, "--http", self.http[7:], "--metrics", self.metrics_address]
        command = [
            sys.executable,
            "-m",
            "otel_reliability.cli",
            "serve",
            "--config",
            config,
            *doors,
        ]
        command += ["--ui", self.pages[7:], "--set", f"service.instance={instance}"]
        command += ["--set", "service.series=all", *flags]
        super().__init__(
            "serve",
            command,
            log=folder / "serve.log",
            ready=lambda _: answers(f"{self.pages}/readyz"),
        )

    def metrics(self) -> str:
        return ask(f"http://{self.metrics_address}/metrics").text

    def sum(self, name: str, **labels: str) -> float:
        return sum_of(self.metrics(), name, **labels)

    def resident(self) -> int:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * PAGE


@dataclass
class Services:
    """Makes services for one test, and ends them with it."""

    folder: Path
    running: ExitStack
    made: int = field(default=0, init=False)

    def __call__(self, *flags: str, state: Path | None = None, **settings: Any) -> Served:
        """Start one and return once it takes requests; `flags` are those of the command, `settings`
        those of a file.
        """
        self.made += 1
        folder = self.folder / f"serve-{self.made}"
        folder.mkdir()
        kept = () if state is None else ("--state", str(state))
        service = Served(folder, settings, (*kept, *flags), f"reliability-{self.made}")
        self.running.callback(service.stop)
        service.start()
        return service


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Services]:
    """Starts services: `serve("--push", url)`."""
    with ExitStack() as running:
        yield Services(tmp_path, running)
