"""The numbers of several partitions as one stream, for the writers of Prometheus text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from otel_reliability.kafka.readings import Readings
from otel_reliability.telemetry.exposition import AgentGauges, Exposition, agent_slices
from otel_reliability.telemetry.instruments import Point
from otel_reliability.telemetry.names import Instrument
from otel_reliability.telemetry.registry import Labels, Series, Written


class Expositions(Exposition):
    """Everything that is shown of several partitions."""

    def __init__(self, partitions: Callable[[], Iterable[Readings]], own: Callable[[], Iterable[Point]]) -> None:
        self._partitions, self._own = partitions, own

    def gauges(self) -> Iterator[list[AgentGauges]]:
        """Yield the agents' gauges, some agents at a time."""
        return (some for one in self._partitions() for some in agent_slices(one.engine))

    def series(
        self, write: Callable[[Instrument, Labels, Series], Written]
    ) -> Iterator[tuple[Instrument, list[Written]]]:
        """Yield `write` of the counters and histograms, by instrument."""
        found: dict[str, tuple[Instrument, list[Written]]] = {}
        for one in self._partitions():
            for spec, some in one.recording.book.slices(write):
                found.setdefault(spec.name, (spec, []))[1].extend(some)
        yield from found.values()
