"""A service's state with a journal, without doors: what requests and time do to it, and how it
looks.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from otel_reliability.config import Settings
from otel_reliability.conventions.sketch import sketch_of
from otel_reliability.engine import Engine
from otel_reliability.model.span import InvocationFacts, Kind, Session
from otel_reliability.service.decoded import Decoded
from otel_reliability.service.persistence import Persistent
from otel_reliability.service.state import State
from otel_reliability.state.clock import Clock
from otel_reliability.state.directory import StateDirectory
from otel_reliability.state.store import Unavailable
from otel_reliability.telemetry.exposition import SPECS, CounterSeries, Labels, Registry, Series
from otel_reliability.telemetry.names import Instrument
from otel_reliability.telemetry.series_recording import SeriesRecording
from otel_reliability.testing import FakeClock, agent_span, model, tool
from otel_reliability.ui.live import Histories

SETTINGS = Settings(hash_key="00" * 16)
REQUESTS = (None, *map(sketch_of, ("cancel my order please", "how is the weather today")))
"""Sketches of what users ask, of an unknown input the first."""


class Look(NamedTuple):
    """All that can be told of a state."""

    windows: dict[str, Any]
    series: dict[str, Any]
    sessions: Any
    change: Any
    accounts: dict[Any, int]
    open_runs: int
    histories: dict[str, Any]


class Kept:
    """State in a directory, its journal restored. `die` is a `kill -9`: whatever SQLite has,
    nothing is said to it.
    """

    def __init__(
        self,
        path: Path,
        fake: FakeClock | None = None,
        settings: Settings = SETTINGS,
        *,
        limit: int | None = None,
    ) -> None:
        self.fake = FakeClock() if fake is None else fake
        self.path = path
        clock = Clock(self.fake, self.fake.wall)
        self.engine = Engine(settings, clock=clock, wall=clock.wall, places_return=True)
        self.registry = Registry(clock.wall)
        self.histories = Histories(self.engine)
        self.state = State(self.engine, SeriesRecording(self.engine, self.registry), self.histories)
        self.directory = StateDirectory(path)
        self.persistence = Persistent(self.state, clock, self.directory, limit=limit)
        self.persistence.restore()

    def take(self, *requests: Decoded) -> bool:
        """As the writer does. False: refused."""
        try:
            self.persistence.before_apply(requests)
        except Unavailable:
            return False
        for request in requests:
            self.state.apply(request)
        self.persistence.after_apply()
        return True

    def wind(self, seconds: float) -> None:
        self.fake.advance(seconds)
        try:
            self.persistence.before_deadlines()
        except Unavailable:
            return
        self.state.advance()
        with suppress(Unavailable):
            self.persistence.after_deadlines(self.engine.now())
        self.persistence.load()

    def finalize(self) -> None:
        """Let so much time pass that every run is closed and final, and recorded: that waits until
        its agent is loaded.
        """
        while self.engine.agents.unloaded:
            self.engine.load_agents(1.0)
        for _ in range(3):
            self.wind(700.0)
        assert not self.engine.waiting, "counters are not complete"

    def die(self) -> None:
        self.directory.release()

    def again(self, settings: Settings = SETTINGS) -> Kept:
        self.die()
        return Kept(self.path, self.fake, settings)

    def look(self) -> Look:
        """Everything that is told of the state."""
        registry = self.engine.agents
        monitor = self.engine.monitor
        assert monitor is not None
        detectors = {key: monitor.detector(key) for key in monitor.keys()}  # noqa: SIM118
        windows = {key.agent: registry.agent(key) for key in sorted(registry.keys())}
        return Look(
            {
                name: {
                    window.name: (
                        [row.run_id for row in window.rows()],
                        dict(window.readings()),
                        window.spares,
                    )
                    for window in state.windows.values()
                }
                for name, state in windows.items()
                if state is not None
            },
            self.series(),
            # no dictionary
            {key: self.engine.sessions.scores(key) for key in registry.keys()},  # noqa: SIM118
            {
                key.agent: detector.to_data()
                for key, detector in detectors.items()
                if detector is not None
            },
            {key: number for key, number in self.engine.accounts.items() if number},
            self.engine.open_runs,
            {key.agent: self.histories.of(key) for key in sorted(registry.keys())},
        )

    def series(self) -> dict[str, dict[Labels, tuple[Any, ...]]]:
        """Value or counts, then total and start, of every series by instrument."""
        return {
            name: dict(chain.from_iterable(self.registry.slices(spec, _series)))
            for name, spec in SPECS.items()
        }

    def run_ids(self) -> list[str]:
        return [
            run_id
            for windows in self.look().windows.values()
            for ids, *_ in windows.values()
            for run_id in ids
        ]


def _series(_: Instrument, labels: Labels, series: Series) -> tuple[Labels, tuple[Any, ...]]:
    numbers = (
        (series.value, 0)
        if isinstance(series, CounterSeries)
        else (list(series.counts), series.total)
    )
    return labels, (*numbers, series.start_ns)


def request(trace: int, tools: Iterable[str] = ("search", "book"), *, agents: int = 3) -> Decoded:
    """One run, of one of so many agents and of one of ten sessions."""
    start = float(trace)
    session = Session(0, f"session {trace % 10}")
    calls = [
        tool(3 + at, 1, name, trace=trace, start=start + 0.1 * at, failed=trace % 7 == at)
        for at, name in enumerate(tools)
    ]
    root = agent_span(
        Kind.AGENT,
        InvocationFacts(f"agent {trace % agents}", request=REQUESTS[trace % len(REQUESTS)]),
        1,
        None,
        trace=trace,
        start=start,
        end=start + 1,
        session=session,
    )
    return Decoded(spans=(*calls, model(2, 1, trace=trace, start=start + 0.05), root))


def halves(trace: int) -> tuple[Decoded, Decoded]:
    """The same run in two requests, its root last."""
    spans = request(trace, ("search", "book")[: 1 + trace % 2]).spans
    return Decoded(spans=spans[:1]), Decoded(spans=spans[1:])
