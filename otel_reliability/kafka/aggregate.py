"""The second stage: run records, keyed by agent → readings, at `/metrics` and as OTLP metrics in a topic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from otel_reliability.change.observation import Observation
from otel_reliability.config import Settings
from otel_reliability.kafka.agent import Agent
from otel_reliability.kafka.agents import Agents
from otel_reliability.kafka.exposition import Expositions
from otel_reliability.kafka.messages import Message, Outgoing
from otel_reliability.kafka.shelf import Shelf
from otel_reliability.kafka.stage import Poison, Told
from otel_reliability.model.record import BadRecord
from otel_reliability.model.run import AgentKey
from otel_reliability.reference import pinned_by
from otel_reliability.service.kafka_settings import KafkaSettings
from otel_reliability.telemetry import names
from otel_reliability.telemetry.instruments import Point
from otel_reliability.telemetry.otlp import AgentMetrics, requests

RESOURCE: Final[Mapping[str, str]] = {"service.name": "otel-reliability"}
"""Who tells readings in a topic: the stage as a whole, so that a series stays the same when another worker goes on with it."""
MAX_POINTS: Final = 500
"""Data points of a message of readings: brokers accept a megabyte by default."""
MALFORMED: Final = "run_record"
"""The reason of dead letters that are no run records."""


class Aggregate:
    """Keeps the windows of the agents whose partitions a worker has."""

    def __init__(self, settings: Settings, kafka: KafkaSettings) -> None:
        self._settings, self._kafka = settings, kafka
        self._pinned: Mapping[AgentKey, Sequence[Observation]] = pinned_by(settings)
        self._partitions: dict[int, AggregatePartition] = {}
        self._due = 0.0
        self.name = "aggregate"
        self.inputs: Sequence[str] = (kafka.runs,)
        self.output: str = kafka.runs
        self.others: Sequence[str] = () if kafka.readings is None else (kafka.readings,)

    def open(self, number: int, shelf: Shelf) -> AggregatePartition:
        """Take a partition over."""
        found = AggregatePartition(Agents(self._settings, shelf, self._pinned))
        self._partitions[number] = found
        return found

    def close(self, number: int) -> None:
        """Another has it now: nothing more is told of its agents here."""
        self._partitions.pop(number, None)

    def wake(self, seconds: float) -> bool:
        """Wake agents that nothing has come of since their partition was taken over."""
        asleep = [one.agents for one in self._partitions.values() if one.agents.asleep]
        for agents in asleep:
            agents.wake(seconds / len(asleep))
        return not any(agents.asleep for agents in asleep)

    def tell(self, seconds: float) -> Iterator[Told] | None:
        """The readings of all partitions, every so often. Agents that sleep have none, so it waits for them."""
        if self._kafka.readings is None or seconds < self._due or not self._partitions:
            return None
        if any(one.agents.asleep for one in self._partitions.values()):
            return None
        self._due = seconds + self._kafka.tell
        return self._told(self._kafka.readings)

    def agents(self) -> list[Agent]:
        """All agents this worker has. From any thread."""
        return [agent for one in list(self._partitions.values()) for agent in one.agents.all()]

    def numbers(self) -> Iterable[Point]:
        """How many agents, what became of records, and what found no place."""
        agents, taken, refused = self.agents(), Counter[str](), Counter[str]()
        for agent in agents:
            taken.update(dict(agent.state.inbox.accounts))
        for one in list(self._partitions.values()):
            refused.update(one.agents.refused)
        yield names.AGENTS.name, len(agents), {}
        for disposition, number in (taken + refused).items():
            yield names.RUN_RECORDS.name, number, {"disposition": disposition}

    def _told(self, topic: str) -> Iterator[Told]:
        for number, partition in sorted(self._partitions.items()):
            for body in partition.told():
                yield Told(topic, str(number).encode(), body)


class AggregatePartition:
    """One partition of run records, and what the readers of its readings know."""

    def __init__(self, agents: Agents) -> None:
        self.agents = agents
        self._metrics = AgentMetrics(Expositions(agents.all, tuple))

    @property
    def behind(self) -> bool:
        """No: every message brings about all that is due."""
        return False

    def take(self, message: Message, now: float) -> Iterable[Outgoing]:
        """Take in one message. Raises `Poison`."""
        if not message.value:
            self.agents.tick(now)
            return ()
        try:
            self.agents.take(message.key or b"", message.value, now)
        except BadRecord as error:
            raise Poison(MALFORMED, str(error)) from None
        return ()

    def told(self) -> Iterator[bytes]:
        """Its readings as OTLP metrics requests."""
        return requests(self._metrics.collect(self.agents.time.wall()), RESOURCE, MAX_POINTS)
