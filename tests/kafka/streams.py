"""Both stages without a broker: stores are dictionaries, workers come and go."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from msgspec.structs import replace

from otel_reliability.config import Settings
from otel_reliability.kafka.partition_agents import PartitionAgents
from otel_reliability.kafka.stage import KafkaMessage, Outgoing
from otel_reliability.kafka.traces import Traces
from otel_reliability.model.reading import Reading
from otel_reliability.model.record import RunRecord, read, write
from otel_reliability.model.run import AgentKey, CloseReason, Run, RunChange
from otel_reliability.model.span import AgentSpan, Evaluation, TraceId, alone

Told: TypeAlias = AgentSpan | Evaluation
BEGIN: Final = 1_800_000_000.0
"""When the clock of these streams begins: what the builders make is past by then."""


class MemoryValues:
    """A store that lives as long as the object."""

    def __init__(self) -> None:
        self.kept: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes | None:
        return self.kept.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        self.kept[key] = value

    def drop(self, key: bytes) -> None:
        self.kept.pop(key, None)

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        return iter(sorted(self.kept.items()))


@dataclass
class Assembling:
    """The first stage: one `Traces` a partition, and all that they told."""

    settings: Settings
    partitions: int = 3
    now: float = BEGIN
    told: list[Outgoing] = field(default_factory=list[Outgoing])

    def __post_init__(self) -> None:
        self.stores = [MemoryValues() for _ in range(self.partitions)]
        self.workers = [Traces(self.settings, store) for store in self.stores]

    def take(self, batch: Sequence[Told]) -> None:
        """Receive a batch as the Collector's exporter writes it: a message a trace, and a commit
        after each message.
        """
        for trace_id, some in _by_trace(batch).items():
            worker = self.workers[zlib.crc32(trace_id) % self.partitions]
            spans = [one for one in some if isinstance(one, AgentSpan)]
            judged = [one for one in some if isinstance(one, Evaluation)]
            self.told += worker.take(spans, judged, self.now)
            worker.save()

    def pass_time(self, seconds: float, step: float = 1.0) -> None:
        """Let time pass, with a tick at every step."""
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + step)
            for worker in self.workers:
                self.told += worker.tick(self.now)
                worker.save()

    def take_over(self, partition: int) -> None:
        """Another worker has it now: all that it knows stands on the shelf."""
        self.workers[partition] = Traces(self.settings, self.stores[partition])

    @property
    def records(self) -> list[RunRecord]:
        """What was told so far."""
        return [read(one.value) for one in self.told]


@dataclass
class Aggregating:
    """The second stage, fed by what the first told."""

    settings: Settings
    partitions: int = 2
    now: float = BEGIN

    def __post_init__(self) -> None:
        self.stores = [MemoryValues() for _ in range(self.partitions)]
        self.workers = [PartitionAgents(self.settings, store, {}) for store in self.stores]

    def take(self, told: Iterable[Outgoing]) -> None:
        """Run records, each under its key."""
        for one in told:
            worker = self.workers[zlib.crc32(one.key) % self.partitions]
            worker.take(KafkaMessage("runs", one.key, one.value, 0), self.now)
            worker.save()

    def tick(self, seconds: float = 1.0) -> None:
        """Let time pass."""
        self.now += seconds
        for worker in self.workers:
            worker.tick(self.now)
            worker.save()

    def take_over(self, partition: int) -> None:
        """Another worker has it now."""
        self.workers[partition] = PartitionAgents(self.settings, self.stores[partition], {})

    def readings(self) -> dict[tuple[AgentKey, str], Mapping[str, Reading]]:
        """Every reading of every window, all agents loaded."""
        for worker in self.workers:
            worker.engine.load_agents(math.inf)
        fleets = [worker.engine.agents for worker in self.workers]
        states = [agents.agent(key) for agents in fleets for key in agents.keys()]  # noqa: SIM118  a agents is no mapping
        return {
            (state.key, name): dict(window.readings())
            for state in states
            if state is not None
            for name, window in state.windows.items()
        }


def final(records: Iterable[RunRecord]) -> dict[str, Run]:
    """Of each run the record told last, but for those that were withdrawn."""
    last: dict[str, RunRecord] = {}
    for record in records:
        known = last.get(record.run.run_id)
        if known is None or record.revision > known.revision:
            last[record.run.run_id] = record
    return {
        run_id: one.run for run_id, one in last.items() if one.change is not RunChange.WITHDRAWN
    }


def plain(run: Run) -> Run:
    """A run as a record carries it, but for why it was closed: that depends on when its spans came,
    and on the door.
    """
    return replace(read(write(RunRecord(RunChange.FINAL, run, 0))).run, closed_by=CloseReason.ROOT)


def joined(one: Told) -> Told | None:
    """What of it can be joined where the key is the trace."""
    if isinstance(one, Evaluation):
        return one if one.trace_id is not None else None
    return alone(one)


def _by_trace(batch: Iterable[Told]) -> dict[TraceId, list[Told]]:
    found: dict[TraceId, list[Told]] = {}
    for one in batch:
        found.setdefault(one.trace_id or b"", []).append(one)
    return found
