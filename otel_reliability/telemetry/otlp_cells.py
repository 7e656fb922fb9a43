"""Counters and histograms as OTLP points: as totals since their start, or as what is new since the last sending."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from otel_reliability.telemetry import names
from otel_reliability.telemetry import otlp_bytes as wire
from otel_reliability.telemetry.exposition import OWN
from otel_reliability.telemetry.instruments import Point as OwnPoint
from otel_reliability.telemetry.names import Instrument
from otel_reliability.telemetry.otlp_gauges import NUMBER
from otel_reliability.telemetry.otlp_packer import Amount, Point
from otel_reliability.telemetry.series import Cell, Labels, Spread, Tally

HISTOGRAM: Final = 9
"""The field of attributes in histogram points."""
Temporality: TypeAlias = Literal["cumulative", "delta", "lowmemory"]

_RECORDED: Final = (*names.COUNTERS, *names.HISTOGRAMS, *names.STANDARD)
_BOUNDS: Final = {spec.name: wire.bounds_of(spec.boundaries) for spec in _RECORDED if spec.kind == "histogram"}
_DELTAS: Final[dict[Temporality, frozenset[str]]] = {
    "cumulative": frozenset(),
    "lowmemory": frozenset(spec.name for spec in _RECORDED),
    "delta": frozenset(spec.name for spec in (*_RECORDED, *OWN.values()) if spec.kind in {"counter", "histogram"}),
}
"""Which instruments are sent as what is new, as OpenTelemetry specifies each preference."""


class Cells:
    """Writes points for one receiver, and remembers what it was told of the series that are sent as what is new."""

    def __init__(self, temporality: Temporality, start_ns: int) -> None:
        self._deltas = _DELTAS[temporality]
        self._amounts: dict[tuple[str, Labels], Amount] = {}
        self._start_ns = start_ns
        self._sent_ns = 0
        self._now_ns = start_ns

    def begin(self, now_ns: int) -> None:
        """A sending begins."""
        self._now_ns = now_ns

    def temporality(self, spec: Instrument) -> int:
        """How points of an instrument are to be understood."""
        return wire.DELTA if spec.name in self._deltas else wire.CUMULATIVE

    def taken(self, amount: Amount) -> None:
        """The receiver has taken the point of a series."""
        self._amounts[amount.name, amount.labels] = amount

    def done(self) -> None:
        """The receiver has taken everything."""
        self._sent_ns = self._now_ns

    def forget(self, spec: Instrument, labels: Labels) -> None:
        """A series has ended."""
        self._amounts.pop((spec.name, labels), None)

    def point(self, spec: Instrument, labels: Labels, cell: Cell) -> Point | None:
        """The point of a series; None where only what is new is to be told, and nothing is."""
        if not cell.fields:
            cell.fields = wire.attributes(HISTOGRAM if isinstance(cell, Spread) else NUMBER, labels)
        if isinstance(cell, Spread):
            return self._spread(spec, labels, cell)
        return self._tally(spec, labels, cell)

    def own(self, spec: Instrument, point: OwnPoint) -> Point:
        """A point of self-telemetry."""
        _, value, attributes = point
        fields = wire.attributes(NUMBER, attributes.items())
        if spec.kind == "gauge":
            return wire.field(1, fields + wire.moment(self._now_ns) + wire.number_value(value)), None
        labels = tuple(attributes.items())
        if spec.name not in self._deltas:
            return wire.field(1, fields + wire.times(self._start_ns, self._now_ns) + wire.number_value(value)), None
        amount = Amount(spec.name, labels, (int(value),), 0.0, self._now_ns)
        before = self._before(amount, self._start_ns)
        new = amount.counts[0] - before.counts[0]
        return wire.field(1, fields + wire.times(before.time_ns, self._now_ns) + wire.number_value(new)), amount

    def _tally(self, spec: Instrument, labels: Labels, cell: Tally) -> Point | None:
        value, since, amount = cell.value, cell.start_ns, None
        if spec.name in self._deltas:
            amount = Amount(spec.name, labels, (value,), 0.0, self._now_ns)
            before = self._before(amount, since)
            value, since = value - before.counts[0], before.time_ns
            if not value:
                return None
        one = cell.exemplar
        example = wire.exemplar(5, one) if one is not None and one.time_ns >= self._sent_ns else b""
        times = wire.times(since, self._now_ns)
        return wire.field(1, cell.fields + times + wire.number_value(value) + example), amount

    def _spread(self, spec: Instrument, labels: Labels, cell: Spread) -> Point | None:
        counts, total, since = tuple(cell.counts), cell.total, cell.start_ns
        rest, amount = wire.extremes(cell), None
        if spec.name in self._deltas:
            amount = Amount(spec.name, labels, counts, total, self._now_ns)
            before = self._before(amount, since)
            counts = tuple(new - old for new, old in zip(counts, before.counts, strict=True))
            total, since, rest = total - before.total, before.time_ns, b""
            if not any(counts):
                return None
        examples = (one for one in cell.exemplars if one is not None and one.time_ns >= self._sent_ns)
        rest += b"".join(wire.exemplar(8, one) for one in examples)
        numbers = wire.spread(counts, total, _BOUNDS[spec.name])
        times = wire.times(since, self._now_ns)
        return wire.field(1, cell.fields + times + numbers + rest), amount

    def _before(self, amount: Amount, start_ns: int) -> Amount:
        """What the receiver knows of a series."""
        nothing = amount._replace(counts=(0,) * len(amount.counts), total=0.0, time_ns=start_ns)
        found = self._amounts.get((amount.name, amount.labels), nothing)
        return found if sum(found.counts) <= sum(amount.counts) else nothing
