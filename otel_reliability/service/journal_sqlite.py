"""A journal on disk: every request and every moment at which deadlines were met, and now and then all state after them.

State is a function of what came, in its order, and of when. So each entry is written down with its moment before it is
applied, the clock stands still at that moment while it is, and after a restart the same entries at the same moments give the
same state: every run, window, session, alarm and counter. Nothing that leaves the process rests on an entry that is not kept.

A checkpoint is written when entries have outgrown the last one, so that what is written in all stays within a few times of
what came in. Windows are written agent by agent, only those that changed, in plain values: they outlive an upgrade and other
settings. The rest is written as it is (`snapshot`), for a process of the same build.
"""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from otel_reliability.engine import Ceiling
from otel_reliability.model.event import RunEvent
from otel_reliability.model.run import AgentKey
from otel_reliability.service import journal_codec as codec
from otel_reliability.service import snapshot
from otel_reliability.service.clock import Clock, Moment
from otel_reliability.service.decoded import Decoded
from otel_reliability.service.journal import Unavailable
from otel_reliability.service.journal_store import REQUEST, TICK, Checkpoint, Entry, Store, Sync, WrongJournal
from otel_reliability.service.state import State
from otel_reliability.service.state_directory import StateDirectory
from otel_reliability.telemetry.guard import Guard
from otel_reliability.windows.fleet import Asleep

_logger = logging.getLogger("otel_reliability.service")

LEAST: Final = 16 * 1024 * 1024
"""Bytes of entries before which no checkpoint is written: reading them takes a second or two."""
SHARE: Final = 0.5
"""Of the last checkpoint's bytes: as many bytes of entries, at least, come before the next one."""
PATIENCE: Final = 1.0
"""Seconds between two attempts to open a journal."""
RETRY: Final = 10.0
"""Seconds after a checkpoint that failed before the next is tried."""

_APPLY: Final = Guard("applying a request")
_ADVANCE: Final = Guard("meeting deadlines")
_CHECKPOINT: Final = Guard("writing a checkpoint")


