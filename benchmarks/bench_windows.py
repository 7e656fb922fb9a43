"""What is kept, and what reading it costs: an agent's windows, an open run, and readings of windows
of different sizes.

Spans enter as requests and leave as readings, as in a service. Memory is what Python's allocator
handed out and did not get back.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from benchmarks.job import SETTINGS, Job
from benchmarks.measure import ROUNDS, Row, ratios, row
from benchmarks.otlp import request
from benchmarks.shapes import Shape, each_run
from otel_reliability.read_view import ReadView

WINDOW: Final = 100
AGENTS: Final = 20
OPEN_RUNS: Final = 400
SPANS: Final = 16
"""Spans of an open run that are sent; the row is for 20."""
READINGS: Final = 30
KINDS: Final = {"stable": False, "chaotic": True}
NO_CHANGE: Final = {"change": {"enabled": False}}
LATER_S: Final = 7_200.0
"""Seconds after which a service has forgotten the ids of closed runs and closed all sessions."""


def rows(rounds: int = ROUNDS) -> list[Row]:
    """Return the cost of a reading at 1,000 runs against 100, and the memory per agent and per open
    run.
    """
    found: list[Row] = []
    for kind, chaotic in KINDS.items():
        small = Agent(100, chaotic=chaotic)
        large = Agent(1_000, chaotic=chaotic)
        fast, slow = zip(*((small.read(), large.read()) for _ in range(rounds)), strict=True)
        name = f"reading an agent, window of 1,000 runs, {kind} paths"
        found.append(row(name, ratios(slow, fast), at_most=1.5, against="window of 100 runs"))
        found.append(
            row(
                f"reading an agent, {kind} paths",
                fast,
                unit="µs",
                scale=1e6,
                against="window of 100 runs",
            )
        )
    for (kind, chaotic), limit in zip(KINDS.items(), (32, 64), strict=True):
        name = f"memory per agent, {kind} paths"
        found.append(
            _kept(
                name,
                agents(Shape(chaotic=chaotic), {**SETTINGS, **NO_CHANGE}),
                limit,
                f"{WINDOW} runs, without change detection",
            )
        )
    found.append(
        _kept(
            "memory per agent, requests known and change detection on",
            agents(Shape(requests=True), SETTINGS),
            None,
            f"{WINDOW} runs of 24 kinds of request, default settings",
        )
    )
    found.append(
        _kept(
            "memory per open run of 20 spans",
            open_runs() * 20 / SPANS,
            20,
            f"measured at {SPANS} spans",
        )
    )
    return found


class Agent:
    """One agent whose window is full, and gets one more run before each reading."""

    def __init__(self, size: int, *, chaotic: bool) -> None:
        windows = {"windows": [{"last": size}]}
        self._job, self._runs = (
            Job({**SETTINGS, **windows}),
            bodies(Shape(chaotic=chaotic, content=True, agents=1)),
        )
        for _ in range(size):
            self._one_more()
        self._key = (self._job.engine.read(lambda view: view.keys()) or [])[0]

    def read(self) -> float:
        """Return the CPU seconds of reading every gauge, after one more run."""
        took = 0.0
        for _ in range(READINGS):
            self._one_more()
            began = time.process_time()
            self._job.engine.read(self._series)
            took += time.process_time() - began
        return took / READINGS

    def _series(self, view: ReadView) -> None:
        state = view.agent(self._key)
        for window in state.windows.values() if state is not None else ():
            window.series()

    def _one_more(self) -> None:
        self._job.receive(next(self._runs))
        self._job.wait(3.0)


def bodies(shape: Shape, seed: int = 7) -> Iterator[bytes]:
    """Return requests of one run each."""
    return (request(run).SerializeToString() for run in each_run(shape, seed))


def agents(shape: Shape, settings: Mapping[str, Any]) -> float:
    """Return the bytes per agent, its window full and its runs final.

    That is what as many runs of one agent leave free: tables of closed ids and shared values are
    the same in both. Templates of spans are not, and are no agent's.
    """

    def filled(number: int) -> int:
        with _allocations() as allocated:
            job = Job(settings)
            runs = bodies(shape._replace(sessions=False, agents=number))
            for _ in range(AGENTS * (WINDOW + 10)):
                job.receive(next(runs))
            job.wait(LATER_S)
            job.forget_templates()
            return allocated()

    filled(1)  # imports and caches exist by then
    one = filled(1)
    return (filled(AGENTS) - one) / (AGENTS - 1)


def open_runs() -> float:
    """Return the bytes of a run whose root has not arrived."""
    runs = (run for run in each_run(Shape(chaotic=True, sessions=False)) if len(run) > SPANS)
    with _allocations() as allocated:
        job = Job({**SETTINGS, **NO_CHANGE})
        before = allocated()
        for _ in range(OPEN_RUNS):
            job.receive(request(next(runs)[:SPANS]).SerializeToString())
        return (allocated() - before) / OPEN_RUNS


@contextmanager
def _allocations() -> Generator[Callable[[], int]]:
    """Trace allocations; provide a function that returns how many bytes are allocated since."""
    tracemalloc.start(1)
    try:
        yield _allocated
    finally:
        tracemalloc.stop()


def _allocated() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def _kept(name: str, size: float, at_most: float | None, against: str) -> Row:
    return row(name, [size], unit="KiB", scale=1 / 1024, at_most=at_most, against=against)
