"""All agents of one partition, and their state on its shelf: records as they came, and now and then all that they came to.

Of each agent there stand the pieces of its last snapshot with a `Head`, and in the log the records since. A record is a few
hundred bytes and a snapshot a few hundred times that, so one is made when about as much has come as it holds: neither costs
more than the other. Who takes a partition over knows at once which agents there are. Each sleeps until a record of it comes,
or until there is time: reading one back takes as long as putting some of its runs into their windows.
"""

from __future__ import annotations

import hashlib
import logging
import struct
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from otel_reliability.change.observation import Observation
from otel_reliability.config import Settings
from otel_reliability.kafka.agent import Agent, Time
from otel_reliability.kafka.log import Entry, Log
from otel_reliability.kafka.messages import Reader
from otel_reliability.kafka.shelf import PIECE, Shelf
from otel_reliability.model.record import BadRecord
from otel_reliability.model.run import AgentKey
from otel_reliability.service import journal_codec as codec

_logger = logging.getLogger("otel_reliability.kafka")

LEAST: Final = 64
"""Records that come between two snapshots of an agent, at least."""
SWEEP: Final = 30.0
"""Seconds between two looks at agents of which nothing comes: their sessions end, and they expire."""

_NUMBER: Final = struct.Struct(">Q")
_RECORD: Final = b"r"
_BODY: Final = struct.Struct(">dI")
"""What stands before a record: when it came, and how long the key is under which it did."""
_WHERE: Final = struct.Struct(">QQId")
_HEADS, _PIECES = b"head1", b"snap1"
"""What the keys of heads and pieces begin with, and the version of what is in them."""


class Head(NamedTuple):
    """Of a snapshot: of whom it is, the number of the first record after it, in how many pieces it stands, when it was made."""

    born: int
    first: int
    pieces: int
    now: float


class _Known:
    """An agent with its place on the shelf: the number of the next record, and how its snapshot stands.

    One that sleeps has no `agent`, and the records `since` its snapshot.
    """

    __slots__ = ("agent", "born", "first", "next", "now", "pieces", "since")

    def __init__(self, agent: Agent | None, head: Head) -> None:
        self.agent = agent
        self.born, self.first, self.pieces, self.now = head
        self.next = self.first
        self.since: list[Entry] = []


