"""All agents of one partition, and their state on its shelf: records as they came, and now and then all that they came to.

Of each agent there stand a `Head`, the pieces of its last snapshot, and the records since. A record is a few hundred bytes and a
snapshot a few hundred times that, so one is made when about as much has come as it holds: neither costs more than the other.
"""

from __future__ import annotations

import logging
import marshal
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from otel_reliability.change.units import Unit
from otel_reliability.config import Settings
from otel_reliability.kafka.agent import Agent, Time
from otel_reliability.kafka.messages import Reader, read
from otel_reliability.kafka.shelf import PIECE, Shelf
from otel_reliability.model.record import BadRecord
from otel_reliability.model.run import AgentKey
from otel_reliability.service import journal_codec as codec
from otel_reliability.telemetry.series import Book

_logger = logging.getLogger("otel_reliability.kafka")

LEAST: Final = 64
"""Records that come between two snapshots of an agent, at least."""
SWEEP: Final = 30.0
"""Seconds between two looks at agents of which nothing comes: their sessions end, and they expire."""

_TIME: Final = struct.Struct(">d")
_NUMBER: Final = struct.Struct(">Q")
_RECORD, _SNAPSHOT, _HEAD = b"\x00r", b"\x00s", b"\x00h"


class _Known:
    """An agent with its place on the shelf: the first and the next record, and how many pieces its snapshot has."""

    __slots__ = ("agent", "first", "next", "pieces")

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.first = self.next = self.pieces = 0


class Agents:
    """The agents of one partition. `refused` counts records that could not be used, by reason."""

    def __init__(self, settings: Settings, shelf: Shelf, pinned: Mapping[AgentKey, Sequence[Unit]]) -> None:
        self.time = Time()
        self.refused: Counter[str] = Counter()
        self.gone: list[Book] = []
        """The counters of agents that are no more, until somebody takes them."""
        self._settings, self._shelf, self._pinned = settings, shelf, pinned
        self._known: dict[bytes, _Known] = {}
        self._changed: dict[bytes, None] = {}
        self._swept = 0.0
        self._read = Reader()
        self._restore()

    def __len__(self) -> int:
        return len(self._known)

    def all(self) -> list[Agent]:
        """All of them. From any thread."""
        return [known.agent for known in list(self._known.values())]

    def take(self, key: bytes, value: bytes, now: float) -> None:
        """Take in a record. Raises `BadRecord`, with nothing taken."""
        record = self._read(value)
        self._reach(now)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= self._settings.limits.agents:
                self.refused["agents"] += 1
                return
            known = self._known[key] = _Known(self._new())
        known.agent.take(record)
        self._shelf.put(key + _RECORD + _NUMBER.pack(known.next), _TIME.pack(self.time.now) + value)
        known.next += 1
        self._changed[key] = None
        since = known.next - known.first
        if since % LEAST == 0 and since >= known.agent.rows // 2:
            known.agent.advance()
            self._write(key, known)

    def tick(self, now: float) -> None:
        """Meet what is due."""
        self._reach(now)
        for key in self._changed:
            self._known[key].agent.advance()
        self._changed.clear()
        if self.time.now >= self._swept + SWEEP:
            self._swept = self.time.now
            self._sweep()

    def _reach(self, now: float) -> None:
        self.time.now = max(self.time.now, now)

    def _new(self) -> Agent:
        return Agent(self._settings, self.time, self._pinned)

    def _sweep(self) -> None:
        for key, known in list(self._known.items()):
            known.agent.advance()
            if known.agent.is_gone:
                self._forget(key, known)

    def _forget(self, key: bytes, known: _Known) -> None:
        self.gone.append(known.agent.book)
        for number in range(known.first, known.next):
            self._shelf.drop(key + _RECORD + _NUMBER.pack(number))
        for piece in range(known.pieces):
            self._shelf.drop(key + _SNAPSHOT + _NUMBER.pack(piece))
        self._shelf.drop(key + _HEAD)
        del self._known[key]

    def _write(self, key: bytes, known: _Known) -> None:
        """Put a snapshot in place of the last one and of the records since."""
        body = known.agent.to_bytes(self._shelf)
        pieces = [body[at : at + PIECE] for at in range(0, len(body), PIECE)]
        for number, piece in enumerate(pieces):
            self._shelf.put(key + _SNAPSHOT + _NUMBER.pack(number), piece)
        for number in range(len(pieces), known.pieces):
            self._shelf.drop(key + _SNAPSHOT + _NUMBER.pack(number))
        for number in range(known.first, known.next):
            self._shelf.drop(key + _RECORD + _NUMBER.pack(number))
        known.first, known.pieces = known.next, len(pieces)
        self._shelf.put(key + _HEAD, marshal.dumps((known.first, known.pieces, self.time.now)))

    # --- A take-over --------------------------------------------------------------------------------------------------

    def _restore(self) -> None:
        heads: dict[bytes, tuple[int, int, float]] = {}
        pieces: dict[bytes, list[bytes]] = {}
        records: dict[bytes, list[bytes]] = {}
        for place, value in self._shelf.items():  # in order of keys, so pieces and records come in theirs
            key, kind = _divided(place)
            if kind == _HEAD:
                heads[key] = marshal.loads(value)  # noqa: S302 (our own)
            elif kind == _SNAPSHOT:
                pieces.setdefault(key, []).append(value)
            elif kind == _RECORD:
                records.setdefault(key, []).append(value)
        for key in dict.fromkeys((*heads, *records)):
            known = self._known[key] = _Known(self._new())
            if key in heads:
                known.first, known.pieces, self.time.now = heads[key]
                self._bring_back(known, b"".join(pieces.get(key, ())))
            known.next = known.first
            self._repeat(known, records.get(key, ()))
        self._reach(max((_TIME.unpack_from(some[-1])[0] for some in records.values()), default=0.0))
        self._reach(max((since for _, _, since in heads.values()), default=0.0))

    def _bring_back(self, known: _Known, body: bytes) -> None:
        try:
            if not known.agent.restore(body, self._shelf):
                self.refused["other_version"] += 1
        except codec.Damaged:
            self.refused["damaged"] += 1
            known.agent = self._new()

    def _repeat(self, known: _Known, records: Sequence[bytes]) -> None:
        """Take in again what came since the snapshot, each at its own time."""
        for kept in records:
            known.next += 1
            self.time.now = _TIME.unpack_from(kept)[0]
            try:
                known.agent.take(read(kept[_TIME.size :]))
            except BadRecord:
                self.refused["other_version"] += 1
        known.agent.advance()


def _divided(place: bytes) -> tuple[bytes, bytes]:
    """The agent's key and what is kept there."""
    key, mark, rest = place.partition(b"\x00")
    return key, mark + rest[:1]
