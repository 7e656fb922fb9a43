"""Keep what was acknowledged, over the death of the process.

Spans are stored as they come, one transaction a group of requests, before they are acknowledged.
When their runs are final, the runs take their place, together with everything else that then
changed (`parts`): one transaction, at most once a second. A restart loads the final runs, agent by
agent when something asks for them, and the parts; it assembles the open traces again from their
spans, at the moments at which they came. So nothing depends on how classes look.

The clock stands still at the moment that was stored while a group is applied or deadlines are met,
and goes on from the last stored moment after a restart.
"""

from __future__ import annotations

import gc
import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from otel_reliability.assembly.memory import MAX_RUNS
from otel_reliability.engine import MAX_UNREAD
from otel_reliability.model.limit import Limit
from otel_reliability.model.record import Damaged, agent_key, pack, unpack, unpack_run
from otel_reliability.model.run import AgentKey, Run, RunChange, RunEvent
from otel_reliability.model.span import Subject, SubjectKind
from otel_reliability.service.decoded import Decoded
from otel_reliability.service.state import State
from otel_reliability.service.stored_requests import arrivals_of, insert, request_of
from otel_reliability.state.clock import Clock, Moment
from otel_reliability.state.directory import StateDirectory
from otel_reliability.state.parts import (
    FINAL_TRACES,
    FinalTraceRecords,
    Item,
    Retention,
    StoredPart,
    parts_of,
)
from otel_reliability.state.salvage import StoreOpener
from otel_reliability.state.saving import ChangedRun, Save, StoredAgents, Unsaved, statements
from otel_reliability.state.store import (
    COUNTS,
    TICK,
    Arrival,
    Statement,
    Store,
    Sync,
    Unavailable,
    Unreadable,
)
from otel_reliability.state.stored_arrivals import StoredArrivals
from otel_reliability.telemetry.guard import Guard
from otel_reliability.telemetry.series_recording import SWEEP_INTERVAL_S

T = TypeVar("T")

_logger = logging.getLogger("otel_reliability.service")

SAVE_INTERVAL_S: Final = 1.0
"""Seconds between two transactions that move final runs out of the arrivals, and between two
recordings of counters.
"""
READY_LOAD_S: Final = 1.0
"""Seconds that a restart spends on loading agents before it is ready; the others follow after."""
LOAD_S: Final = 0.05
"""Seconds that the writer spends on loading agents between two groups of requests."""
URGENT_LOAD_S: Final = 1.0
"""Seconds of the same while more than `MAX_WAITING` final runs wait for their agents. Requests wait
for so long: less than a client does.
"""
MAX_WAITING: Final = MAX_UNREAD // 2
_RESTORE: Final = Guard("bringing state back")
_LOAD: Final = Guard("loading an agent")


class Persistence:
    """Keeps what the service was sent, and what it made of it, beyond the life of the process.

    The writer calls it from its one thread, in this order: `restore`, once; then for each group of
    requests `before_apply` and `after_apply`, each second `before_deadlines` and `after_deadlines`,
    and `load` when there is time; `close` at last. Each does nothing here.

    `keeps_open_runs`: whether runs that are open at shutdown are there again after a start; where
    they are not, they are closed. `pause`: seconds after `restore` in which no deadline is met, so
    that spans which could not be sent meanwhile come in time.
    """

    keeps_open_runs = False
    pause = 0.0

    def restore(self) -> None:
        """Bring state back, before anything is accepted. The service is not ready meanwhile."""

    def before_apply(self, group: Sequence[Decoded]) -> None:
        """Store these requests, all or none, before they are applied and acknowledged. Raise
        `Unavailable`: then they are refused.
        """

    def after_apply(self) -> None:
        """Go on: the requests of the last `before_apply` are applied."""

    def before_deadlines(self) -> None:
        """Store the moment at which deadlines are about to be met. Raise `Unavailable`: then they
        are not met now.
        """

    def after_deadlines(self, now: float) -> None:
        """Record what became final. Raise `Unavailable`: it is recorded later."""

    def load(self) -> bool:
        """Load some of what a restart left for later. False: there is nothing left."""
        return False

    def limits(self) -> Iterable[Limit]:
        """Return the size of the database and its limit, where there is one."""
        return ()

    def runs(self, key: AgentKey, most: int, since_ns: int, until_ns: int) -> list[Run]:
        """Return the newest stored runs of an agent that ended between two times, at most so many.
        Any thread may ask.
        """
        return []

    def changed(self) -> None:
        """Note that a stored part changed without a request."""

    def close(self) -> None:
        """Record what is left, and end."""


