"""Many agents' numbers as one stream, for the writers of Prometheus text and of OTLP that the service has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from otel_reliability.kafka.agent import Agent
from otel_reliability.telemetry.exposition import Exposition
from otel_reliability.telemetry.instruments import Point
from otel_reliability.telemetry.names import Instrument
from otel_reliability.telemetry.points import Shown, slices
from otel_reliability.telemetry.series import SPECS, Book, Cell, Labels, Written


class Together(Book):
    """The counters and histograms of many agents, each of which keeps its own."""

    def __init__(self, wall: Callable[[], int], agents: Callable[[], Iterable[Agent]]) -> None:
        super().__init__(wall)
        self._agents = agents

    def slices(
        self, write: Callable[[Instrument, Labels, Cell], Written]
    ) -> Iterator[tuple[Instrument, list[Written]]]:
        """Every series, by instrument."""
        found: dict[Instrument, list[Written]] = {}
        for agent in self._agents():
            for spec, some in agent.book.slices(write):
                found.setdefault(spec, []).extend(some)
        yield from found.items()

    def has(self, spec: Instrument, labels: Labels) -> bool:
        """Whether any of them has such a series."""
        return any(agent.book.has(spec, labels) for agent in self._agents())

    def end(self, gone: Book) -> None:
        """An agent is no more: its series end."""
        for name, cells in gone.to_state().items():
            self.ended.extend((SPECS[name], labels) for labels in cells)


class Expositions(Exposition):
    """What is told of many agents."""

    def __init__(
        self, book: Together, agents: Callable[[], Iterable[Agent]], own: Callable[[], Iterable[Point]]
    ) -> None:
        self._book, self._many, self._own = book, agents, own

    def gauges(self) -> Iterator[list[Shown]]:
        """Agents' gauges, an agent at a time."""
        return (some for agent in self._many() for some in slices(agent.engine))

    def cells(self, write: Callable[[Instrument, Labels, Cell], Written]) -> Iterator[tuple[Instrument, list[Written]]]:
        """Counters and histograms."""
        return self._book.slices(write)
