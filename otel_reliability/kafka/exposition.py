"""The numbers of many agents as one stream, for the writers of Prometheus text and of OTLP."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from otel_reliability.kafka.agent import Agent
from otel_reliability.telemetry.exposition import AgentGauges, Exposition, agent_slices
from otel_reliability.telemetry.instruments import Point
from otel_reliability.telemetry.names import Instrument
from otel_reliability.telemetry.registry import Labels, Series, Written


class Expositions(Exposition):
    """The numbers of many agents, each of which has an engine and a registry of its own."""

    def __init__(self, agents: Callable[[], Iterable[Agent]], own: Callable[[], Iterable[Point]]) -> None:
        self._agents, self._own = agents, own

    def gauges(self) -> Iterator[list[AgentGauges]]:
        """Yield the gauges of agents, an agent at a time."""
        return (some for agent in self._agents() for some in agent_slices(agent.engine))

    def series(
        self, write: Callable[[Instrument, Labels, Series], Written]
    ) -> Iterator[tuple[Instrument, list[Written]]]:
        """Yield `write` of the counters and histograms, by instrument."""
        found: dict[str, tuple[Instrument, list[Written]]] = {}
        for agent in self._agents():
            for spec, some in agent.book.slices(write):
                found.setdefault(spec.name, (spec, []))[1].extend(some)
        yield from found.values()
