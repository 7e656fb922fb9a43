"""What is kept, and what reading it costs: an agent's windows, an open run, readings of windows of
different sizes, and what the recorder reads for a run where requests form groups.

Spans enter as requests and leave as readings, as in a service. Memory is what Python's allocator
handed out and did not get back.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from benchmarks.job import SETTINGS, Job
from benchmarks.measure import ROUNDS, Row, in_turns, ratios, row
from benchmarks.otlp import request
from benchmarks.shapes import Shape, each_run
from otel_reliability.model.run import AgentKey
from otel_reliability.read_view import ReadView
from otel_reliability.telemetry.recorder import readings_of

WINDOW: Final = 100
AGENTS: Final = 20
OPEN_RUNS: Final = 400
SPANS: Final = 16
"""Spans of an open run that are sent; the row is for 20."""
READINGS: Final = 30
RECORDED: Final = 100
"""Final runs of a fleet whose readings are one measurement."""
MAX_OF_GROUPS: Final = 12.0
"""Limit of the readings for a run with requests, as a multiple of those without."""
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
    found += _of_fleets(rounds)
    for (kind, chaotic), limit in zip(KINDS.items(), (32, 64), strict=True):
        name = f"memory per agent, {kind} paths"
        found.append(
            _kept(
                name,
                agents(Shape(chaotic=chaotic), {**SETTINGS, **NO_CHANGE}),
                limit,
                f"{WINDOW} runs, read by an exporter, without change detection",
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


def _of_fleets(rounds: int) -> list[Row]:
    """Return the cost of what the recorder reads for each final run: the agent's score, and how
    unlike the others the run is.
    """
    named = Fleet(Shape(requests=True, agents=AGENTS))
    unnamed = Fleet(Shape(agents=AGENTS))
    costs = in_turns({"named": named.record, "unnamed": unnamed.record}, rounds)
    name = "readings for a run, agents in turns, requests known"
    return [
        row(
            name,
            ratios(costs["named"], costs["unnamed"]),
            at_most=MAX_OF_GROUPS,
            against="requests unknown",
        ),
        row(
            f"{name}, per run",
            costs["named"],
            unit="µs",
            scale=1e6,
            against=f"windows of {WINDOW} runs",
        ),
    ]


class Fleet:
    """Agents whose windows are full. Each run is of another agent than the run before, so that its
    readings rest on what changed since its agent was read.
    """

    def __init__(self, shape: Shape) -> None:
        self._job = Job(SETTINGS)
        self._runs = bodies(shape)
        for _ in range(shape.agents * (WINDOW + 10)):
            self._job.receive(next(self._runs))
        self._job.wait(3.0)

    def record(self) -> float:
        """Return the CPU seconds of the readings for a run that became final."""
        took = 0.0
        for _ in range(RECORDED):
            self._job.receive(next(self._runs))
            took += self._read_final()
        return took / RECORDED

    def _read_final(self) -> float:
        """Let runs become final, and return the CPU seconds of their readings."""
        engine = self._job.engine
        self._job.now += 3.0
        engine.tick()
        final = engine.take_final()
        began = time.process_time()
        engine.read(partial(readings_of, final))
        return time.process_time() - began


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
            self._job.engine.read(partial(_read, key=self._key))
            took += time.process_time() - began
        return took / READINGS

    def _one_more(self) -> None:
        self._job.receive(next(self._runs))
        self._job.wait(3.0)


def bodies(shape: Shape, seed: int = 7) -> Iterator[bytes]:
    """Return requests of one run each."""
    return (request(run).SerializeToString() for run in each_run(shape, seed))


def agents(shape: Shape, settings: Mapping[str, Any]) -> float:
    """Return the bytes per agent, its window full, its runs final and its numbers read, as an
    exporter does: readings are kept until runs enter or leave.

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
            job.engine.read(_read_all)
            job.forget_templates()
            return allocated()

    filled(1)  # imports and caches exist by then
    one = filled(1)
    return (filled(AGENTS) - one) / (AGENTS - 1)


def _read_all(view: ReadView) -> None:
    """Read what is emitted of every agent."""
    for key in view.keys():  # noqa: SIM118 (no mapping)
        _read(view, key)


def _read(view: ReadView, key: AgentKey) -> None:
    """Read what is emitted of an agent."""
    state = view.agent(key)
    for window in state.windows.values() if state is not None else ():
        window.series()


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
