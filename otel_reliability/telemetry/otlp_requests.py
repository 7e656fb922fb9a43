"""What an exposition tells → OTLP metrics requests, each below a size that every receiver takes.

Series that have ended are told once with the flag that says so: without it a receiver would show their last value for
minutes. What has ended is found by comparing with what was sent before, so it is remembered until a sending succeeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from otel_reliability.model.run import AgentKey
from otel_reliability.telemetry import names
from otel_reliability.telemetry import otlp_bytes as wire
from otel_reliability.telemetry.attributes import of_agent
from otel_reliability.telemetry.exposition import FULL_NAMES, GAUGES, OWN, Exposition
from otel_reliability.telemetry.names import Instrument
from otel_reliability.telemetry.points import Series, Shown
from otel_reliability.telemetry.series import Cell, Labels, Spread

LARGEST: Final = 3_500_000
"""Bytes of a request, at most: gRPC receivers take 4 MB unless they are told otherwise."""
Temporality: TypeAlias = Literal["cumulative", "delta", "lowmemory"]

_NUMBER, _HISTOGRAM = 7, 9
"""The fields of attributes, in number points and in histogram points."""
_BOUNDS: Final = {spec.name: wire.bounds_of(spec.boundaries) for spec in (*names.HISTOGRAMS, *names.STANDARD)}

Place: TypeAlias = tuple[AgentKey, str | None]
SeriesId: TypeAlias = tuple[str, Labels]
Amount: TypeAlias = tuple[int, ...]
"""What a series held when it was last sent: its value, or its buckets."""


class Request(NamedTuple):
    """One request, and what its receiver knows once it has taken it."""

    body: bytes
    amounts: Mapping[SeriesId, tuple[Amount, float, int]]


class _Agent(NamedTuple):
    """What was told of an agent in a window."""

    labels: bytes
    series: Series
    others: tuple[tuple[str, tuple[tuple[str, str], ...], float], ...]


class Requests:
    """Writes requests for one receiver, and remembers what it was told."""

    def __init__(
        self,
        exposition: Exposition,
        resource: Mapping[str, str],
        *,
        temporality: Temporality = "cumulative",
        largest: int = LARGEST,
    ) -> None:
        self._exposition = exposition
        self._resource = wire.field(1, wire.attributes(1, resource.items()))
        self._largest = largest
        self._deltas: frozenset[str] = _delta_instruments(temporality)
        self._told: dict[Place, _Agent] = {}
        self._telling: dict[Place, _Agent] = {}
        self._amounts: dict[SeriesId, tuple[Amount, float, int]] = {}
        self._own_labels: dict[str, bytes] = {}
        self._ended: dict[tuple[str, bytes], None] = {}
        self._start_ns = exposition.book.wall()

    def write(self) -> Iterator[Request]:
        """The requests of one sending."""
        now_ns = self._exposition.book.wall()
        packer = _Packer(self._resource, self._largest)
        for spec, points in self._gauges(wire.moment(now_ns)):
            yield from packer.add(spec, points, wire.CUMULATIVE)
        yield from self._cells(packer, now_ns)
        yield from self._own(packer, now_ns)
        yield from self._ends(packer, now_ns)
        yield from packer.rest()

    def taken(self, request: Request) -> None:
        """The receiver has taken one request."""
        self._amounts.update(request.amounts)

    def done(self) -> None:
        """The receiver has taken all requests of a sending."""
        self._told = self._telling
        self._ended.clear()

    # --- Gauges of agents ---------------------------------------------------------------------------------------------

    def _gauges(self, moment: bytes) -> Iterator[tuple[Instrument, list[bytes]]]:
        points: dict[str, list[bytes]] = {name: [] for name in GAUGES}
        self._telling = {}
        for some in self._exposition.gauges():
            for shown in some:
                self._point(points, shown, moment)
        for place in self._told.keys() - self._telling.keys():
            self._end(self._told[place], frozenset())
        for name, found in points.items():
            if found:
                yield GAUGES[name], found

    def _point(self, points: dict[str, list[bytes]], shown: Shown, moment: bytes) -> None:
        place = (shown.key, shown.window)
        before = self._told.get(place)
        labels = _labels_of(shown) if before is None else before.labels
        now = self._telling[place] = _Agent(labels, shown.series, shown.others)
        short, double, extras = _SHORT, _double, _EXTRAS
        for spec, attributes, reading in shown.series:
            extra = (extras.get(attributes) or _extra(attributes)) if attributes else b""
            point = labels + extra + b"\x21" + double(reading.value) + moment
            points[FULL_NAMES[spec.name]].append(b"\x0a" + short[len(point)] + point)
        for name, attributes, value in shown.others:
            points[name].append(wire.field(1, labels + _extra(attributes) + wire.number_value(value) + moment))
        if before is not None and before.series is not now.series:
            self._end(before, _names_of(now))

    def _end(self, gone: _Agent, still: frozenset[tuple[str, tuple[tuple[str, str], ...]]]) -> None:
        for name, attributes in _names_of(gone) - still:
            self._ended[name, gone.labels + _extra(attributes)] = None

    # --- Counters and histograms --------------------------------------------------------------------------------------

    def _cells(self, packer: _Packer, now_ns: int) -> Iterator[Request]:
        def write(spec: Instrument, labels: Labels, cell: Cell) -> bytes:
            return self._cell(packer, spec, labels, cell, now_ns)

        for spec, some in self._exposition.cells(write):
            temporality = wire.DELTA if spec.name in self._deltas else wire.CUMULATIVE
            yield from packer.add(spec, filter(None, some), temporality)
        while self._exposition.book.ended:
            spec, labels = self._exposition.book.ended.popleft()
            self._amounts.pop((spec.name, labels), None)
            self._ended[spec.name, wire.attributes(_HISTOGRAM if spec.kind == "histogram" else _NUMBER, labels)] = None

    def _cell(self, packer: _Packer, spec: Instrument, labels: Labels, cell: Cell, now_ns: int) -> bytes:
        """A point, as a field; nothing where nothing is new and only that is to be told."""
        amount: Amount = tuple(cell.counts) if isinstance(cell, Spread) else (cell.value,)
        total = cell.total if isinstance(cell, Spread) else 0.0
        before, sum_before, since = self._amounts.get((spec.name, labels), ((0,) * len(amount), 0.0, cell.start_ns))
        is_delta = spec.name in self._deltas
        if is_delta and amount == before:
            return b""
        packer.amounts[spec.name, labels] = (amount, total, now_ns)
        told = tuple(new - old for new, old in zip(amount, before, strict=True)) if is_delta else amount
        times = wire.times(since if is_delta else cell.start_ns, now_ns)
        if not isinstance(cell, Spread):
            one = cell.exemplar
            examples = wire.exemplar(5, one) if one is not None and one.time_ns > since else b""
            return wire.field(1, wire.attributes(_NUMBER, labels) + times + wire.number_value(told[0]) + examples)
        numbers = wire.spread(told, total - sum_before if is_delta else total, _BOUNDS[spec.name])
        extremes = b"" if is_delta else wire.extremes(cell)
        examples = b"".join(wire.exemplar(8, one) for one in cell.exemplars if one is not None and one.time_ns > since)
        return wire.field(1, wire.attributes(_HISTOGRAM, labels) + times + numbers + extremes + examples)

    # --- Ourselves ----------------------------------------------------------------------------------------------------

    def _own(self, packer: _Packer, now_ns: int) -> Iterator[Request]:
        for name, points in self._exposition.own().items():
            spec, found = OWN[name], list[bytes]()
            for _, value, attributes in points:
                labels: Labels = tuple(attributes.items())
                since, told = self._start_ns, value
                if name in self._deltas:
                    (before,), _, since = self._amounts.get((name, labels), ((0,), 0.0, self._start_ns))
                    packer.amounts[name, labels] = ((int(value),), 0.0, now_ns)
                    told = int(value) - before
                times = wire.moment(now_ns) if spec.kind == "gauge" else wire.times(since, now_ns)
                found.append(wire.field(1, wire.attributes(_NUMBER, labels) + times + wire.number_value(told)))
            yield from packer.add(spec, found, wire.DELTA if name in self._deltas else wire.CUMULATIVE)

    # --- What has ended -----------------------------------------------------------------------------------------------

    def _ends(self, packer: _Packer, now_ns: int) -> Iterator[Request]:
        for (name, labels), _ in sorted(self._ended.items()):
            spec = _SPECS[name]
            flag = wire.NO_VALUE_IN_HISTOGRAM if spec.kind == "histogram" else wire.NO_VALUE
            temporality = wire.DELTA if name in self._deltas else wire.CUMULATIVE
            yield from packer.add(spec, [wire.field(1, labels + wire.moment(now_ns) + flag)], temporality)


class _Packer:
    """Fills requests with points, metric by metric, and gives each one that is full."""

    def __init__(self, resource: bytes, largest: int) -> None:
        self.amounts: dict[SeriesId, tuple[Amount, float, int]] = {}
        self._resource, self._largest = resource, largest
        self._metrics: list[bytes] = []
        self._size = 0
        self._open: tuple[Instrument, int] | None = None
        self._points: list[bytes] = []

    def add(self, spec: Instrument, points: Iterable[bytes], temporality: int) -> Iterator[Request]:
        """More points of a metric."""
        if self._open != (spec, temporality):
            self._close_metric()
            self._open = (spec, temporality)
        for point in points:
            if self._size + len(point) > self._largest and self._size:
                yield self._request()
                self._open = (spec, temporality)
            self._points.append(point)
            self._size += len(point)

    def rest(self) -> Iterator[Request]:
        """The last request."""
        self._close_metric()
        if self._metrics:
            yield self._request()

    def _close_metric(self) -> None:
        if self._open is not None and self._points:
            spec, temporality = self._open
            head = wire.text(1, spec.name) + wire.text(2, spec.description) + wire.text(3, spec.unit)
            self._metrics.append(wire.field(2, head + wire.DATA[spec.kind](b"".join(self._points), temporality)))
            self._size += len(head)
        self._points, self._open = [], None

    def _request(self) -> Request:
        self._close_metric()
        scope = wire.field(2, wire.field(1, wire.text(1, names.SCOPE)) + b"".join(self._metrics))
        request = Request(wire.field(1, self._resource + scope), self.amounts)
        self._metrics, self._size, self.amounts = [], 0, {}
        return request


def _delta_instruments(temporality: Temporality) -> frozenset[str]:
    """Which instruments are sent as what is new: counters and histograms; those that are observed only for `delta`."""
    recorded = {spec.name for spec in (*names.COUNTERS, *names.HISTOGRAMS, *names.STANDARD)}
    observed = {spec.name for spec in OWN.values() if spec.kind == "counter"}
    return frozenset({"cumulative": set[str](), "delta": recorded | observed, "lowmemory": recorded}[temporality])


def _labels_of(shown: Shown) -> bytes:
    window: Sequence[tuple[str, str]] = () if shown.window is None else ((names.WINDOW, shown.window),)
    return wire.attributes(_NUMBER, (*of_agent(shown.key).items(), *window))


def _names_of(agent: _Agent) -> frozenset[tuple[str, tuple[tuple[str, str], ...]]]:
    """The series of an agent in a window."""
    series = ((FULL_NAMES[spec.name], attributes) for spec, attributes, _ in agent.series)
    return frozenset((*series, *((name, attributes) for name, attributes, _ in agent.others)))


def _extra(attributes: tuple[tuple[str, str], ...]) -> bytes:
    """Attributes of one number of an agent: there are few of them (a tier, a k), so they are kept."""
    found = _EXTRAS.get(attributes)
    if found is None:
        found = wire.attributes(_NUMBER, attributes)
        if len(_EXTRAS) < _MOST_EXTRAS:
            _EXTRAS[attributes] = found
    return found


_MOST_EXTRAS: Final = 4_096
_EXTRAS: Final[dict[tuple[tuple[str, str], ...], bytes]] = {}
_SPECS: Final = {**GAUGES, **{spec.name: spec for spec in (*names.COUNTERS, *names.HISTOGRAMS, *names.STANDARD)}}
