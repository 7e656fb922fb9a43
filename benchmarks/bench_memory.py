"""What is kept: an agent with a full window, a run whose root has not come yet, a session, and an agent's change detector.

Counted are the bytes that Python's allocator gave out and did not get back. What agents share (names of models and tools, the
settings) is there before the first of them.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Final

from benchmarks.measure import Row, row
from benchmarks.payloads import Traffic
from otel_reliability import conventions
from otel_reliability.assembly.assembler import Assembler
from otel_reliability.change.monitor import Monitor
from otel_reliability.config import LimitSettings, Settings
from otel_reliability.conventions.reader import Reader
from otel_reliability.model.event import RunChange, RunEvent
from otel_reliability.model.run import CloseReason, Run
from otel_reliability.model.span import AgentSpan, RawSpan
from otel_reliability.service.answers import Encoding, Signal
from otel_reliability.service.decoded import Decoder
from otel_reliability.sources.otlp_write import traces_protobuf
from otel_reliability.windows.fleet import Fleet
from otel_reliability.windows.sessions import Sessions

WINDOW: Final = 100
AGENTS: Final = 60
OPEN: Final = 400
UNITS: Final = 700
"""Observations after which a detector is as large as it gets."""
WATCHED: Final = 6
TURNS: Final = 5
"""Runs of a session."""
KIB: Final = 1 / 1024


class Source:
    """The runs of one agent after the other."""

    def __init__(self, *, chaotic: bool) -> None:
        self.settings = Settings(limits=LimitSettings(agents=100_000))
        self._reader = Reader(self.settings, conventions.TABLE)
        self._decode = Decoder(self._reader)
        self._traffic = Traffic(chaotic=chaotic, agents=1)

    def read(self, span: RawSpan) -> AgentSpan:
        """A span in our vocabulary."""
        return self._reader.read(span)

    def longer(self, spans: int) -> list[RawSpan]:
        """The first so many spans of the next run that has more."""
        told = self._traffic.run()
        while len(told) <= spans:
            told = self._traffic.run()
        return told[:spans]

    def request(self, spans: list[RawSpan]) -> Sequence[AgentSpan]:
        """What a service makes of a request of these."""
        return self._decode(Signal.TRACES, Encoding.PROTOBUF, traces_protobuf(spans)).spans

    def run(self, agent: str) -> Run:
        """The next run, as this agent's; without a session, since each run here would be one of its own."""
        assembler = Assembler(self.settings)
        for span in self._traffic.run():
            assembler.add(self.read(span), 0.0)
        found = assembler.close_all(CloseReason.END_OF_INPUT, 0.0)[0].run
        return found._replace(key=found.key._replace(agent=agent), session_id=None)


def grown(make: Callable[[int], object], number: int) -> float:
    """Bytes that each of so many takes that are made after the first."""
    make(0)
    gc.collect()
    tracemalloc.start(1)
    try:
        before = tracemalloc.get_traced_memory()[0]
        for at in range(1, number + 1):
            make(at)
        gc.collect()
        return (tracemalloc.get_traced_memory()[0] - before) / number
    finally:
        tracemalloc.stop()


def agents(*, chaotic: bool, told: bool = False) -> float:
    """Bytes an agent, its window full and its runs final; `told`: and every number of it has just been asked for."""
    source = Source(chaotic=chaotic)
    fleet = Fleet(source.settings)

    def make(number: int) -> None:
        for _ in range(WINDOW + 10):
            run = source.run(f"agent {number}")
            fleet.apply(RunEvent(RunChange.CLOSED, run), 0.0)
            fleet.apply(RunEvent(RunChange.SETTLED, run), 0.0)
        for key in fleet.keys() if told else ():
            fleet.told(key)

    return grown(make, AGENTS)


def open_runs(spans: int, *, requests: bool = False) -> float:
    """Bytes a run of so many spans whose root has not come yet: they come one by one, or as `requests` to a service."""
    source = Source(chaotic=True)
    assembler = Assembler(source.settings)

    def make(_: int) -> None:
        told = source.longer(spans)
        if requests:
            assembler.add_all(source.request(told), 0.0)
            return
        for span in told:
            assembler.add(source.read(span), 0.0)

    return grown(make, OPEN)


def detectors() -> float:
    """Bytes an agent's detector, as large as it gets."""
    source = Source(chaotic=False)
    monitor = Monitor(source.settings)

    def make(number: int) -> None:
        for _ in range(UNITS):
            monitor.apply(RunEvent(RunChange.CLOSED, source.run(f"agent {number}")), 0.0)

    return grown(make, WATCHED)


def sessions() -> float:
    """Bytes an open session of as many runs."""
    source, apart = Source(chaotic=False), Sessions()

    def make(number: int) -> None:
        for turn in range(TURNS):
            run = source.run("agent")._replace(run_id=f"{number} {turn}", session_id=f"session {number}")
            apart.apply(RunEvent(RunChange.CLOSED, run), 0.0)

    return grown(make, OPEN)


def rows() -> list[Row]:
    """What is kept, in KiB."""
    full = f"its window of {WINDOW} runs full"
    return [
        _kept("memory an agent, stable paths", agents(chaotic=False), 16, full),
        _kept("memory an agent, chaotic paths", agents(chaotic=True), 40, full),
        _kept("the same, just asked for everything, stable paths", agents(chaotic=False, told=True), None, full),
        _kept("the same, just asked for everything, chaotic paths", agents(chaotic=True, told=True), None, full),
        _kept(
            "memory an open run of 20 spans", open_runs(16) * 20 / 16, 8, "of the 16 spans that came before its root"
        ),
        _kept(
            "the same, of requests to a service",
            open_runs(16, requests=True) * 20 / 16,
            None,
            "of the 16 spans that came before its root, by the compiled reader where it is installed",
        ),
        _kept("memory an agent's change detector", detectors(), None, f"after {UNITS} runs"),
        _kept("memory an open session", sessions(), None, f"of {TURNS} runs"),
    ]


def _kept(name: str, size: float, at_most: float | None, against: str) -> Row:
    return row(name, [size], unit="KiB", scale=KIB, at_most=at_most, against=against)