class Volatile(Persistence):
    """Keeps nothing: what was acknowledged lives as long as the process."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._save_at = 0.0

    def after_deadlines(self, now: float) -> None:
        if now >= self._save_at and self._state.recording.record():
            self._save_at = now + SAVE_INTERVAL_S

    def close(self) -> None:
        self._state.recording.record()


class Persistent(Persistence):
    """Keeps state in a directory. `limit` bounds the bytes of the database.

    `lost` counts what was damaged at the last start, `refused` how often nothing could be stored.
    """

    keeps_open_runs = True

    def __init__(
        self,
        state: State,
        clock: Clock,
        directory: StateDirectory,
        *,
        sync: Sync = "normal",
        limit: int | None = None,
    ) -> None:
        self._state = state
        self._save_at = 0.0
        settings = state.engine.settings
        self.pause = settings.assembly.linger
        self.lost = self.refused = self.used = 0
        self._clock = clock
        self._directory = directory
        self._opener = StoreOpener(directory, sync, clock)
        self._limit = limit
        self._retention = Retention.of(settings)
        self._store: Store | None = None
        self._has_changed = False
        self._final = FinalTraceRecords(
            state.engine.assembler, state.engine.now, settings.assembly.remember
        )
        self._arrivals = StoredArrivals(
            state.engine.assembler, self._final, settings, clock.moment()
        )
        self._agents = StoredAgents(state.engine.agents, clock)
        self._parts = parts_of(
            state.engine, state.recording, state.logs, state.histories, state.groups
        )
        self._unsaved = Unsaved(self._agents, self._arrivals, self._final, self._parts)
        self._save: Save | None = None
        """Taken, and not written yet."""
        state.engine.observers.append(self._observe)
        state.engine.outcomes.stored = self._named
        state.removers.append(self._remove)

    def limits(self) -> Iterable[Limit]:
        if self._store is not None and self._limit is not None:
            yield Limit("state_bytes", self.used, self._limit, self.refused)

    def runs(self, key: AgentKey, most: int, since_ns: int, until_ns: int) -> list[Run]:
        question = (
            "SELECT body FROM run WHERE agent = (SELECT id FROM agent WHERE key = ?) AND "
            "end_ns BETWEEN ? AND ? "
            "ORDER BY end_ns DESC, run_id DESC LIMIT ?"
        )
        try:
            with closing(
                sqlite3.connect(f"{self._directory.database.resolve().as_uri()}?mode=ro", uri=True)
            ) as db:
                rows = db.execute(question, (pack(key), since_ns, until_ns, most)).fetchall()
        except sqlite3.Error:  # the writer finds out what is wrong with it
            return []
        return list(self._intact(unpack_run, rows))

    def _remove(self, key: AgentKey) -> None:
        """Note that an agent was removed: what is stored of it goes with the next transaction, and
        its runs that are not final yet are not stored.
        """
        self._unsaved.remove(key)
        self._has_changed = True

    def _named(self, subject: Subject) -> list[Run]:
        """Return the final runs that the id of a run, or of a trace, names, as they are now. Only
        the writer's thread may ask.
        """
        if self._store is None or subject.kind not in {SubjectKind.RUN, SubjectKind.TRACE}:
            return []
        question = "SELECT body FROM run WHERE run_id BETWEEN ? AND ?"
        last = subject.value if subject.kind == SubjectKind.RUN else f"{subject.value}-g"
        found: dict[str, Run] = {}
        with suppress(Unreadable):  # the next transaction finds out what is wrong with it
            rows = self._store.rows(question, subject.value, last)
            found = {run.run_id: run for run in self._intact(unpack_run, rows)}
        pending: Mapping[str, ChangedRun] = {} if self._save is None else self._save.runs
        changes = {**pending, **self._unsaved.runs}
        for run_id in found.keys() & changes.keys():
            found[run_id] = changes[run_id].run
            if changes[run_id].change is RunChange.WITHDRAWN:
                del found[run_id]
        if subject.kind == SubjectKind.TRACE:
            return [run for run in found.values() if not run.nested]
        return list(found.values())

    def changed(self) -> None:
        self._has_changed = True

    # --- Requests ---------------------------------------------------------------------------------

    def before_apply(self, group: Sequence[Decoded]) -> None:
        """Store these requests, and stand still at their moment until they are applied."""
        moment = self._clock.moment()
        arrivals = list(arrivals_of(group, moment, self._arrivals.last + 1))
        self._check_limit()
        self._write([insert(arrivals)])
        for arrival in arrivals:
            self._note(arrival)
        self._clock.hold(moment)

    def after_apply(self) -> None:
        self._clock.release()

    def before_deadlines(self) -> None:
        tick = self._arrivals.next_tick(self._clock.moment())
        self._write([insert([tick])])
        self._arrivals.add_tick(tick)
        self._clock.hold(tick.moment)

    def after_deadlines(self, now: float) -> None:
        """Save what became final.

        What is final is recorded with readings of its agent, so saving waits until these agents are
        loaded, but for a backlog of which runs would soon be dropped. Sessions close, and agents
        expire, without a request.
        """
        self._clock.release()
        engine = self._state.engine
        waiting = self._state.engine.waiting
        if waiting >= MAX_WAITING:
            with _LOAD:
                engine.load_agents(URGENT_LOAD_S)
        has_news = self._has_changed or waiting or now >= self._save_at + SWEEP_INTERVAL_S
        is_behind = engine.agents.is_behind and waiting < MAX_UNREAD * 9 // 10
        if now >= self._save_at and has_news and not is_behind:
            self._record(now)
            self._save_at = now + SAVE_INTERVAL_S

    def load(self) -> bool:
        engine = self._state.engine
        if not engine.agents.unloaded:
            return False
        with _LOAD:
            engine.load_agents(LOAD_S)
        if not engine.agents.unloaded:
            _logger.info("All agents are loaded.")
        return True

    def close(self) -> None:
        """Save everything, so that the next start has little to do."""
        if self._store is not None:
            try:
                self._record(self._state.engine.now())
            except Unavailable as error:
                _logger.warning(
                    "The state could not be saved at the end; the next start takes longer: %s",
                    error,
                )
            self._store.close()
            self._store = None
        self._directory.release()

    def _note(self, arrival: Arrival) -> None:
        self._arrivals.add(arrival)
        self._has_changed = True

    def _observe(self, event: RunEvent, now: float) -> None:
        """Note what the next save changes of a run."""
        run = event.run
        self._has_changed = True
        self._arrivals.keep_last()
        if event.change is RunChange.CLOSED:
            self._unsaved.return_of(run.key)
            return
        if event.change is not RunChange.REVISED:
            self._arrivals.open.due[run.trace_id] = None
        self._unsaved.change_run(event.change, self._in_time(run))

    def _in_time(self, run: Run) -> Run:
        """Return the run with the end that windows have of it: one from the future was clamped when
        it closed.
        """
        if run.end_ns <= self._clock.wall():
            return run
        agent = self._state.engine.agents.agent(run.key)
        row = None if agent is None else agent.row(run.run_id)
        if row is None:
            return run
        return replace(run, start_ns=min(run.start_ns, row.end_ns), end_ns=row.end_ns)

    # --- Saving -----------------------------------------------------------------------------------

    def _record(self, now: float) -> None:
        """Move what is final out of the arrivals, with everything that follows from it, and record
        it.

        Counters and histograms that leave the process rest on what is stored: their readers wait
        for the transaction. While one is pending that failed, nothing further is recorded.
        """
        self._write_save()
        self._state.recording.record(partial(self._save_all, now))
        self._has_changed = False
        self._arrivals.keep_last()

    def _save_all(self, now: float) -> None:
        self._save = self._unsaved.take(now)
        self._write_save()

    def _write_save(self) -> None:
        """Write the save that was taken. One that cannot be written is kept."""
        if self._save is not None:
            self._write(statements(self._save, self._retention, lambda: self._store))
            self._save = None

    # --- At the start -----------------------------------------------------------------------------

    def restore(self) -> None:
        """Go on where the last process stopped. A damaged database is set aside, and what can be
        read of it is kept.
        """
        began = time.monotonic()
        self._arrivals.moment = self._clock.moment()
        # what is loaded stays, and to look through it for cycles again and again costs most
        gc.disable()
        try:
            store = self._store = self._opener.open()
            self._load(store)
            with _LOAD:
                self._state.engine.load_agents(READY_LOAD_S)
        finally:
            gc.enable()
        self._clock.resume(self._arrivals.moment.now)
        if self.lost:
            _logger.error("%d entries of the state are damaged, and lost.", self.lost)
        self.used = store.size
        _logger.info(
            "State is back: %d open traces, %d agents to load, %.1f s.",
            len(self._arrivals.open),
            self._state.engine.agents.unloaded,
            time.monotonic() - began,
        )

    def _load(self, store: Store) -> None:
        """Load what was saved, assemble open traces again, and apply what came after
        it was saved.
        """
        for seq, *moment in self._saved(store):
            self._arrivals.resume(seq, Moment(*moment))
            self._clock.resume(self._arrivals.moment.now)
        saved = self._arrivals.last
        self._load_agents(store)
        self._load_part(store, FINAL_TRACES, self._final)
        latest = store.rows("SELECT body FROM run ORDER BY seq DESC LIMIT ?", MAX_RUNS)
        self._state.engine.assembler.restore_final(list(self._intact(unpack_run, latest))[::-1])
        for row in store.rows("SELECT * FROM arrival WHERE seq <= ? ORDER BY seq", saved):
            self._repeat(Arrival(*row), counting=False)
        self._state.recording.discard()
        for name, part in self._parts.items():
            self._load_part(store, name, part)
        for (position,) in store.rows("SELECT ifnull(max(position), 0) FROM part"):
            self._unsaved.resume(position)
        for row in store.rows("SELECT * FROM arrival WHERE seq > ? ORDER BY seq", saved):
            self._repeat(Arrival(*row), counting=True)

    def _saved(self, store: Store) -> Iterator[tuple[Any, ...]]:
        """Yield the last arrival that the stored parts include, and its moment. Where that is lost,
        it is taken to be the last of all: nothing counts twice.
        """
        rows = list(store.rows("SELECT seq, now, wall FROM saved"))
        if not rows and list(store.rows("SELECT 1 FROM part LIMIT 1")):
            rows = list(store.rows("SELECT seq, now, wall FROM arrival ORDER BY seq DESC LIMIT 1"))
            self.lost += 1
        yield from rows

    def _load_agents(self, store: Store) -> None:
        """Let every agent be known by its key. Its runs are read when something asks for it."""

        def agent(number: int, key: bytes, seen: float) -> tuple[AgentKey, int, float]:
            return agent_key(unpack(key)), number, seen

        found = list(self._intact(agent, store.rows("SELECT id, key, seen FROM agent ORDER BY id")))
        self._agents.restore({key: number for key, number, _ in found})
        self._state.engine.restore_agents(
            {key: (seen, partial(self._runs_of, number)) for key, number, seen in found}
        )

    def _runs_of(self, agent: int) -> Iterator[Run]:
        """Yield the final runs of an agent, the newest first, as they are stored now."""
        if self._store is not None:
            question = "SELECT body FROM run WHERE agent = ? ORDER BY end_ns DESC, run_id DESC"
            yield from self._intact(unpack_run, list(self._store.rows(question, agent)))

    def _load_part(self, store: Store, name: str, part: StoredPart) -> None:
        def item(key: bytes, body: bytes) -> Item:
            return unpack(key), unpack(body)

        rows = store.rows("SELECT key, body FROM part WHERE name = ? ORDER BY position", name)
        with _RESTORE:
            part.restore(self._intact(item, rows))

    def _repeat(self, arrival: Arrival, *, counting: bool) -> None:
        """Apply an arrival again, at its moment."""
        self._note(arrival)
        self._clock.hold(arrival.moment)
        with _RESTORE:
            if arrival.kind == TICK:
                self._state.engine.tick()
            elif counting or arrival.kind != COUNTS:
                for request in self._intact(request_of, [(arrival.kind, arrival.body)]):
                    self._state.apply(request)
        self._clock.release()

    def _intact(self, read: Callable[..., T], rows: Iterable[tuple[Any, ...]]) -> Iterator[T]:
        """Yield what `read` makes of each row; those that are damaged are counted and left out."""
        for row in rows:
            try:
                found = read(*row)
            except Damaged:
                self.lost += 1
            else:
                yield found

    # --- Writing ----------------------------------------------------------------------------------

    def _write(self, statements: Sequence[Statement]) -> None:
        """Write to the database. One that turns out to be damaged is set aside, and its rows are
        copied to a new one.
        """
        store = self._store
        if store is None:
            raise Unavailable("state_unwritable", "the state is closed")
        try:
            store.transact(statements)
            self.used = store.size
        except Unreadable as error:
            store.damage = str(error)
            try:
                self._store = self._opener.salvaged(store)
            except (OSError, Unreadable) as worse:
                raise Unavailable(
                    "state_unwritable", f"no state can be written ({worse})"
                ) from None
            self._store.transact(statements)
        except Unavailable:
            self.refused += 1
            raise

    def _check_limit(self) -> None:
        """Raise `Unavailable` if no further request may be stored. What becomes final is still
        saved: it makes room.
        """
        if self._limit is not None and self.used >= self._limit:
            self.refused += 1
            raise Unavailable(
                "state_full", f"the state has reached its limit of {self._limit} bytes"
            )
