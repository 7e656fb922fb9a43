"""Messages of the stages: run records under their agent's key, and ticks, which hold nothing but their time."""

from __future__ import annotations

import functools
import json
from typing import Final, NamedTuple

from otel_reliability.model import record
from otel_reliability.model.record import RunRecord
from otel_reliability.model.run import AgentKey

TICK: Final = b""
"""Value of a message that holds its time only. As OTLP it is an empty request: other readers of the topic may read it."""
_MAX_KEYS: Final = 10_000


class Message(NamedTuple):
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
    return json.dumps([*key[:4], [list(pair) for pair in key.extra]], separators=(",", ":")).encode()


def write(one: RunRecord) -> Outgoing:
    """Return a run record as a message."""
    return Outgoing(key_of(one.run.key), record.write(one))
