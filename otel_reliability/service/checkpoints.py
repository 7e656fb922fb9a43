"""Checkpoints: all state after some entry, now and then, so that a restart need not begin with the first entry.

They are written apart, by a process that has a copy of everything (`apart`), so the writer goes on within milliseconds. Windows
are written agent by agent, only those that changed, in plain values: they outlive an upgrade and other settings. The rest is
written as it is (`snapshot`), for a process of the same build.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from otel_reliability.model.event import RunEvent
from otel_reliability.model.row import Row
from otel_reliability.model.run import AgentKey
from otel_reliability.service import journal_codec as codec
from otel_reliability.service import snapshot
from otel_reliability.service.apart import Apart, Done, orphaned
from otel_reliability.service.checkpoint_store import AgentRow, Checkpoint, CheckpointStore, Point
from otel_reliability.service.clock import Clock, Moment
from otel_reliability.service.journal import Unavailable
from otel_reliability.service.journal_file import WrongJournal
from otel_reliability.service.state import State
from otel_reliability.windows.fleet import Asleep, Fleet
from otel_reliability.windows.kept import adapted, is_adaptable
from otel_reliability.windows.told import Told, measure_of, read_told, write_told

_logger = logging.getLogger("otel_reliability.service")

PATIENCE: Final = 600.0
"""Seconds after which a process that writes a checkpoint is taken to hang."""
MOST_FAILURES: Final = 2
"""Failures in a row of the other process (for want of memory, say), after which the writer itself writes."""
REST: Final = 4.0
"""So many times as long as one took to write is rested before the next, so that they take a fifth of a processor at most."""


class Checkpoints:
    """Writes checkpoints of a state to a file, and brings it back from there.

    `lost` counts what was damaged in it; `written` are the bytes of the last one, of what had changed. Without `apart` the
    writer itself writes: for the end, for tests, and where there can be no other process.
    """

    def __init__(self, state: State, path: Path, *, apart: bool) -> None:
        self.lost = self.written = 0
        self.restored: Point | None = None
        """When the checkpoint was made that was brought back."""
        self._state, self._path, self._apart = state, path, apart
        self._failures = 0
        self._changed: set[AgentKey] = set()
        self._moved: set[AgentKey] = set()
        """Agents whose rows were found by other bytes, as an earlier version wrote them: theirs are to be written anew."""
        self._writing: Apart | None = None
        self._taken: frozenset[AgentKey] = frozenset()
        self._point: Point | None = None
        self._since = self._rested_at = 0.0
        state.engine.observers.append(self._observe)

    @property
    def size(self) -> int:
        """Bytes on disk."""
        beside = (self._path, self._path.with_name(f"{self._path.name}-wal"))
        return sum(file.stat().st_size for file in beside if file.exists())

    @property
    def under_way(self) -> bool:
        """Whether one is being written."""
        return self._writing is not None

    @property
    def rested(self) -> bool:
        """Whether the last one is long enough ago."""
        return time.monotonic() >= self._rested_at

    # --- Back ---------------------------------------------------------------------------------------------------------

    def restore(self, clock: Clock) -> None:
        """Bring back the state of the last checkpoint, if there is one: `restored`. Raises `WrongJournal` where it is damaged,
        with what can be read of it brought back.
        """
        store = CheckpointStore(self._path)
        try:
            self.restored = store.point()
            if self.restored is not None:
                self._restore(store, clock)
            if store.damage:
                raise WrongJournal(store.damage)
        finally:
            store.close()
            self._changed = set(self._moved)

    def _restore(self, store: CheckpointStore, clock: Clock) -> None:
        core = store.core()
        self.written = len(core)
        try:
            seq, moment, shapes, fields, measure, fleet, rest = codec.unpress(core)
        except codec.Damaged:
            self.lost += 1
            self._restore_fleet(store, None, Row._fields, "")
            return
        self.restored = Point(seq, Moment(*moment))
        with clock.at(self.restored.moment):
            self._restore_fleet(store, _read_fleet(fleet), fields, measure)
            self._restore_rest(rest, shapes)

    def _restore_fleet(
        self, store: CheckpointStore, state: dict[str, Any] | None, fields: Sequence[str], measure: str
    ) -> None:
        """Bring back the windows; where nobody knows what else there was, those of every agent that is found."""
        agents: dict[AgentKey, Asleep] = {}
        told: dict[AgentKey, Callable[[], Told]] = {}
        engine, now = self._state.engine, 0.0 if self.restored is None else self.restored.moment.now
        try:
            if is_adaptable(fields):
                self._read_agents(store.agents(), fields, agents, told)
            else:
                _logger.warning("The windows were written by another version, and begin anew.")
        finally:
            alike = measure == measure_of(engine.settings)
            engine.fleet.restore(_bare_fleet(agents, now) if state is None else state, agents, told if alike else None)

    def _restore_rest(self, rest: bytes, shapes: Mapping[str, str]) -> None:
        try:
            self._state.restore(snapshot.read(rest, self._state.engine, shapes))
        except (snapshot.OtherVersion, LookupError, TypeError, ValueError) as error:
            _logger.warning(
                "The state was written by another version (%s). Windows are as they were; runs that were open then, sessions,"
                " alarms and counters begin anew.",
                error,
            )

    def _read_agents(
        self,
        rows: Iterable[AgentRow],
        fields: Sequence[str],
        agents: dict[AgentKey, Asleep],
        told: dict[AgentKey, Callable[[], Told]],
    ) -> None:
        for row in rows:
            self.written += len(row.body)
            try:
                codec.check(row.body)
                key = _read_key(codec.unpack(row.key))
                if bytes_of(key) != row.key:
                    self._moved.add(key)
                agents[key] = partial(_own, row.body, fields)
                if row.told is not None:
                    codec.check(row.told)
                    told[key] = partial(_told, row.told)
            except codec.Damaged:
                self.lost += 1

    # --- Out ----------------------------------------------------------------------------------------------------------

    def begin(self, point: Point) -> None:
        """Write what has changed, as it is now. `finished` tells when that is done. Raises `OSError` where it cannot begin."""
        self.cancel()
        changed, parent = frozenset(self._changed), os.getpid()
        if self._apart and self._failures < MOST_FAILURES:
            self._writing = self._state.engine.read(
                lambda _: Apart(lambda: _number(self._write(point, changed, lambda: not orphaned(parent))))
            )
            self._since = time.monotonic()
            self._point, self._taken = point, changed
            self._changed.clear()
        else:
            self.write(point)
            self._point = point

    def write(self, point: Point) -> None:
        """Write what has changed, and wait for it. Raises `Unavailable`, `WrongJournal`."""
        self.cancel()
        self.written = self._write(point, frozenset(self._changed), lambda: True)
        self._changed.clear()
        self._failures = 0

    def write_all(self, point: Point) -> None:
        """The same, with every agent."""
        self.cancel()
        self._changed = set(self._state.engine.fleet.keys())
        self.write(point)

    def finished(self) -> Point | None:
        """The point of a checkpoint that was written since this was last asked. Raises `Unavailable` where one failed."""
        writing = self._writing
        if writing is None:
            found, self._point = self._point, None
            return found
        done = writing.poll()
        if done is None and time.monotonic() - self._since > PATIENCE:
            writing.end()
            done = Done(b"", f"it took more than {PATIENCE:g} s")
        if done is None:
            return None
        if done.failure:
            self._failures += 1
            self.cancel()
            raise Unavailable("state_unwritable", done.failure)
        self._failures = 0
        self._writing, found, self._point = None, self._point, None
        now = time.monotonic()
        self._rested_at = now + REST * (now - self._since)
        self.written = int(done.answer)
        return found

    def cancel(self) -> None:
        """The one under way is not wanted, or failed: what it was to write is still to be written."""
        if self._writing is not None:
            self._writing.end()
            self._writing, self._point = None, None
            self._changed |= self._taken

    def _write(self, point: Point, changed: Iterable[AgentKey], may_commit: Callable[[], bool]) -> int:
        """Give the bytes that were written."""
        engine = self._state.engine
        fleet, sizes = engine.fleet, [0]
        keys, core = fleet.keys(), core_of(self._state, point)
        agents = _agents(fleet, [key for key in keys if key in changed], sizes)
        store = CheckpointStore(self._path)
        try:
            if store.damage:
                raise WrongJournal(store.damage)
            store.put(Checkpoint(point, core, agents), [bytes_of(key) for key in keys], may_commit)
        finally:
            store.close()
        return len(core) + sum(sizes)

    def _observe(self, event: RunEvent, now: float) -> None:
        self._changed.add(event.run.key)
        if event.previous is not None:
            self._changed.add(event.previous.key)


def core_of(state: State, point: Point) -> bytes:
    """What all agents share, as it is now, in bytes."""
    fleet = _write_fleet(state.engine.fleet.to_state())
    rest = snapshot.write(state.to_state(), state.engine)
    about = (point.seq, tuple(point.moment), snapshot.shapes(), Row._fields, measure_of(state.settings))
    return codec.press((*about, fleet, rest))


def _agents(fleet: Fleet, keys: Sequence[AgentKey], sizes: list[int]) -> Iterator[AgentRow]:
    for key in keys:
        agent = fleet.agent(key)
        if agent is not None:
            state = agent.to_state()
            told = codec.press(write_told(agent.told())) if agent.is_told else None
            row = AgentRow(bytes_of(key), len(state["rows"]), codec.press(state), told)
            sizes.append(len(row.body))
            yield row


def _own(body: bytes, fields: Sequence[str]) -> Mapping[str, Any]:
    """What an agent has, from bytes that were checked; its rows had these fields."""
    state = codec.unpress(body)
    if tuple(fields) == Row._fields:
        return state
    return {**state, "rows": [(adapted(plain, fields), *rest) for plain, *rest in state["rows"]]}


def _told(body: bytes) -> Told:
    """What was told of an agent, from bytes that were checked."""
    return read_told(codec.unpress(body))


def _number(number: int) -> bytes:
    return str(number).encode()


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


def _bare_fleet(agents: Iterable[AgentKey], now: float) -> dict[str, Any]:
    keys = list(agents)
    return {"accounts": {}, "places": keys, "agents": keys, "seen": [(key, now) for key in keys]}


def bytes_of(key: AgentKey) -> bytes:
    """What an agent's row is found by."""
    return codec.pack(tuple(key))


def _read_key(plain: Any) -> AgentKey:
    return AgentKey(*plain)
