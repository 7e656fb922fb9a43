"""The interface between worker and stage: messages, partitions and stages.

Messages of the stages are run records under their agent's key, and ticks, which hold nothing but
their time.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from otel_reliability.engine import Engine
from otel_reliability.kafka.partition_values import KeyValues
from otel_reliability.model import record
from otel_reliability.model.record import RunRecord
from otel_reliability.model.run import AgentKey
from otel_reliability.telemetry.exposition import Registry
from otel_reliability.telemetry.instruments import Point

TICK: Final = b""
"""Value of a message that holds its time only. As OTLP it is an empty request: other readers of the
topic may read it.
"""
_MAX_KEYS: Final = 10_000


class KafkaMessage(NamedTuple):
    """One message as it was read: `time_ms` is its timestamp (Unix milliseconds)."""

    topic: str
    key: bytes | None
    value: bytes
    time_ms: int


class Outgoing(NamedTuple):
    """One message to be sent."""

    key: bytes
    value: bytes


@functools.lru_cache(_MAX_KEYS)
def key_of(key: AgentKey) -> bytes:
    """Return the key of messages about an agent.

    >>> key_of(AgentKey("", "shop", "prod", "support", (("service.version", "2"),)))
    b'["","shop","prod","support",[["service.version","2"]]]'
    """
    return json.dumps(
        [*key.service, key.agent, [list(pair) for pair in key.extra]], separators=(",", ":")
    ).encode()


def write(one: RunRecord) -> Outgoing:
    """Return a run record as a message."""
    return Outgoing(key_of(one.run.key), record.write(one))


class Partition(Protocol):
    """One partition of a stage. Its time is that of the messages; a message without a value holds
    only that.
    """

    def take(self, message: KafkaMessage, now: float) -> Iterable[Outgoing]:
        """Receive one message. Return what is to be sent with it.

        Raise `Refused` or `BadRecord` for one that cannot be used, with nothing received.
        """
        ...

    def save(self) -> None:
        """Store what changed: all before it is about to be committed."""
        ...


class Stage(Protocol):
    """One stage. It is called from the worker's thread, but for `sources` and `numbers`.

    `name` is its word in commands, group and messages; `inputs` are the topics it reads, all with
    as many partitions, and those of one number go to one worker; `output` is the topic that its
    records go to, `others` are further topics it writes. `open` takes a partition over, from what
    is stored, `close` gives it up; `numbers` are its self-telemetry.
    """

    name: str
    inputs: Sequence[str]
    output: str
    others: Sequence[str] = ()

    def open(self, number: int, store: KeyValues) -> Partition: ...

    def close(self, number: int) -> None: ...

    def numbers(self) -> Iterable[Point]: ...

    def load(self, seconds: float) -> bool:
        """Go on with loading what can wait, for about so long. Return whether all is there: before,
        nothing is published.
        """
        return True

    def publish(self, seconds: float) -> Iterable[Outgoing] | None:
        """Return what is to be sent to the topic of readings, all before it being committed; None:
        nothing is due.

        `seconds` is any steady clock.
        """
        return None

    def sources(self) -> Iterable[tuple[Engine, Registry]]:
        """Return the engine and the registry of each partition whose agents this worker shows. From
        any thread.
        """
        return ()
