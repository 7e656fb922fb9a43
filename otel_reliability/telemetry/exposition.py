"""All numbers that leave the process, as one stream that every writer reads: gauges of agents, the registry, self-telemetry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from otel_reliability import metrics
from otel_reliability.engine import Engine
from otel_reliability.model.reading import MetricSpec, Reading
from otel_reliability.model.run import AgentKey
from otel_reliability.telemetry import names
from otel_reliability.telemetry.attributes import of_agent
from otel_reliability.telemetry.instruments import Point
from otel_reliability.telemetry.names import Instrument
from otel_reliability.telemetry.registry import Labels, Registry, Series, Written
from otel_reliability.windows.agents import AgentRegistry

MAX_INFO: Final = 200
"""Maximum characters of an attribute of `agent.reliability.info`."""
SLICE: Final = 64
"""Agents that are read in one turn of the engine; between two slices it may receive spans."""

GAUGES: Final[Mapping[str, Instrument]] = {spec.name: spec for spec in names.gauges()}
OWN: Final[Mapping[str, Instrument]] = {spec.name: spec for spec in (*names.SELF, *names.SERVICE, *names.KAFKA)}
FULL_NAMES: Final[Mapping[str, str]] = {spec.name: names.PREFIX + spec.name for spec in metrics.ALL_SPECS}
"""The instrument of each metric of the table."""

OwnAttributes: TypeAlias = tuple[tuple[str, str], ...]
WindowSeries: TypeAlias = Sequence[tuple[MetricSpec, OwnAttributes, Reading]]


class AgentGauges(NamedTuple):
    """The gauges of one agent in one window. `window` is None where there is only one.

    `series` is the same object until the window changes. `others` are the agent's numbers that belong to no window, as
    (instrument, attributes of its own, value); where there are several windows, they come alone.
    """

    key: AgentKey
    window: str | None
    series: WindowSeries
    others: tuple[tuple[str, OwnAttributes, float], ...]

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes that all its points share."""
        agent = of_agent(self.key)
        return agent if self.window is None else {**agent, names.WINDOW: self.window}

    def points(self) -> Iterator[tuple[str, OwnAttributes, float]]:
        """Yield (instrument, attributes of its own, value)."""
        for spec, own, reading in self.series:
            if reading.value is not None:
                yield FULL_NAMES[spec.name], own, reading.value
        yield from self.others


def agent_slices(engine: Engine) -> Iterator[list[AgentGauges]]:
    """Yield the gauges of all agents, up to `SLICE` agents at a time, each as of one moment."""
    keys = engine.read(lambda registry: registry.keys()) or []
    for start in range(0, len(keys), SLICE):
        some = keys[start : start + SLICE]
        if engine.read(lambda registry: registry.unloaded):  # to load an agent takes milliseconds: one in a turn
            for key in some:
                engine.read(lambda registry, key=key: registry.agent(key) is not None)
        found = engine.read(
            lambda registry, some=some: [one for key in some for one in _agent_gauges(engine, registry, key)]
        )
        yield found or []


def agent_points(engine: Engine, registry: AgentRegistry) -> Iterator[Point]:
    """Yield the points of all agents' gauges. For callers within `engine.read`, or alone with the engine."""
    for key in registry.keys():  # noqa: SIM118  not a mapping
        for gauges in _agent_gauges(engine, registry, key):
            shared = gauges.attributes
            for name, own, value in gauges.points():
                yield name, value, {**shared, **dict(own)} if own else shared


def _agent_gauges(engine: Engine, registry: AgentRegistry, key: AgentKey) -> Iterator[AgentGauges]:
    state = registry.agent(key)
    if state is None:
        return
    several = len(state.windows) > 1
    last_run_ns = state.last_run_ns
    last_run = () if last_run_ns is None else ((names.LAST_RUN.name, (), last_run_ns / 1e9),)
    others = (*last_run, *_outside_windows(engine, key))
    if several:
        yield AgentGauges(key, None, (), others)
        others = ()
    for name, window in state.windows.items():
        yield AgentGauges(key, name if several else None, window.series(), others)


def _outside_windows(engine: Engine, key: AgentKey) -> Iterator[tuple[str, OwnAttributes, float]]:
    """Yield an agent's numbers that belong to no window: recent sessions, evidence of a change, how it is made."""
    recent = engine.sessions.recent(key)
    for spec, attributes, reading in recent.series() if recent is not None else ():
        if reading.value is not None:
            yield names.PREFIX + spec.name, attributes, reading.value
    for kind, share in engine.watched.most_extreme.get(key, {}).items():
        yield names.OPEN_RUN_USAGE.name, ((names.KIND, kind),), share
    detector = engine.monitor.detector(key) if engine.monitor is not None else None
    if detector is None:
        return
    for signal, decades in detector.evidence().signals.items():
        yield names.CHANGE_EVIDENCE.name, ((names.SIGNAL, signal),), decades
    shown = detector.points.current()
    if shown:
        yield names.INFO.name, tuple((kind, ", ".join(values)[:MAX_INFO]) for kind, values in shown.items()), 1.0


class Exposition:
    """The numbers of one engine and its registry. `own` yields self-telemetry."""

    def __init__(self, engine: Engine, registry: Registry, own: Callable[[], Iterable[Point]]) -> None:
        self._engine, self._registry, self._own = engine, registry, own

    def gauges(self) -> Iterator[list[AgentGauges]]:
        """Yield the gauges of agents, some agents at a time."""
        return agent_slices(self._engine)

    def series(
        self, write: Callable[[Instrument, Labels, Series], Written]
    ) -> Iterator[tuple[Instrument, list[Written]]]:
        """Yield `write` of the counters and histograms, some series at a time."""
        return self._registry.slices(write)

    def own(self) -> dict[str, list[Point]]:
        """Return self-telemetry by instrument."""
        found: dict[str, list[Point]] = {}
        for point in self._own():
            found.setdefault(point[0], []).append(point)
        return found
