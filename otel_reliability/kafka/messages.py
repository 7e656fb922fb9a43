"""What passes between the stages: run records under their agent's key, and ticks, which hold nothing but their time."""

from __future__ import annotations

import functools
import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final, NamedTuple

from otel_reliability.model import record
from otel_reliability.model.event import RunChange
from otel_reliability.model.record import BadRecord, RunRecord
from otel_reliability.model.run import AgentKey, Run
from otel_reliability.sources.run_records import parsed

TICK: Final = b""
"""The value of a message that tells the time only. As OTLP it is an empty request: other readers of the topic may read it."""

MOST: Final = 50_000
"""Runs of a partition that are known by their text, at most."""
_RUN: Final = b',"run":'
_KEYS: Final = 10_000
"""Agents whose key is known in bytes, at most."""
_encode: Final = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class Message(NamedTuple):
    """One message as it came: `time_ms` is its timestamp (Unix milliseconds)."""

    topic: str
    key: bytes | None
    value: bytes
    time_ms: int


class Outgoing(NamedTuple):
    """One message to be sent, with what came of it."""

    key: bytes
    value: bytes


@functools.lru_cache(_KEYS)
def key_of(key: AgentKey) -> bytes:
    """The key under which the runs of an agent travel.

    >>> key_of(AgentKey("", "shop", "prod", "support"))
    b'["","shop","prod","support",[]]'
    """
    return json.dumps([*key[:4], [list(pair) for pair in key.extra]], separators=(",", ":")).encode()


def write(one: RunRecord) -> Outgoing:
    """A run record as a message."""
    return written(one.change, one.told_ns, one.run, text_of(one.run))


def text_of(run: Run) -> bytes:
    """A run as it stands in every record that tells it: who tells it again need not write it again."""
    return _encode(record.write_run(run)).encode()


def written(change: RunChange, told_ns: int, run: Run, text: bytes) -> Outgoing:
    """A record of a run that was written before."""
    head = f'{{"version":{record.VERSION},"change":"{change.value}","told_ns":{told_ns},"run":'
    return Outgoing(key_of(run.key), b"%b%b}" % (head.encode(), text))


def read(value: bytes) -> RunRecord:
    """The record of a message. Raises `BadRecord`."""
    return record.read(parsed(_decoded(value)))


class Reader:
    """Reads records. A run that is told again word for word, as it is when it has settled, is not read again: reading one as
    JSON costs as much as putting it into its windows.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._runs: OrderedDict[bytes, Run] = OrderedDict()

    def __call__(self, value: bytes) -> RunRecord:
        """The record of a message. Raises `BadRecord`."""
        head, divided, told = value.partition(_RUN)
        if not divided:
            return read(value)
        digest = hashlib.blake2b(told, digest_size=16).digest()
        run = self._runs.pop(digest, None)
        if run is not None:
            return record.read(parsed(_decoded(head) + "}"), run)
        found = read(value)
        self._runs[digest] = found.run
        if len(self._runs) > self._most:
            self._runs.popitem(last=False)
        return found


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise BadRecord("the value of a run record is not UTF-8") from None


def dead(reason: str, detail: str, where: Mapping[str, object]) -> dict[str, bytes]:
    """The headers under which a message that cannot be used is laid aside."""
    told = {"reason": reason, "detail": detail, **where}
    return {name: str(value).encode() for name, value in told.items()}
