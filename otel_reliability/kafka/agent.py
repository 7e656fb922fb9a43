"""One agent: its windows, sessions and counters, fed by run records, as the service keeps them; and all of that in bytes."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from otel_reliability.change.observation import Observation
from otel_reliability.config import Settings
from otel_reliability.engine import Engine
from otel_reliability.kafka.shelf import Shelf
from otel_reliability.model.record import RunRecord
from otel_reliability.model.row import Row
from otel_reliability.model.run import AgentKey
from otel_reliability.service import journal_codec as codec
from otel_reliability.service import snapshot
from otel_reliability.service.recording import Recording
from otel_reliability.service.run_inbox import RunInbox
from otel_reliability.service.state import State
from otel_reliability.telemetry.registry import Registry
from otel_reliability.windows.kept import adapted

_SHAPES: Final = b"\x00shapes"
"""Where a partition keeps what the classes looked like whose objects are in its snapshots."""
_NONE: Final[Mapping[str, str]] = {}


class Time:
    """The time of a partition, as an engine asks for it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Seconds."""
        return self.now

    def wall(self) -> int:
        """Unix nanoseconds."""
        return round(self.now * 1e9)


class Agent:
    """The state of the service, with one agent in it."""

    __slots__ = ("book", "engine", "recording", "state")

    def __init__(self, settings: Settings, time: Time, pinned: Mapping[AgentKey, Sequence[Observation]]) -> None:
        self.engine = Engine(settings, clock=time, wall=time.wall, places_return=True, pinned=pinned)
        self.state = State(settings, self.engine)
        # Who rebuilds a run tells when it is settled, however long that takes: without that word, long after.
        self.state.inbox = RunInbox(replace(settings.assembly, reopen=settings.assembly.remember))
        self.book = Registry(time.wall)
        self.recording = Recording(self.engine, self.book)
        self.state.watchers.append(self.recording)
        self.state.keepers |= {"book": self.book, "recording": self.recording}

    @property
    def is_gone(self) -> bool:
        """Whether nothing is left of it, and nothing is known that may still be told of."""
        return not len(self.engine.fleet) and not len(self.state.inbox)

    @property
    def rows(self) -> int:
        """How many runs its windows hold."""
        fleet = self.engine.fleet
        agents = (fleet.agent(key) for key in fleet.keys())  # noqa: SIM118  a fleet is no mapping
        return sum(window.runs for agent in agents if agent is not None for window in agent.windows.values())

    def take(self, record: RunRecord) -> None:
        """Take in one record."""
        self.engine.receive_events(self.state.inbox.take(record, self.engine.now()))

    def advance(self) -> None:
        """Meet every deadline that has passed, and record what has settled."""
        self.state.advance()

    def to_bytes(self, shelf: Shelf) -> bytes:
        """All of it. What its classes look like is on the shelf of its partition, once."""
        fleet = self.engine.fleet.to_state()
        own = [self._own(key) for key in fleet["agents"]]
        since = [since for _, since in fleet["seen"]]
        core = snapshot.write(self.state.to_state(), self.engine)
        return codec.press((_shapes_on(shelf), list(fleet["accounts"].items()), own, since, core))

    def restore(self, kept: bytes, shelf: Shelf) -> bool:
        """Take over what `to_bytes` gave. False: another build wrote it, and only windows could be taken over.

        Raises `journal_codec.Damaged`.
        """
        digest, accounts, own, since, core = codec.unpress(kept)
        found = shelf.get(_SHAPES + digest)
        shapes, fields = (_NONE, Row._fields) if found is None else _told(found)
        keys = [_key(key) for key, _ in own]
        agents = {
            key: functools.partial(_read, state, tuple(fields)) for key, (_, state) in zip(keys, own, strict=True)
        }
        fleet = {
            "accounts": dict(accounts),
            "places": keys,
            "agents": keys,
            "seen": list(zip(keys, since, strict=True)),
        }
        self.engine.fleet.restore(fleet, agents)
        try:
            self.state.restore(snapshot.read(core, self.engine, shapes))
        except (snapshot.OtherVersion, LookupError):
            return False
        return True

    def _own(self, key: AgentKey) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        agent = self.engine.fleet.agent(key)
        return tuple(key), {} if agent is None else agent.to_state()


def _key(raw: Sequence[Any]) -> AgentKey:
    namespace, service, environment, agent, extra = raw
    return AgentKey(namespace, service, environment, agent, tuple((name, value) for name, value in extra))


def _read(state: Mapping[str, Any], fields: tuple[str, ...]) -> Mapping[str, Any]:
    """An agent's own state, whose rows had these fields."""
    if fields == Row._fields:
        return state
    return {**state, "rows": [(adapted(plain, fields), *rest) for plain, *rest in state["rows"]]}


@functools.lru_cache(8)
def _told(shapes: bytes) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """What classes looked like when a snapshot was made: the same for most agents of a partition."""
    return codec.unpress(shapes)


@functools.cache
def _known() -> tuple[bytes, bytes]:
    """What our classes look like now, and a digest of it."""
    body = codec.press((snapshot.shapes(), Row._fields))
    return hashlib.blake2b(body, digest_size=8).digest(), body


def _shapes_on(shelf: Shelf) -> bytes:
    digest, body = _known()
    if shelf.get(_SHAPES + digest) is None:
        shelf.put(_SHAPES + digest, body)
    return digest
