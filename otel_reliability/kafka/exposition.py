"""The numbers of several partitions as one stream, for the writers of Prometheus text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from otel_reliability.kafka.readings import Readings
from otel_reliability.telemetry.exposition import Exposition
from otel_reliability.telemetry.instruments import Point
from otel_reliability.telemetry.names import Instrument
from otel_reliability.telemetry.points import Shown, slices
from otel_reliability.telemetry.series import Cell, Labels, Written


class Expositions(Exposition):
    """Everything that is shown of several partitions."""

    def __init__(self, partitions: Callable[[], Iterable[Readings]], own: Callable[[], Iterable[Point]]) -> None:
        self._partitions, self._own = partitions, own

    def gauges(self) -> Iterator[list[Shown]]:
        """Yield the agents' gauges, some agents at a time."""
        return (some for one in self._partitions() for some in slices(one.engine))

    def cells(self, write: Callable[[Instrument, Labels, Cell], Written]) -> Iterator[tuple[Instrument, list[Written]]]:
        """Yield counters and histograms, by instrument."""
        found: dict[Instrument, list[Written]] = {}
        for one in self._partitions():
            for spec, some in one.recording.book.slices(write):
                found.setdefault(spec, []).extend(some)
        yield from found.items()
