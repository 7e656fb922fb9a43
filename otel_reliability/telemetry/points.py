"""Windows → data points: every number that has evidence, for every agent, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.engine import Engine
from otel_reliability.model.reading import MetricSpec, Reading
from otel_reliability.model.run import AgentKey
from otel_reliability.telemetry import names
from otel_reliability.telemetry.attributes import of_agent
from otel_reliability.telemetry.instruments import Point
from otel_reliability.windows.agent import AgentState
from otel_reliability.windows.fleet import Fleet

SLICE: Final = 64
"""Agents read in one turn of the engine, so that what comes in meanwhile does not wait for all of them."""

Series: TypeAlias = Sequence[tuple[MetricSpec, tuple[tuple[str, str], ...], Reading]]


class Shown(NamedTuple):
    """What is told of one agent in one window. `window` is None where there is only one.

    `series` is the same object until the window changes. `others` are the agent's numbers that are of no window, as
    (instrument, attributes of its own, value); where there are several windows, they stand alone.
    """

    key: AgentKey
    window: str | None
    series: Series
    others: tuple[tuple[str, tuple[tuple[str, str], ...], float], ...]


def slices(engine: Engine) -> Iterator[list[Shown]]:
    """All agents, some at a time; each as of one moment."""
    keys = engine.read(lambda fleet: fleet.keys()) or []
    for start in range(0, len(keys), SLICE):
        some = keys[start : start + SLICE]
        _wake(engine, some)
        yield engine.read(lambda fleet, some=some: [one for key in some for one in _shown(engine, fleet, key)]) or []


def _wake(engine: Engine, keys: Sequence[AgentKey]) -> None:
    """Read agents back that nobody has asked for since a restart, each in a turn of its own: it takes milliseconds."""
    if engine.read(lambda fleet: fleet.asleep):
        for key in keys:
            engine.read(lambda fleet, key=key: fleet.told(key) is not None)


def _shown(engine: Engine, fleet: Fleet, key: AgentKey) -> Iterator[Shown]:
    told = fleet.told(key)
    if told is not None:
        several = len(told.windows) > 1
        last = () if told.last_run_ns is None else ((names.LAST_RUN.name, (), told.last_run_ns / 1e9),)
        others = (*last, *_beside(engine, key))
        if several:
            yield Shown(key, None, (), others)
            others = ()
        for name, series in told.windows.items():
            yield Shown(key, name if several else None, series, others)


def _beside(engine: Engine, key: AgentKey) -> Iterator[tuple[str, tuple[tuple[str, str], ...], float]]:
    """An agent's numbers that are of no window: its recent sessions, and the evidence that it has changed."""
    recent = engine.sessions.recent(key)
    for spec, attributes, reading in recent.series() if recent is not None else ():
        if reading.value is not None:
            yield names.PREFIX + spec.name, attributes, reading.value
    detector = engine.monitor.detector(key) if engine.monitor is not None else None
    for signal, decades in detector.evidence().signals.items() if detector is not None else ():
        yield names.CHANGE_EVIDENCE.name, ((names.SIGNAL, signal),), decades


def beside_windows(engine: Engine) -> Iterator[Point]:
    """The points of all agents that are of no window: sessions and change. Within `engine.read`, or alone with it."""
    for key in engine.fleet.keys():  # noqa: SIM118  a fleet is no mapping
        series = of_agent(key)
        for name, attributes, value in _beside(engine, key):
            yield name, value, {**series, **dict(attributes)}


def of_fleet(fleet: Fleet) -> Iterator[Point]:
    """The points of all agents, in the order in which these were first seen."""
    for key in fleet.keys():  # noqa: SIM118  a fleet is no mapping
        state = fleet.agent(key)
        if state is not None:
            yield from of_state(state)


def of_state(state: AgentState) -> Iterator[Point]:
    """The points of one agent. `window` is an attribute only where there are several."""
    series = of_agent(state.key)
    if state.last_run_ns is not None:
        yield names.LAST_RUN.name, state.last_run_ns / 1e9, series
    for window in state.windows.values():
        labels = {**series, names.WINDOW: window.name} if len(state.windows) > 1 else series
        for spec, attributes, reading in window.series():
            if reading.value is not None:
                yield names.PREFIX + spec.name, reading.value, {**labels, **dict(attributes)} if attributes else labels