class Sqlite:
    """Keeps state in a directory. `limit` bounds the bytes of the journal; `least` is for tests."""

    keeps_open_runs = True

    def __init__(
        self,
        state: State,
        clock: Clock,
        directory: StateDirectory,
        *,
        sync: Sync = "normal",
        limit: int | None = None,
        least: int = LEAST,
    ) -> None:
        self.pause = state.settings.assembly.linger
        self.restored = 0
        """Entries that were applied again at the last start."""
        self.lost = 0
        """Entries that were damaged, and are lost."""
        self._state, self._clock, self._directory = state, clock, directory
        self._sync: Sync = sync
        self._limit, self._least = limit, least
        self._store: Store | None = None
        self._seq = self._pending = self._written = 0
        self._quiet = False
        self._retry_at = 0.0
        self._last = Moment(0.0, 0)
        self._changed: set[AgentKey] = set()
        self._shape = (-1, -1, -1)
        self.refused = 0
        """How often nothing could be kept."""
        state.ceilings = self.ceilings
        state.engine.observers.append(self._observe)

    def ceilings(self) -> Iterable[Ceiling]:
        """How large the journal is, and may be; and how often that refused requests."""
        store = self._store
        if store is not None and self._limit is not None:
            yield Ceiling("state_bytes", store.used, self._limit, self.refused)

    # --- At the start -------------------------------------------------------------------------------------------------

    def restore(self) -> None:
        """Be where we were. A journal that cannot be read is set aside, with what can be read of it taken over."""
        began = time.monotonic()
        self._last = self._clock.moment()
        trouble = ""
        try:
            self._store = self._opened()
            with _no_collections():
                self._take_over(self._store)
        except WrongJournal as error:
            trouble = str(error)
        self._clock.resume(self._last.now)
        if trouble or self.lost:
            self._begin_anew(trouble or f"{self.lost} of its entries are damaged")
        _logger.info(
            "State is back: %d requests since the last checkpoint, %.1f s.", self.restored, time.monotonic() - began
        )

    def _opened(self) -> Store:
        """The journal; where it cannot be opened now (the disk is full, say), as soon as it can be."""
        while True:
            try:
                return Store(self._directory.journal, self._sync, self._limit)
            except Unavailable as error:
                _logger.warning("%s; trying again in %g s", error.detail, PATIENCE)
                time.sleep(PATIENCE)

    def _take_over(self, store: Store) -> None:
        found = store.checkpoint()
        if found is not None:
            self._last, self._seq = found.moment, found.seq
            self._written = len(found.core) + sum(len(body) for _, body in found.agents)
            with self._clock.at(found.moment):
                self._restore_checkpoint(found)
        self._changed.clear()
        for entry in store.entries():
            self._last, self._seq = entry.moment, entry.seq
            self._repeat(entry)

    def _restore_checkpoint(self, found: Checkpoint) -> None:
        engine = self._state.engine
        try:
            shapes, fleet, rest = codec.unpack(found.core)
            engine.fleet.restore(_read_fleet(fleet), dict(self._read_agents(found.agents)))
            self._state.restore(snapshot.read(rest, engine, shapes))
        except codec.Damaged:
            self.lost += 1
        except (snapshot.OtherVersion, LookupError) as error:
            _logger.warning(
                "The state was written by another version (%s). Windows are as they were; runs that were open then, sessions,"
                " alarms and counters begin anew.",
                error,
            )

    def _read_agents(self, agents: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[AgentKey, Asleep]]:
        for key, body in agents:
            try:
                codec.check(body)
                yield _read_key(codec.unpack(key)), partial(codec.unpack, body)
            except codec.Damaged:
                self.lost += 1

    def _repeat(self, entry: Entry) -> None:
        with self._clock.at(entry.moment):
            if entry.kind == TICK:
                with _ADVANCE:
                    self._state.advance()
                self._quiet = not self._has_changed()
                return
            self._quiet = False
            self._pending += len(entry.body)
            try:
                request = codec.read(entry.body)
            except codec.Damaged:
                self.lost += 1
                return
            with _APPLY:
                self._state.apply(request)
            self.restored += 1

    def _begin_anew(self, why: str) -> None:
        """Set the journal aside, and begin another with what is here."""
        if self._store is not None:
            self._store.close()
            self._store = None
        name = self._directory.set_aside()
        _logger.error("The journal was set aside as %s: %s. What could be read of it was taken over.", name, why)
        self._store = Store(self._directory.journal, self._sync, self._limit)
        self._changed = set(self._state.engine.fleet.keys())
        self._checkpoint(self._store)

    # --- Requests -----------------------------------------------------------------------------------------------------

    def commit(self, group: Sequence[Decoded]) -> None:
        """Keep these requests, all or none, and stand still at their moment until they are applied."""
        moment = self._clock.moment()
        bodies = [codec.write(request) for request in group]
        entries = [Entry(self._seq + at, REQUEST, moment, body) for at, body in enumerate(bodies, start=1)]
        self._append(entries)
        self._seq += len(entries)
        self._pending += sum(map(len, bodies))
        self._quiet = False
        self._clock.hold(moment)

    def applied(self) -> None:
        """Time goes on."""
        self._clock.release()

    # --- Deadlines ----------------------------------------------------------------------------------------------------

    def advancing(self) -> None:
        """Keep the moment at which deadlines are met. One after which nothing had changed gives way to the next."""
        moment = self._clock.moment()
        seq = self._seq if self._quiet else self._seq + 1
        self._append([Entry(seq, TICK, moment, b"")])
        self._seq = seq
        self._clock.hold(moment)

    def advanced(self, now: float) -> None:
        """Time goes on; write a checkpoint where it is due."""
        self._clock.release()
        self._quiet = not self._has_changed()
        if self._pending >= max(self._least, SHARE * self._written) and now >= self._retry_at:
            self._try_checkpoint(now)

    def close(self) -> None:
        """Leave a checkpoint behind, so that the next start is quick."""
        if self._store is not None:
            self._try_checkpoint(self._clock())
            self._store.close()
            self._store = None
        self._directory.release()

    # --- Writing ------------------------------------------------------------------------------------------------------

    def _append(self, entries: Sequence[Entry]) -> None:
        if self._store is None:
            raise Unavailable("state_unwritable", "the journal is closed")
        try:
            self._store.append(entries)
        except WrongJournal as error:
            self._mend(str(error))
            self._store.append(entries)
        except Unavailable:
            self.refused += 1
            raise

    def _mend(self, why: str) -> None:
        """The file was damaged while it was in use: all that was in it is still here."""
        try:
            self._begin_anew(why)
        except (OSError, WrongJournal) as error:
            raise Unavailable("state_unwritable", f"no journal can be written ({error})") from None

    def _try_checkpoint(self, now: float) -> None:
        if self._store is None:
            return
        self._retry_at = now + RETRY
        with _CHECKPOINT:
            try:
                with _no_collections():
                    self._checkpoint(self._store)
            except (Unavailable, WrongJournal, RecursionError) as error:
                _logger.warning("No checkpoint could be written; entries are kept until one can: %s", error)
            else:
                self._retry_at = 0.0

    def _checkpoint(self, store: Store) -> None:
        engine, moment = self._state.engine, self._clock.moment()
        keys = engine.fleet.keys()
        fleet = _write_fleet(engine.fleet.to_state())
        core = codec.pack((snapshot.shapes(), fleet, snapshot.write(self._state.to_state(), engine)))
        agents = list(self._agents(key for key in keys if key in self._changed))
        store.put(Checkpoint(self._seq, moment, core, agents), [_key_bytes(key) for key in keys])
        self._changed.clear()
        self._pending = 0
        self._written = len(core) + sum(len(body) for _, body in agents)

    def _agents(self, keys: Iterable[AgentKey]) -> Iterable[tuple[bytes, bytes]]:
        for key in keys:
            agent = self._state.engine.fleet.agent(key)
            if agent is not None:
                yield _key_bytes(key), codec.pack(agent.to_state())

    def _observe(self, event: RunEvent, now: float) -> None:
        self._changed.add(event.run.key)
        if event.previous is not None:
            self._changed.add(event.previous.key)
        self._shape = (-1, -1, -1)

    def _has_changed(self) -> bool:
        """Whether anything that is told changed since this was last asked: a run, a session, or who is known."""
        engine = self._state.engine
        shape = (len(engine.fleet), len(engine.sessions), engine.sessions.open)
        changed = shape != self._shape
        self._shape = shape
        return changed


@contextmanager
def _no_collections() -> Generator[None]:
    """Without the collector of cycles: what is made here stays, and looking through it again and again takes most of the time."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def _write_fleet(state: dict[str, Any]) -> dict[str, Any]:
    return {
        "accounts": [(tuple(what), number) for what, number in state["accounts"].items()],
        "places": [tuple(key) for key in state["places"]],
        "agents": [tuple(key) for key in state["agents"]],
        "seen": [(tuple(key), since) for key, since in state["seen"]],
    }


def _read_fleet(plain: dict[str, Any]) -> dict[str, Any]:
    return {
        "accounts": dict(plain["accounts"]),
        "places": [_read_key(key) for key in plain["places"]],
        "agents": [_read_key(key) for key in plain["agents"]],
        "seen": [(_read_key(key), since) for key, since in plain["seen"]],
    }


def _key_bytes(key: AgentKey) -> bytes:
    return codec.pack(tuple(key))


def _read_key(plain: Any) -> AgentKey:
    return AgentKey(*plain)
