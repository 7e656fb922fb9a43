"""All numbers that leave the process, as one stream that every writer reads.

Gauges are read from the engine. Counters and histograms are recorded in a registry, whose series
end with their agent: the SDK keeps every attribute set it ever saw and folds all beyond 2,000 into
one. Prometheus text and OTLP push read the same numbers.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct, convert
from msgspec.structs import astuple

from otel_reliability import metrics
from otel_reliability.change.signals import SIGNALS
from otel_reliability.engine import Engine
from otel_reliability.model.changed import ChangedKeys
from otel_reliability.model.reading import MetricSpec, Reading
from otel_reliability.model.run import AgentKey, Run
from otel_reliability.read_view import ReadView
from otel_reliability.telemetry import names
from otel_reliability.telemetry.instruments import Attributes, Point
from otel_reliability.telemetry.names import Instrument

MAX_INFO: Final = 200
"""Maximum characters of an attribute of `agent.reliability.info`."""
AGENTS_PER_SLICE: Final = 64
"""Agents that are read in one turn of the engine; between two slices it may receive spans."""
SERIES_PER_SLICE: Final = 512
"""Series that are read at a time; between two slices a recording may take the lock."""

GAUGES: Final[Mapping[str, Instrument]] = {spec.name: spec for spec in names.gauges()}
OWN: Final[Mapping[str, Instrument]] = {
    spec.name: spec for spec in (*names.SELF, *names.SERVICE, *names.KAFKA)
}
SPECS: Final[Mapping[str, Instrument]] = {
    spec.name: spec for spec in (*names.COUNTERS, *names.HISTOGRAMS, *names.STANDARD)
}
"""The instruments of a registry."""
FULL_NAMES: Final[Mapping[str, str]] = {
    spec.name: names.PREFIX + spec.name for spec in metrics.ALL_SPECS.values()
}
"""The instrument of each metric of the table."""

OwnAttributes: TypeAlias = tuple[tuple[str, str], ...]
Labels: TypeAlias = tuple[tuple[str, str | bool], ...]
"""The attributes of a series, always in the same order."""
Written = TypeVar("Written")


# --- Gauges ---------------------------------------------------------------------------------------


def of_agent(key: AgentKey) -> dict[str, str]:
    """The attributes of one agent's series. Absent parts are left out, so that no series has an
    empty label.

    >>> of_agent(AgentKey("", "shop", "prod", "support", (("service.version", "2"),)))
    {'service.name': 'shop', 'deployment.environment.name': 'prod',
     'gen_ai.agent.name': 'support', 'service.version': '2'}
    """
    found = {
        names.SERVICE_NAMESPACE: key.service_namespace,
        names.SERVICE_NAME: key.service_name,
        names.ENVIRONMENT: key.environment,
        names.AGENT_NAME: key.agent,
        **dict(key.extra),
    }
    return {name: value for name, value in found.items() if value}


class AgentGauges(NamedTuple):
    """The gauges of one agent in one window. `window` is None where there is only one.

    `series` is the same object until the window changes. `others` are the agent's numbers that
    belong to no window, as (instrument, attributes of its own, value); where there are several
    windows, they come alone.
    """

    key: AgentKey
    window: str | None
    series: Sequence[tuple[MetricSpec, OwnAttributes, Reading]]
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

    def full_points(self) -> Iterator[Point]:
        """Yield the points with all attributes."""
        shared = self.attributes
        for name, own, value in self.points():
            yield name, value, {**shared, **dict(own)} if own else shared


def agent_slices(engine: Engine) -> Iterator[list[AgentGauges]]:
    """Yield the gauges of all agents, up to `AGENTS_PER_SLICE` agents at a time, each as of one
    moment. Agents that are not loaded yet after a restart are left out: no reader waits for them.
    """
    keys = engine.read(lambda view: view.keys()) or []
    for start in range(0, len(keys), AGENTS_PER_SLICE):
        some = keys[start : start + AGENTS_PER_SLICE]
        found = engine.read(
            lambda view, some=some: [one for key in some for one in _agent_gauges(view, key)]
        )
        yield found or []


def agent_points(view: ReadView) -> Iterator[Point]:
    """Yield the points of all agents' gauges. For callers within `engine.read`, or alone with the
    engine.
    """
    for key in view.keys():  # noqa: SIM118  not a mapping
        for gauges in _agent_gauges(view, key):
            yield from gauges.full_points()


def _agent_gauges(view: ReadView, key: AgentKey) -> Iterator[AgentGauges]:
    state = view.loaded(key)
    if state is None:
        return
    several = len(state.windows) > 1
    last_run_ns = state.last_run_ns
    last_run = () if last_run_ns is None else ((names.LAST_RUN.name, (), last_run_ns / 1e9),)
    others = (*last_run, *_outside_windows(view, key))
    if several:
        yield AgentGauges(key, None, (), others)
        others = ()
    for name, window in state.windows.items():
        yield AgentGauges(key, name if several else None, window.series(), others)


def _outside_windows(view: ReadView, key: AgentKey) -> Iterator[tuple[str, OwnAttributes, float]]:
    """Yield an agent's numbers that belong to no window: recent sessions, evidence of a change, how
    it is made.
    """
    recent = view.recent_sessions(key)
    for spec, attributes, reading in recent.series() if recent is not None else ():
        if reading.value is not None:
            yield names.PREFIX + spec.name, attributes, reading.value
    for kind, share in view.open_run_usage(key).items():
        yield names.OPEN_RUN_USAGE.name, ((names.KIND, kind),), share
    detector = view.detector(key)
    if detector is None:
        return
    evidence = detector.evidence().signals
    for signal, decades in ((name, evidence[name]) for name in SIGNALS if name in evidence):
        yield names.CHANGE_EVIDENCE.name, ((names.SIGNAL, signal),), decades
    shown = detector.points.current()
    if shown:
        yield (
            names.INFO.name,
            tuple((kind, ", ".join(values)[:MAX_INFO]) for kind, values in shown.items()),
            1.0,
        )


# --- Counters and histograms ----------------------------------------------------------------------


class Exemplar(NamedTuple):
    """One measurement and the root span of its run."""

    value: float
    time_ns: int
    trace_id: bytes
    span_id: bytes


class CounterSeries(Struct, array_like=True):
    """The total of one series. `text` caches its Prometheus labels; all fields before it are
    stored.
    """

    start_ns: int
    value: int = 0
    exemplar: Exemplar | None = None
    text: str = ""


class HistogramSeries(Struct, array_like=True):
    """The buckets of one series, the last above all boundaries, with the last exemplar of each.
    Else as `CounterSeries`.
    """

    start_ns: int
    counts: list[int]
    total: float
    lowest: float
    highest: float
    exemplars: list[Exemplar | None]
    text: str = ""

    @property
    def count(self) -> int:
        return sum(self.counts)


Series: TypeAlias = CounterSeries | HistogramSeries
WriteSeries: TypeAlias = Callable[[Instrument, Labels, Series], Written]


class Registry:
    """All series, by instrument. Writers and readers hold `lock`. `wall` returns Unix nanoseconds.

    >>> registry = Registry(lambda: 7)
    >>> registry.add(names.RUNS, 2, {names.OUTCOME: "success"})
    >>> list(registry.slices(names.RUNS, lambda _, labels, series: (labels, series.value)))
    [[((('outcome', 'success'),), 2)]]
    """

    def __init__(self, wall: Callable[[], int]) -> None:
        self.lock = threading.Lock()
        self.wall = wall
        self._touched = ChangedKeys[tuple[str, Labels]]()
        self._series: dict[str, dict[Labels, Any]] = {name: {} for name in SPECS}

    def add(
        self, spec: Instrument, amount: int, attributes: Attributes, run: Run | None = None
    ) -> None:
        """Raise a counter; 0 begins its series. `run` is the exemplar."""
        labels = tuple(attributes.items())
        series: CounterSeries | None = self._series[spec.name].get(labels)
        if series is None:
            series = self._series[spec.name][labels] = CounterSeries(self.wall())
        elif not amount:
            return
        self._touched.add((spec.name, labels))
        series.value += amount
        series.exemplar = self._exemplar_of(amount, run) or series.exemplar

    def record(
        self, spec: Instrument, amount: float, attributes: Attributes, run: Run | None = None
    ) -> None:
        """Record a measurement of a histogram. A bucket holds what is not above its boundary. `run`
        is the exemplar.
        """
        labels = tuple(attributes.items())
        self._touched.add((spec.name, labels))
        series: HistogramSeries | None = self._series[spec.name].get(labels)
        if series is None:
            buckets = len(spec.boundaries) + 1
            series = HistogramSeries(
                self.wall(), [0] * buckets, 0.0, amount, amount, [None] * buckets
            )
            self._series[spec.name][labels] = series
        bucket = bisect_left(spec.boundaries, amount)
        series.counts[bucket] += 1
        series.total += amount
        series.lowest, series.highest = min(series.lowest, amount), max(series.highest, amount)
        series.exemplars[bucket] = self._exemplar_of(amount, run) or series.exemplars[bucket]

    def slices(self, spec: Instrument, write: WriteSeries[Written]) -> Iterator[list[Written]]:
        """Yield `write` of every series of an instrument, up to `SERIES_PER_SLICE` at a time."""
        all_series = self._series[spec.name]
        with self.lock:
            labels = list(all_series)
        for start in range(0, len(labels), SERIES_PER_SLICE):
            with self.lock:
                some = [
                    (one, all_series.get(one)) for one in labels[start : start + SERIES_PER_SLICE]
                ]
                written = [write(spec, one, series) for one, series in some if series is not None]
            yield written

    def keep(self, owners: Collection[Labels]) -> None:
        """End the series of all agents but these, given by their attributes."""
        with self.lock:
            for name, all_series in self._series.items():
                for labels in [
                    labels for labels in all_series if owner_of(SPECS[name], labels) not in owners
                ]:
                    del all_series[labels]
                    self._touched.add((name, labels))

    def labels(self, spec: Instrument) -> list[Labels]:
        return list(self._series[spec.name])

    def take_touched(self) -> Iterator[tuple[str, Labels, Any]]:
        """Yield the series that changed since the last call: instrument, attributes, plain data
        (None: it ended).

        For the thread that records. The data are to be packed before it records again: they hold
        lists of the series.
        """
        for name, labels in self._touched.take():
            series: Series | None = self._series[name].get(labels)
            yield name, labels, None if series is None else astuple(series)[:-1]

    def restore(self, state: Iterable[tuple[str, Labels, Any]]) -> None:
        """Replace all series by those that `take_touched` returned, of the instruments that there
        are now.
        """
        with self.lock:
            for found in self._series.values():
                found.clear()
            self._touched.clear()
            for name, labels, data in state:
                spec = SPECS.get(name)
                if spec is not None and spec.kind == "counter":
                    self._series[name][labels] = convert(data, CounterSeries)
                elif spec is not None and len(data[1]) == len(spec.boundaries) + 1:
                    self._series[name][labels] = convert(data, HistogramSeries)

    def _exemplar_of(self, value: float, run: Run | None) -> Exemplar | None:
        if run is None or run.root_span_id is None:
            return None
        return Exemplar(value, self.wall(), run.trace_id, run.root_span_id)


def owner_of(spec: Instrument, labels: Labels) -> Labels:
    """Return the attributes of the agent whose series it is: all but the instrument's own.

    >>> owner_of(names.RUNS, (("gen_ai.agent.name", "support"), ("outcome", "success")))
    (('gen_ai.agent.name', 'support'),)
    """
    return (
        tuple(label for label in labels if label[0] not in spec.attributes)
        if spec.attributes
        else labels
    )


# --- Everything -----------------------------------------------------------------------------------


class Exposition:
    """The numbers of engines, each with its registry: one, or one for each partition of a worker.
    `own` yields self-telemetry.
    """

    def __init__(
        self,
        sources: Callable[[], Iterable[tuple[Engine, Registry]]],
        own: Callable[[], Iterable[Point]],
    ) -> None:
        self._sources = sources
        self.own = own

    def gauges(self) -> Iterator[list[AgentGauges]]:
        """Yield the gauges of agents, some agents at a time."""
        for engine, _ in self._sources():
            yield from agent_slices(engine)

    def series(
        self, write: WriteSeries[Written], left_out: Container[str] = ()
    ) -> Iterator[tuple[Instrument, list[Written]]]:
        """Yield `write` of the counters and histograms, some series of an instrument at a time, but
        for the instruments that are left out.
        """
        registries = [registry for _, registry in self._sources()]
        for spec in SPECS.values():
            if spec.name in left_out:
                continue
            for registry in registries:
                for written in registry.slices(spec, write):
                    yield spec, written
