"""The second stage: run records, keyed by agent → readings, at `/metrics` and as OTLP metrics in a topic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from otel_reliability.config import Settings
from otel_reliability.kafka.partition_values import KeyValues
from otel_reliability.kafka.readings import Readings
from otel_reliability.kafka.stage import Message, Outgoing, Stage
from otel_reliability.reference import pinned_by
from otel_reliability.service.settings import KafkaSettings
from otel_reliability.telemetry import names
from otel_reliability.telemetry.exposition import Exposition
from otel_reliability.telemetry.instruments import Point, counted
from otel_reliability.telemetry.otlp import AgentMetrics, requests

RESOURCE: Final[Mapping[str, str]] = {"service.name": "otel-reliability"}
"""Resource of readings in a topic: the stage as a whole, so that a series stays the same when another worker goes on with it."""
MAX_POINTS: Final = 500
"""Data points of a message of readings: brokers accept a megabyte by default."""


class AggregateStage(Stage):
    """Keeps the windows of the agents whose partitions a worker has."""

    def __init__(self, settings: Settings, kafka: KafkaSettings) -> None:
        self._settings, self._kafka = settings, kafka
        self._pinned = pinned_by(settings)
        self._partitions: dict[int, AggregatePartition] = {}
        self._publish_at = 0.0
        self.name = "aggregate"
        self.inputs = (kafka.runs,)
        self.output = kafka.runs
        self.others = () if kafka.readings is None else (kafka.readings,)

    def open(self, number: int, store: KeyValues) -> AggregatePartition:
        found = self._partitions[number] = AggregatePartition(Readings(self._settings, store, self._pinned))
        return found

    def close(self, number: int) -> None:
        """Give a partition up: nothing more is shown of its agents here."""
        self._partitions.pop(number, None)

    def load(self, seconds: float) -> bool:
        """Load agents that nothing has asked for since their partition was taken over."""
        unloaded = [one for one in self.readings() if one.unloaded]
        for readings in unloaded:
            readings.load(seconds / len(unloaded))
        return not any(readings.unloaded for readings in unloaded)

    def publish(self, seconds: float) -> Iterable[Outgoing] | None:
        """Return the readings of all partitions, every so often, once all agents are loaded."""
        if self._kafka.readings is None or seconds < self._publish_at or not self._partitions:
            return None
        if any(one.unloaded for one in self.readings()):
            return None
        self._publish_at = seconds + self._kafka.tell
        return (
            Outgoing(str(number).encode(), body)
            for number, partition in sorted(self._partitions.items())
            for body in partition.requests()
        )

    def readings(self) -> list[Readings]:
        """Return all partitions of this worker. From any thread."""
        return [one.readings for one in list(self._partitions.values())]

    def numbers(self) -> Iterable[Point]:
        """Return how many agents there are, and what became of records."""
        readings, accounts = self.readings(), Counter[str]()
        for one in readings:
            accounts.update(dict(one.accounts))
        yield names.AGENTS.name, sum(len(one.engine.agents) for one in readings), {}
        yield from counted(names.RUN_RECORDS, accounts)


class AggregatePartition:
    """One partition of run records, and what the readers of its readings know."""

    def __init__(self, readings: Readings) -> None:
        self.readings = readings
        self._metrics = AgentMetrics(Exposition(readings.engine, readings.recording.book, tuple))

    def take(self, message: Message, now: float) -> Iterable[Outgoing]:
        if message.value:
            self.readings.take(message.value, now)
        else:
            self.readings.tick(now)
        return ()

    def save(self) -> None:
        self.readings.save()

    def requests(self) -> Iterator[bytes]:
        return requests(self._metrics.collect(self.readings.wall()), RESOURCE, MAX_POINTS)
