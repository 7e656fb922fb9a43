"""The service's counters and histograms: series that end with their agent, without a limit of attribute sets.

The SDK keeps every attribute set it ever saw and folds all beyond 2,000 into one. Here a series lives as long as its agent. The
Prometheus text and the OTLP push read the same registry.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from otel_reliability.model.run import Run
from otel_reliability.telemetry import names
from otel_reliability.telemetry.names import Instrument

SPECS: Final[Mapping[str, Instrument]] = {
    spec.name: spec for spec in (*names.COUNTERS, *names.HISTOGRAMS, *names.STANDARD)
}
"""The instruments of a registry."""

Attributes: TypeAlias = Mapping[str, str | bool]
Labels: TypeAlias = tuple[tuple[str, str | bool], ...]
"""The attributes of a series, always in the same order."""
Written = TypeVar("Written")

SLICE: Final = 512
"""Series that are read at a time; between two slices a recording may take the lock."""


class Exemplar(NamedTuple):
    """One measurement and the root span of its run."""

    value: float
    time_ns: int
    trace_id: bytes
    span_id: bytes


class CounterSeries:
    """The total of one series. `text` caches its Prometheus labels."""

    __slots__ = ("exemplar", "start_ns", "text", "value")

    def __init__(self, start_ns: int) -> None:
        self.text = ""
        self.start_ns = start_ns
        self.value = 0
        self.exemplar: Exemplar | None = None

    def data(self) -> list[Any]:
        """Return all of it in plain values."""
        return [self.start_ns, self.value, self.exemplar]

    @classmethod
    def of(cls, data: Sequence[Any]) -> CounterSeries:
        """Return the series of which `data` returned this."""
        series = cls(data[0])
        series.value, series.exemplar = data[1], _exemplar(data[2])
        return series


class HistogramSeries:
    """The buckets of one series, the last above all boundaries, with the last exemplar of each. `text` as `CounterSeries`."""

    __slots__ = ("counts", "exemplars", "highest", "lowest", "start_ns", "text", "total")

    def __init__(self, start_ns: int, buckets: int) -> None:
        self.text = ""
        self.start_ns = start_ns
        self.counts = [0] * buckets
        self.total = self.lowest = self.highest = 0.0
        self.exemplars: list[Exemplar | None] = [None] * buckets

    @property
    def count(self) -> int:
        """Number of measurements."""
        return sum(self.counts)

    def data(self) -> list[Any]:
        """Return all of it in plain values."""
        return [self.start_ns, list(self.counts), self.total, self.lowest, self.highest, list(self.exemplars)]

    @classmethod
    def of(cls, data: Sequence[Any]) -> HistogramSeries:
        """Return the series of which `data` returned this."""
        series = cls(data[0], len(data[1]))
        series.counts, series.total, series.lowest, series.highest = list(data[1]), *data[2:5]
        series.exemplars = list(map(_exemplar, data[5]))
        return series


def _exemplar(data: Sequence[Any] | None) -> Exemplar | None:
    return None if data is None else Exemplar(*data)


Series: TypeAlias = CounterSeries | HistogramSeries


class Registry:
    """All series, by instrument. Writers and readers hold `lock`. `wall` returns Unix nanoseconds.

    >>> registry = Registry(lambda: 7)
    >>> registry.add(names.RUNS, 2, {names.OUTCOME: "success"})
    >>> [(spec.name, series) for spec, series in registry.slices(lambda _, labels, series: (labels, series.value))]
    [('agent.reliability.runs', [((('outcome', 'success'),), 2)])]
    """

    def __init__(self, wall: Callable[[], int]) -> None:
        self.lock = threading.Lock()
        self.wall = wall
        self._touched: set[tuple[str, Labels]] = set()
        self._counters: dict[str, dict[Labels, CounterSeries]] = {spec.name: {} for spec in names.COUNTERS}
        self._histograms: dict[str, dict[Labels, HistogramSeries]] = {
            spec.name: {} for spec in (*names.HISTOGRAMS, *names.STANDARD)
        }

    def add(self, spec: Instrument, amount: int, attributes: Attributes, run: Run | None = None) -> None:
        """Raise a counter; 0 begins its series. `run` is the exemplar."""
        labels = tuple(attributes.items())
        series = self._counters[spec.name].get(labels)
        if series is None:
            series = self._counters[spec.name][labels] = CounterSeries(self.wall())
        elif not amount:
            return
        self._touched.add((spec.name, labels))
        series.value += amount
        series.exemplar = self._exemplar_of(amount, run) or series.exemplar

    def record(self, spec: Instrument, amount: float, attributes: Attributes, run: Run | None = None) -> None:
        """Record a measurement of a histogram. A bucket holds what is not above its boundary. `run` is the exemplar."""
        labels = tuple(attributes.items())
        self._touched.add((spec.name, labels))
        series = self._histograms[spec.name].get(labels)
        if series is None:
            series = HistogramSeries(self.wall(), len(spec.boundaries) + 1)
            series.lowest = series.highest = amount
            self._histograms[spec.name][labels] = series
        bucket = bisect_left(spec.boundaries, amount)
        series.counts[bucket] += 1
        series.total += amount
        series.lowest, series.highest = min(series.lowest, amount), max(series.highest, amount)
        series.exemplars[bucket] = self._exemplar_of(amount, run) or series.exemplars[bucket]

    def slices(
        self, write: Callable[[Instrument, Labels, Series], Written]
    ) -> Iterator[tuple[Instrument, list[Written]]]:
        """Yield `write` of every series, up to `SLICE` of one instrument at a time."""
        for spec, all_series in self._all():
            with self.lock:
                labels = list(all_series)
            for start in range(0, len(labels), SLICE):
                with self.lock:
                    some = [(one, all_series.get(one)) for one in labels[start : start + SLICE]]
                    written = [write(spec, one, series) for one, series in some if series is not None]
                yield spec, written

    def keep(self, owners: Collection[Labels]) -> None:
        """End the series of all agents but these, given by their attributes."""
        with self.lock:
            for spec, all_series in self._all():
                for labels in [labels for labels in all_series if owner_of(spec, labels) not in owners]:
                    del all_series[labels]
                    self._touched.add((spec.name, labels))

    def labels(self, spec: Instrument) -> list[Labels]:
        """Return the attributes of every series of an instrument."""
        return list(self._counters.get(spec.name) or self._histograms.get(spec.name) or {})

    def take_touched(self) -> Iterator[tuple[str, Labels, Any]]:
        """Yield the series that changed since the last call: instrument, attributes, plain data (None: it ended).

        For the thread that records.
        """
        touched, self._touched = self._touched, set()
        for name, labels in touched:
            series = (self._counters if name in self._counters else self._histograms)[name].get(labels)
            yield name, labels, None if series is None else series.data()

    def restore(self, state: Iterable[tuple[str, Labels, Any]]) -> None:
        """Replace all series by those that `take_touched` returned, of the instruments that there are now."""
        with self.lock:
            for _, found in self._all():
                found.clear()
            self._touched.clear()
            for name, labels, data in state:
                if name in self._counters:
                    self._counters[name][labels] = CounterSeries.of(data)
                elif name in self._histograms and len(data[1]) == len(SPECS[name].boundaries) + 1:
                    self._histograms[name][labels] = HistogramSeries.of(data)

    def _all(self) -> Iterator[tuple[Instrument, dict[Labels, Any]]]:
        for found in (self._counters, self._histograms):
            for name, series in found.items():
                yield SPECS[name], series

    def _exemplar_of(self, value: float, run: Run | None) -> Exemplar | None:
        if run is None or run.root_span_id is None:
            return None
        return Exemplar(value, self.wall(), run.trace_id, run.root_span_id)


def owner_of(spec: Instrument, labels: Labels) -> Labels:
    """Return the attributes of the agent whose series it is: all but the instrument's own.

    >>> owner_of(names.RUNS, (("gen_ai.agent.name", "support"), ("outcome", "success")))
    (('gen_ai.agent.name', 'support'),)
    """
    return tuple(label for label in labels if label[0] not in spec.attributes) if spec.attributes else labels
