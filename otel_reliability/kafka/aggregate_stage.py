"""The second stage: run records, keyed by agent → readings, at `/metrics` and as OTLP metrics in a
topic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from otel_reliability.config import Settings
from otel_reliability.engine import Engine
from otel_reliability.kafka.partition_agents import PartitionAgents
from otel_reliability.kafka.partition_values import KeyValues
from otel_reliability.kafka.stage import Outgoing, Stage
from otel_reliability.reference import pinned_by
from otel_reliability.service.settings import KafkaSettings
from otel_reliability.telemetry import names
from otel_reliability.telemetry.exposition import Exposition, Registry
from otel_reliability.telemetry.instruments import Point, counted
from otel_reliability.telemetry.otlp import AgentMetrics, requests

RESOURCE: Final[Mapping[str, str]] = {"service.name": "otel-reliability"}
"""Resource of readings in a topic: the stage as a whole, so that a series stays the same when
another worker goes on with it.
"""
MAX_POINTS: Final = 500
"""Data points of a message of readings: brokers accept a megabyte by default."""


class AggregateStage(Stage):
    """Keeps the windows of the agents whose partitions a worker has."""

    def __init__(self, settings: Settings, kafka: KafkaSettings) -> None:
        self._settings = settings
        self._kafka = kafka
        self._pinned = pinned_by(settings)
        self._partitions: dict[int, tuple[PartitionAgents, AgentMetrics]] = {}
        self._publish_at = 0.0
        self.name = "aggregate"
        self.inputs = (kafka.runs,)
        self.output = kafka.runs
        self.others = () if kafka.readings is None else (kafka.readings,)

    def open(self, number: int, store: KeyValues) -> PartitionAgents:
        found = PartitionAgents(self._settings, store, self._pinned)
        source = found.engine, found.recording.registry
        self._partitions[number] = found, AgentMetrics(Exposition(lambda: [source], tuple))
        return found

    def close(self, number: int) -> None:
        """Give a partition up: nothing more is shown of its agents here."""
        self._partitions.pop(number, None)

    def load(self, seconds: float) -> bool:
        """Load agents that nothing has asked for since their partition was taken over."""
        unloaded = self._unloaded()
        for engine in unloaded:
            engine.load_agents(seconds / len(unloaded))
        return not self._unloaded()

    def publish(self, seconds: float) -> Iterable[Outgoing] | None:
        """Return the readings of all partitions, every so often, once all agents are loaded."""
        if self._kafka.readings is None or seconds < self._publish_at or not self._partitions:
            return None
        if self._unloaded():
            return None
        self._publish_at = seconds + self._kafka.tell
        return (
            Outgoing(str(number).encode(), body)
            for number, (readings, metrics) in sorted(self._partitions.items())
            for body in requests(metrics.collect(readings.wall()), RESOURCE, MAX_POINTS)
        )

    def sources(self) -> list[tuple[Engine, Registry]]:
        return [
            (readings.engine, readings.recording.registry)
            for readings, _ in list(self._partitions.values())
        ]

    def numbers(self) -> Iterable[Point]:
        """Return how many agents there are, and what became of records."""
        accounts = Counter[str]()
        for readings, _ in list(self._partitions.values()):
            accounts.update(dict(readings.accounts))
        yield names.AGENTS.name, sum(len(engine.view) for engine, _ in self.sources()), {}
        yield from counted(names.RUN_RECORDS, accounts)

    def _unloaded(self) -> list[Engine]:
        """Return the engines with agents that nothing has asked for since their partition was taken
        over.
        """
        return [engine for engine, _ in self.sources() if engine.agents.unloaded]
