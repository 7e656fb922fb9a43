"""A real program that a test runs beside itself."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

from tests.real.waiting import PATIENCE, NeverHappened, until


class Died(AssertionError):
    """The program ended, or did not come up, where it should have been running."""


class Process:
    """One program: started until ready, ended by its own process id, its output kept in a file.

    `ready` is asked again and again while the program comes up. A program that ends meanwhile
    raises `Died` with the end of its output. A second `start` runs the same command again: same
    ports, same folders, output appended.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        log: Path,
        ready: Callable[[Process], bool],
        env: Mapping[str, str] | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self.name = name
        self.command = [str(part) for part in command]
        self.log = log
        self._ready = ready
        self._env = {**os.environ, **(env or {})}
        self._patience = patience
        self._said_before = 0
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        if self._child is None:
            raise Died(f"{self.name} has no process id: it is not running; start it first")
        return self._child.pid

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def said(self) -> str:
        """What the program has printed since it was last started."""
        with self.log.open("rb") as log:
            log.seek(self._said_before)
            return log.read().decode(errors="replace")

    def start(self) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._said_before = log.tell()
            self._child = subprocess.Popen(
                self.command,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            until(self._up, f"{self.name} to be ready", patience=self._patience)
        except (Died, NeverHappened) as reason:
            self.kill()
            raise Died(f"{reason}; the end of {self.log}:\n{self.said()[-3000:]}") from None

    def _up(self) -> bool:
        if not self.running:
            raise Died(f"{self.name} ended before it was ready")
        return self._ready(self)

    def stop(self, patience: float = 60.0) -> int | None:
        """Ask the program to end (SIGTERM) and return its exit code; one that does not listen is
        killed.
        """
        return self._end(signal.SIGTERM, patience)

    def kill(self) -> int | None:
        """End the program without a word of warning (SIGKILL), as a power cut would."""
        return self._end(signal.SIGKILL, PATIENCE)

    def _end(self, how: signal.Signals, patience: float) -> int | None:
        child = self._child
        self._child = None
        if child is None:
            return None
        child.send_signal(how)
        try:
            return child.wait(patience)
        except subprocess.TimeoutExpired:
            child.kill()
            return child.wait()


P = TypeVar("P", bound=Process)


class Programs:
    """Programs of one test, each with a folder of its own; they end with the test."""

    def __init__(self, folder: Path, running: ExitStack) -> None:
        self.running = running
        self._folder = folder
        self._made = 0

    def new_folder(self, name: str) -> Path:
        self._made += 1
        folder = self._folder / f"{name}-{self._made}"
        folder.mkdir()
        return folder

    def started(self, program: P) -> P:
        self.running.callback(program.stop)
        program.start()
        return program


def untraced() -> dict[str, str]:
    """The environment of a process that is interrupted, killed, or forks: without coverage.

    It has a lock, and whoever is interrupted or forked off while that is held never goes on.
    """
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