class Agents:
    """The agents of one partition. `refused` counts records that could not be used, by reason."""

    def __init__(self, settings: Settings, shelf: Shelf, pinned: Mapping[AgentKey, Sequence[Observation]]) -> None:
        self.time = Time()
        self.refused: Counter[str] = Counter()
        self._settings, self._shelf, self._pinned = settings, shelf, pinned
        self._log = Log(shelf)
        self._known: dict[bytes, _Known] = {}
        self._asleep: dict[bytes, None] = {}
        self._changed: dict[bytes, None] = {}
        self._swept = 0.0
        self._read = Reader()
        self._restore()

    def __len__(self) -> int:
        return len(self._known)

    @property
    def asleep(self) -> int:
        """Agents that are not read back yet."""
        return len(self._asleep)

    def all(self) -> list[Agent]:
        """All of them that are awake. From any thread."""
        return [known.agent for known in list(self._known.values()) if known.agent is not None]

    def take(self, key: bytes, value: bytes, now: float) -> None:
        """Take in a record. Raises `BadRecord`, with nothing taken."""
        record = self._read(value)
        self._reach(now)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= self._settings.limits.agents:
                self.refused["agents"] += 1
                return
            known = self._known[key] = _Known(self._new(), Head(self._log.birth(), 0, 0, now))
        agent = self._awake(key, known)
        agent.take(record)
        body = b"%b%b%b" % (_BODY.pack(self.time.now, len(key)), key, value)
        self._log.add(Entry(_RECORD, owner_of(key), known.born, known.next, body))
        known.next += 1
        self._changed[key] = None
        since = known.next - known.first
        if since % LEAST == 0 and since >= agent.rows // 2:
            agent.advance()
            self._write(key, known, agent)
        self._log.write()

    def tick(self, now: float) -> None:
        """Meet what is due."""
        self._reach(now)
        for key in self._changed:
            agent = self._known[key].agent
            if agent is not None:
                agent.advance()
        self._changed.clear()
        if self.time.now >= self._swept + SWEEP:
            self._swept = self.time.now
            self._sweep()

    def wake(self, seconds: float) -> None:
        """Wake those who have slept longest, for about so long, and one at least."""
        end = time.perf_counter() + seconds
        while self._asleep:
            key = next(iter(self._asleep))
            self._awake(key, self._known[key])
            if time.perf_counter() >= end:
                return

    def _reach(self, now: float) -> None:
        self.time.now = max(self.time.now, now)

    def _new(self) -> Agent:
        return Agent(self._settings, self.time, self._pinned)

    def _sweep(self) -> None:
        for key, known in list(self._known.items()):
            if known.agent is None:
                continue
            known.agent.advance()
            if known.agent.is_gone:
                self._forget(key, known)

    def _forget(self, key: bytes, known: _Known) -> None:
        self._log.forget(owner_of(key))
        for piece in range(known.pieces):
            self._shelf.drop(_piece(key, piece))
        self._shelf.drop(_HEADS + key)
        del self._known[key]

    def _write(self, key: bytes, known: _Known, agent: Agent) -> None:
        """Put a snapshot in place of the last one and of the records since."""
        body = agent.to_bytes(self._shelf)
        pieces = [body[at : at + PIECE] for at in range(0, len(body), PIECE)]
        for number, piece in enumerate(pieces):
            self._shelf.put(_piece(key, number), piece)
        for number in range(len(pieces), known.pieces):
            self._shelf.drop(_piece(key, number))
        self._log.forget(owner_of(key))
        known.first, known.pieces = known.next, len(pieces)
        self._shelf.put(_HEADS + key, _WHERE.pack(known.born, known.first, known.pieces, self.time.now))

    # --- A take-over --------------------------------------------------------------------------------------------------

    def _restore(self) -> None:
        """Which agents there are, and how far time has come."""
        records: dict[bytes, list[Entry]] = {}
        for place, value in self._shelf.items():
            if place.startswith(_HEADS):
                key, head = place[len(_HEADS) :], Head(*_WHERE.unpack(value))
                self._known[key] = _Known(None, head)
                self._reach(head.now)
            for entry in self._log.restore(place, value) or ():
                records.setdefault(_key_of(entry), []).append(entry)
        self._log.begin()
        for key, entries in records.items():
            self._lay_by(key, entries)
        self._asleep.update(dict.fromkeys(self._known))

    def _lay_by(self, key: bytes, entries: list[Entry]) -> None:
        """The records since the snapshot of an agent, until it wakes; not those of one before it that was forgotten."""
        known = self._known.get(key)
        born = max(entry.born for entry in entries) if known is None else known.born
        first = 0 if known is None else known.first
        since = sorted(entry for entry in entries if entry.born == born and entry.number >= first)
        if known is None and (not since or since[0].number):
            self._log.forget(owner_of(key))
            return
        if known is None:
            known = self._known[key] = _Known(None, Head(born, 0, 0, 0.0))
        known.since = since
        if since:
            known.next = since[-1].number + 1
            self._reach(_BODY.unpack_from(since[-1].body)[0])

    def _awake(self, key: bytes, known: _Known) -> Agent:
        """An agent, read back if it slept. Meanwhile it is the time of its records; then what was due since is met."""
        if known.agent is not None:
            return known.agent
        now = self.time.now
        agent = self._brought_back(key, known) if known.pieces else self._new()
        self._repeat(agent, known)
        agent.advance()
        self.time.now = now
        agent.advance()
        known.agent, known.since = agent, []
        del self._asleep[key]
        return agent

    def _brought_back(self, key: bytes, known: _Known) -> Agent:
        pieces = [self._shelf.get(_piece(key, number)) or b"" for number in range(known.pieces)]
        agent, self.time.now = self._new(), known.now
        try:
            if not agent.restore(b"".join(pieces), self._shelf):
                self.refused["other_version"] += 1
        except codec.Damaged:
            self.refused["damaged"] += 1
            return self._new()
        return agent

    def _repeat(self, agent: Agent, known: _Known) -> None:
        """Take in again what came since the snapshot, each at its own time."""
        for entry in known.since:
            self.time.now, size = _BODY.unpack_from(entry.body)
            try:
                agent.take(self._read(entry.body[_BODY.size + size :]))
            except BadRecord:
                self.refused["other_version"] += 1


def owner_of(key: bytes) -> bytes:
    """As whose the log knows the records of an agent."""
    return hashlib.blake2b(key, digest_size=16).digest()


def _key_of(entry: Entry) -> bytes:
    size = _BODY.unpack_from(entry.body)[1]
    return entry.body[_BODY.size : _BODY.size + size]


def _piece(key: bytes, number: int) -> bytes:
    return _PIECES + key + _NUMBER.pack(number)
