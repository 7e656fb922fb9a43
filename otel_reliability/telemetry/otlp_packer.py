"""Points → OTLP metrics requests, each below a size that every receiver takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.telemetry import names
from otel_reliability.telemetry import otlp_bytes as wire
from otel_reliability.telemetry.names import Instrument
from otel_reliability.telemetry.series import Labels

LARGEST: Final = 3_500_000
"""Bytes of a request, at most: gRPC receivers take 4 MB unless they are told otherwise."""


class Amount(NamedTuple):
    """What one series held when it was sent: its value or its buckets, their sum, and when that was."""

    name: str
    labels: Labels
    counts: tuple[int, ...]
    total: float
    time_ns: int


class Request(NamedTuple):
    """One request, and of the series that are sent as what is new, what its receiver then knows."""

    body: bytes
    amounts: Sequence[Amount]


Point: TypeAlias = tuple[bytes, Amount | None]
"""A point, as a field, and what its receiver then knows where that must be remembered."""


class Packer:
    """Fills requests with points, metric by metric, and gives each one that is full."""

    def __init__(self, resource: bytes, largest: int = LARGEST) -> None:
        self._resource, self._largest = resource, largest
        self._metrics: list[bytes] = []
        self._points: list[bytes] = []
        self._amounts: list[Amount] = []
        self._size = 0

    def add(self, spec: Instrument, points: Sequence[bytes], temporality: int = wire.CUMULATIVE) -> Iterator[Request]:
        """The points of a metric, as fields. Mostly they fit, and are not looked at one by one."""
        size = sum(map(len, points))
        if self._size + size <= self._largest:
            self._points.extend(points)
            self._size += size
            self._close_metric(spec, temporality)
        else:
            yield from self.add_new(spec, ((point, None) for point in points), temporality)

    def add_new(self, spec: Instrument, points: Iterable[Point], temporality: int) -> Iterator[Request]:
        """The same, of points that say what is new: each with what its receiver then knows."""
        for point, amount in points:
            if self._size and self._size + len(point) > self._largest:
                self._close_metric(spec, temporality)
                yield self._request()
            self._points.append(point)
            self._size += len(point)
            if amount is not None:
                self._amounts.append(amount)
        self._close_metric(spec, temporality)

    def rest(self) -> Iterator[Request]:
        """The last request."""
        if self._metrics:
            yield self._request()

    def _close_metric(self, spec: Instrument, temporality: int) -> None:
        if self._points:
            head = wire.text(1, spec.name) + wire.text(2, spec.description) + wire.text(3, spec.unit)
            self._metrics.append(wire.field(2, head + wire.DATA[spec.kind](b"".join(self._points), temporality)))
            self._size += len(head)
            self._points = []

    def _request(self) -> Request:
        scope = wire.field(2, wire.field(1, wire.text(1, names.SCOPE)) + b"".join(self._metrics))
        request = Request(wire.field(1, self._resource + scope), self._amounts)
        self._metrics, self._amounts, self._size = [], [], 0
        return request
