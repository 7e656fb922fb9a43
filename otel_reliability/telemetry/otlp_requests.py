"""What an exposition tells → OTLP metrics requests, for one receiver.

Series that have ended are told once more, with the flag that says so: without it a receiver would show their last value for
minutes. What has ended is remembered until a sending has succeeded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from otel_reliability.telemetry import otlp_bytes as wire
from otel_reliability.telemetry.exposition import GAUGES, OWN, Exposition
from otel_reliability.telemetry.names import Instrument
from otel_reliability.telemetry.otlp_cells import HISTOGRAM, Cells, Temporality
from otel_reliability.telemetry.otlp_gauges import NUMBER, Gauges
from otel_reliability.telemetry.otlp_packer import LARGEST, Packer, Point, Request
from otel_reliability.telemetry.series import SPECS

_ALL: Final = {**GAUGES, **SPECS}


class Requests:
    """Writes requests. Call `taken` for each that was taken, and `done` when all were."""

    def __init__(
        self,
        exposition: Exposition,
        resource: Mapping[str, str],
        temporality: Temporality = "cumulative",
        largest: int = LARGEST,
    ) -> None:
        self._exposition, self._book = exposition, exposition.book
        self._resource = wire.field(1, wire.attributes(1, resource.items()))
        self._largest = largest
        self._gauges = Gauges()
        self._cells = Cells(temporality, self._book.wall())
        self._ended: set[tuple[str, bytes]] = set()

    def write(self) -> Iterator[Request]:
        """The requests of one sending."""
        now_ns = self._book.wall()
        self._cells.begin(now_ns)
        packer = Packer(self._resource, self._largest)
        for name, points in self._gauges.write(self._exposition.gauges(), wire.moment(now_ns)).items():
            yield from packer.add(GAUGES[name], points)
        for spec, found in self._exposition.cells(self._cells.point):
            yield from self._add(packer, spec, [point for point in found if point is not None])
        for name, own in self._exposition.own().items():
            yield from self._add(packer, OWN[name], [self._cells.own(OWN[name], one) for one in own])
        yield from self._ends(packer, wire.moment(now_ns))
        yield from packer.rest()

    def taken(self, request: Request) -> None:
        """The receiver has taken one request."""
        for amount in request.amounts:
            self._cells.taken(amount)

    def done(self) -> None:
        """The receiver has taken all requests of a sending."""
        self._gauges.done()
        self._cells.done()
        self._ended.clear()

    def _add(self, packer: Packer, spec: Instrument, points: list[Point]) -> Iterator[Request]:
        temporality = self._cells.temporality(spec)
        if temporality == wire.DELTA:
            return packer.add_new(spec, points, temporality)
        return packer.add(spec, [point for point, _ in points], temporality)

    def _ends(self, packer: Packer, moment: bytes) -> Iterator[Request]:
        while self._book.ended:
            spec, labels = self._book.ended.popleft()
            self._cells.forget(spec, labels)
            if not self._book.has(spec, labels):
                self._ended.add((spec.name, wire.attributes(HISTOGRAM if spec.kind == "histogram" else NUMBER, labels)))
        for name, labels in sorted({*self._gauges.ended(), *self._ended}):
            spec = _ALL[name]
            flag = wire.NO_VALUE_IN_HISTOGRAM if spec.kind == "histogram" else wire.NO_VALUE
            yield from packer.add(spec, [wire.field(1, labels + moment + flag)], self._cells.temporality(spec))
