"""How telemetry arrives: in which order, in which batches, with how much time between, and what
comes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from hypothesis import strategies as st
from msgspec.structs import replace

from otel_reliability import conventions
from otel_reliability.config import AssemblySettings, Settings, WindowSettings
from otel_reliability.conventions.reader import Reader
from otel_reliability.engine import Engine
from otel_reliability.model.reading import Reading
from otel_reliability.model.run import AgentKey, CloseReason, Run, RunChange, RunEvent
from otel_reliability.model.span import AgentSpan, Evaluation, RawSpan, TraceId
from otel_reliability.testing import FakeClock
from tests.laws.telemetry import WINDOW

IDLE: Final = 20.0
REOPEN: Final = 60.0
SETTINGS: Final = Settings(
    windows=(WindowSettings("recent", last=WINDOW), WindowSettings("minute", period=3.0)),
    assembly=AssemblySettings(linger=2.0, idle_timeout=IDLE, reopen=REOPEN),
    hash_key="00" * 16,
)
"""Small windows, and runs whose root never came are given up soon: so all of it happens within
`reopen`.
"""
READER: Final = Reader(SETTINGS, conventions.TABLE)

Told = RawSpan | AgentSpan | Evaluation
Arrivals = Sequence[tuple[float, Sequence[Told]]]
"""Batches, each with the seconds that pass before it."""


class Outcome(NamedTuple):
    """What comes of telemetry: runs by id, every reading of every window, and what became of the
    spans.
    """

    runs: Mapping[str, Run]
    readings: Mapping[tuple[AgentKey, str], Mapping[str, Reading]]
    final: Mapping[str, Run]
    accounts: Mapping[tuple[str, str], int]
    changes: Sequence[RunChange]


class Observed:
    """What an engine tells of runs, from now on."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.runs: dict[str, Run] = {}
        self.changes: list[RunChange] = []
        engine.observers.append(self._observe)

    def _observe(self, event: RunEvent, now: float) -> None:
        runs = self.runs
        run_id = event.run.run_id
        self.changes.append(event.change)
        if event.change is RunChange.WITHDRAWN:
            del runs[run_id]
        elif event.change is RunChange.CLOSED:
            assert run_id not in runs, "a run is closed once"
            runs[run_id] = event.run
        elif event.change is RunChange.REVISED:
            assert runs[run_id] == event.previous, "a run is revised from what it was"
            runs[run_id] = event.run

    def outcome(self) -> Outcome:
        """Why a run was closed depends on when its spans came, so it is left out; nothing else
        does.
        """
        engine = self.engine
        states = (engine.agents.agent(key) for key in engine.agents.keys())  # noqa: SIM118  it is no mapping
        windows = {
            (one.key, name): window for one in states if one for name, window in one.windows.items()
        }
        final = engine.take_final()
        assert len({run.run_id for run in final}) == len(final), "a run becomes final once"
        return Outcome(
            {run_id: replace(run, closed_by=CloseReason.ROOT) for run_id, run in self.runs.items()},
            {key: dict(window.readings()) for key, window in windows.items()},
            {run.run_id: replace(run, closed_by=CloseReason.ROOT) for run in final},
            {key: number for key, number in engine.accounts.items() if number},
            self.changes,
        )


def at_once(told: Iterable[Told]) -> Arrivals:
    return [(0.0, list(told))]


def flushed(engine: Engine, clock: FakeClock) -> None:
    """The end of a file, or of a process."""
    engine.flush(CloseReason.END_OF_INPUT)


def waited(engine: Engine, clock: FakeClock) -> None:
    """Nothing more comes, for as long as it takes until every run is final."""
    for _ in range(40):
        clock.advance(5)
        engine.tick()


def tick_fully(engine: Engine) -> None:
    """What a collection does."""
    engine.tick()


def tick_a_little(engine: Engine) -> None:
    """What a hook does: the rest waits for later ticks."""
    engine.tick(spans=1)


def after(
    arrivals: Arrivals,
    *,
    settings: Settings = SETTINGS,
    end: Callable[[Engine, FakeClock], None] = flushed,
    tick: Callable[[Engine], None] = tick_fully,
    complete: Mapping[int, Sequence[TraceId]] = MappingProxyType({}),
    whole_services: bool = True,
) -> Outcome:
    """What is known when all has arrived and the end has come. `complete`: the traces that are,
    after which batch. `whole_services`: as of an assembler.
    """
    clock = FakeClock()
    engine = Engine(
        settings,
        clock=clock,
        wall=clock.wall,
        reader=READER if settings is SETTINGS else None,
        whole_services=whole_services,
    )
    observed = Observed(engine)
    for number, (seconds, batch) in enumerate(arrivals):
        clock.advance(seconds)
        tick(engine)
        engine.receive([one for one in batch if not isinstance(one, Evaluation)])
        engine.receive_evaluations([one for one in batch if isinstance(one, Evaluation)])
        engine.complete(complete.get(number, ()))
    end(engine, clock)
    return observed.outcome()


def read(told: Iterable[RawSpan | AgentSpan | Evaluation]) -> list[Told]:
    """The same in our vocabulary: a span need be read once, however often it arrives."""
    return [READER.read(one) if isinstance(one, RawSpan) else one for one in told]


@st.composite
def schedules(draw: st.DrawFn, told: Sequence[Told]) -> Arrivals:
    """Any order, any batches, any pauses, as long as the last comes before the `reopen` of the
    first has passed.
    """
    order = draw(st.permutations(told)) if told else []
    left = REOPEN - 5
    arrivals: list[tuple[float, Sequence[Told]]] = []
    while order:
        size = draw(st.sampled_from((1, 2, 5, 20, 100)))
        pause = min(left, draw(st.sampled_from((0.0, 0.0, 1.0, 3.0, 25.0))))
        left -= pause
        arrivals.append((pause, order[:size]))
        order = order[size:]
    return arrivals
