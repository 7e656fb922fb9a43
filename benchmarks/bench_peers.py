"""Beside others' work on the same runs. Peers live in environments of their own, installed by this when it is run.

Without a network, or where they do not install, their rows are left out, and it is said why.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import venv
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import IO, Final

from benchmarks.measure import ROUNDS, Row, ratios, row
from otel_reliability.config import Settings, WindowSettings
from otel_reliability.metrics.stability import ROWS
from otel_reliability.model.event import RunChange, RunEvent
from otel_reliability.model.run import Run, ToolCall
from otel_reliability.testing import call, run
from otel_reliability.windows.fleet import Fleet

RUNS: Final = 1_000
REPORTS: Final = 100
"""Reports of ours in one round: a single one is too short to be timed."""
AGENTCOP: Final = "agentcop==0.4.12"
PEER: Final = Path(__file__).with_name("peer_agentcop.py")
NAMES: Final = tuple(spec.name for cls in ROWS for spec in (cls.spec, *getattr(cls, "companions", ())))
TOOLS: Final = ("search", "read", "check", "book", "refund", "reply")


class Unavailable(Exception):
    """A peer that cannot be had here, and why."""


def environment(requirement: str) -> Path:
    """The Python of an environment that has this installed."""
    cache = Path(os.environ.get("OTEL_RELIABILITY_CACHE") or Path.home() / ".cache" / "otel-reliability")
    place = cache / "peers" / requirement.replace("==", "-")
    python, done = place / "bin" / "python", place / "installed"
    if not done.exists():
        venv.create(place, with_pip=True, clear=True)
        installed = subprocess.run(  # noqa: S603 (words of ours alone)
            [python, "-m", "pip", "install", "-q", requirement], capture_output=True, check=False
        )
        if installed.returncode:
            raise Unavailable(f"{requirement} cannot be installed here")
        done.touch()
    return python


def path(number: int) -> list[str]:
    """What a run called: mostly one of three habits."""
    habits = (TOOLS[:4], TOOLS[1:6], TOOLS[::2])
    steps: list[str] = [*habits[number % 3]]
    return [*steps, TOOLS[number % 5]] if number % 20 == 0 else steps


def runs() -> Iterator[Run]:
    """Runs of one agent, for ever."""
    for number in count():
        steps = path(number)
        calls: tuple[ToolCall, ...] = tuple(call(name, float(at)) for at, name in enumerate(steps))
        yield run(steps, number, tool_calls=calls, input_tokens=100, output_tokens=10, token_pressure=0.1)


class Ours:
    """An agent with a full window."""

    def __init__(self) -> None:
        self._fleet = Fleet(Settings(windows=(WindowSettings(last=RUNS),)))
        self._runs = runs()
        for one in (next(self._runs) for _ in range(RUNS)):
            self._take(one)

    def report(self) -> float:
        """CPU seconds from a new run to every number about the agent's stability."""
        stock = [next(self._runs) for _ in range(REPORTS)]
        began = time.process_time()
        for one in stock:
            self._take(one)
            agent = self._fleet.agent(one.key)
            for window in () if agent is None else agent.windows.values():
                for name in NAMES:
                    window.reading(name)
        return (time.process_time() - began) / REPORTS

    def _take(self, one: Run) -> None:
        self._fleet.apply(RunEvent(RunChange.CLOSED, one), 0.0)
        self._fleet.apply(RunEvent(RunChange.SETTLED, one), 0.0)


@contextmanager
def agentcop() -> Generator[subprocess.Popen[str]]:
    """The peer, its runs read, in a process of its own."""
    told = json.dumps([{"path": path(number), "tokens": 100} for number in range(RUNS)])
    command = [str(environment(AGENTCOP)), str(PEER)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 (same)
        try:
            _tell(process.stdin, told)
            if process.stdout is None or process.stdout.readline().strip() != "ready":
                raise Unavailable(f"{AGENTCOP} does not run here")
            yield process
        finally:
            process.kill()


def asked(process: subprocess.Popen[str]) -> float:
    """CPU seconds of one report of the peer."""
    _tell(process.stdin, "report")
    return float(process.stdout.readline()) if process.stdout is not None else 0.0


def rows() -> list[Row]:
    """What a report costs us and them."""
    try:
        with agentcop() as peer:
            ours = Ours()
            times = [(ours.report(), asked(peer)) for _ in range(ROUNDS)]
    except (Unavailable, OSError, subprocess.SubprocessError) as reason:
        print(f"left out: {reason}", file=sys.stderr)
        return []
    mine, theirs = zip(*times, strict=True)
    name = "an agent's report over 1 000 runs after a new one"
    return [
        row(name, ratios(mine, theirs), at_most=1 / 200, against=f"{AGENTCOP} compute_report"),
        row("the same in agentcop", theirs, unit="ms", scale=1e3, against="1 000 runs"),
    ]


def _tell(pipe: IO[str] | None, line: str) -> None:
    if pipe is not None:
        pipe.write(line + "\n")
        pipe.flush()
