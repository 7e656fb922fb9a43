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
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from otel_reliability.assembly.evaluations import WAIT
from otel_reliability.assembly.memory import MAX_RUNS
from otel_reliability.engine import MAX_UNREAD
from otel_reliability.model.limit import Limit
from otel_reliability.model.record import (
    Damaged,
    agent_key,
    evaluations_of,
    pack,
    pack_spans,
    unpack,
    unpack_run,
    unpack_spans,
)
from otel_reliability.model.run import AgentKey, Run, RunChange, RunEvent
from otel_reliability.model.span import AgentSpan, Evaluation, Subject, SubjectKind, TraceId
from otel_reliability.service.decoded import Decoded
from otel_reliability.service.state import State
from otel_reliability.state.clock import Clock, Moment
from otel_reliability.state.directory import StateDirectory
from otel_reliability.state.parts import (
    FinalTraceRecords,
    Item,
    OpenTraces,
    Retention,
    StoredPart,
    parts_of,
)
from otel_reliability.state.store import (
    COUNTS,
    EVALUATIONS,
    ORDER,
    SPANS,
    TICK,
    Arrival,
    OtherLayout,
    Statement,
    Store,
    Sync,
    Unavailable,
    Unreadable,
    copy_table,
    head_for,
)
from otel_reliability.telemetry.guard import Guard
from otel_reliability.telemetry.series_recording import SWEEP_INTERVAL_S

T = TypeVar("T")

_logger = logging.getLogger("otel_reliability.service")

SAVE_INTERVAL_S: Final = 1.0
"""Seconds between two transactions that move final runs out of the arrivals, and between two
recordings of counters.
"""
RETRY_INTERVAL_S: Final = 1.0
"""Seconds between two attempts to open the database."""
READY_LOAD_S: Final = 1.0
"""Seconds that a restart spends on loading agents before it is ready; the others follow after."""
LOAD_S: Final = 0.05
"""Seconds that the writer spends on loading agents between two groups of requests."""
URGENT_LOAD_S: Final = 1.0
"""Seconds of the same while more than `MAX_WAITING` final runs wait for their agents. Requests wait
for so long: less than a client does.
"""
MAX_WAITING: Final = MAX_UNREAD // 2
MAX_TICKS: Final = 10_000
"""Moments stored; of more, every other one is deleted, and runs are closed a moment later when they
are assembled again.
"""

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
        self._limit = limit
        self._sync: Sync = sync
        self._wait = WAIT + settings.assembly.idle_timeout + settings.assembly.reopen
        self._retention = Retention.of(settings)
        self._store: Store | None = None
        self._seq = 0
        self._position = 0
        self._moment = clock.moment()
        self._is_quiet = False
        self._has_changed = False
        self._final = FinalTraceRecords(
            state.engine.assembler, state.engine.now, settings.assembly.remember
        )
        self._open = OpenTraces(state.engine.assembler, self._final, settings)
        self._ticks: list[int] = []
        self._evaluations: list[tuple[float, int]] = []
        self._counts: list[int] = []
        self._changed: dict[str, tuple[RunChange, Run]] = {}
        self._agents: dict[AgentKey, int] = {}
        self._last_agent = 0
        self._removed: set[AgentKey] = set()
        """Agents that were removed, and had no run since."""
        self._gone: list[int] = []
        self._pending: list[Statement] = []
        self._parts = parts_of(
            state.engine, state.recording, state.logs, state.histories, state.groups
        )
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
        self._removed.add(key)
        self._changed = {
            run_id: each for run_id, each in self._changed.items() if each[1].key != key
        }
        number = self._agents.pop(key, None)
        if number is not None:
            self._gone.append(number)
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
        for run_id in found.keys() & self._changed.keys():
            change, found[run_id] = self._changed[run_id]
            if change is RunChange.WITHDRAWN:
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
        arrivals = list(_arrivals(group, moment, self._seq + 1))
        self._check_limit()
        self._write([_insert(arrivals)])
        for arrival in arrivals:
            self._note(arrival)
        self._clock.hold(moment)

    def after_apply(self) -> None:
        self._clock.release()

    def before_deadlines(self) -> None:
        """Store the moment at which deadlines are met. One at which nothing happened gives way to
        the next.
        """
        moment = self._clock.moment()
        tick = Arrival(self._seq + (not self._is_quiet), TICK, *moment, None, b"")
        self._write([_insert([tick])])
        if not self._is_quiet:
            self._ticks.append(tick.seq)
        self._seq = tick.seq
        self._moment = moment
        self._is_quiet = True
        self._clock.hold(moment)

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
            self._save(now)
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
                self._save(self._state.engine.now())
            except Unavailable as error:
                _logger.warning(
                    "The state could not be saved at the end; the next start takes longer: %s",
                    error,
                )
            self._store.close()
            self._store = None
        self._directory.release()

    def _note(self, arrival: Arrival) -> None:
        """Note a stored arrival: its row is deleted when nothing needs it."""
        if arrival.trace is not None:
            self._open.add(arrival.trace, arrival.seq, arrival.now)
        elif arrival.kind == TICK:
            self._ticks.append(arrival.seq)
        elif arrival.kind == EVALUATIONS:
            self._evaluations.append((arrival.now, arrival.seq))
        else:
            self._counts.append(arrival.seq)
        if arrival.seq >= self._seq:
            self._seq = arrival.seq
            self._moment = arrival.moment
        self._is_quiet = False
        self._has_changed = True

    def _observe(self, event: RunEvent, now: float) -> None:
        """Note what the next transaction changes of a run: the last change of each counts."""
        change = event.change
        run = event.run
        self._has_changed = True
        self._is_quiet = False
        if change is RunChange.CLOSED:
            self._removed.discard(run.key)
            return
        if change is not RunChange.REVISED:
            self._open.due[run.trace_id] = None
        elif self._changed.get(run.run_id, (change,))[0] is RunChange.FINAL:
            change = RunChange.FINAL  # its row is not written yet
        if run.key not in self._removed:
            self._changed[run.run_id] = change, self._in_time(run)

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

    def _save(self, now: float) -> None:
        """Move what is final out of the arrivals, with everything that follows from it, and record
        it.

        Counters and histograms that leave the process rest on what is stored: their readers wait
        for the transaction. While one is pending that failed, nothing further is recorded.
        """
        self._write_pending()
        self._state.recording.record(partial(self._save_all, now))
        self._has_changed = self._is_quiet = False  # the moment that is saved gives way to no other

    def _save_all(self, now: float) -> None:
        self._pending = list(self._statements(now))
        self._write_pending()

    def _write_pending(self) -> None:
        if self._pending:
            self._write(self._pending)
            self._pending = []

    def _statements(self, now: float) -> Iterator[Statement]:
        """Yield the statements of one save, in the order in which they must run. It clears the
        notes of what they cover: one call a save, whose list is kept until it is written.
        """
        changed = self._changed.values()
        self._changed = {}
        final, revised, withdrawn = (
            [run for change, run in changed if change is kind]
            for kind in (RunChange.FINAL, RunChange.REVISED, RunChange.WITHDRAWN)
        )
        yield from self._write_agents({run.key for run in (*final, *revised)})
        rows = ((run.run_id, self._agents[run.key], run.end_ns, pack(run)) for run in final)
        yield (
            "INSERT OR REPLACE INTO run (run_id, agent, end_ns, body) VALUES (?, ?, ?, ?)",
            list(rows),
        )
        yield (
            "UPDATE run SET agent = ?, end_ns = ?, body = ? WHERE run_id = ?",
            [(self._agents[run.key], run.end_ns, pack(run), run.run_id) for run in revised],
        )
        yield "DELETE FROM run WHERE run_id = ?", [(run.run_id,) for run in withdrawn]
        surplus = self._surplus(dict.fromkeys(self._agents[run.key] for run in final))
        yield "DELETE FROM run WHERE agent = ? AND end_ns < ?", surplus
        yield "DELETE FROM arrival WHERE seq = ?", [(seq,) for seq in self._over(now)]
        for name, part in (("closed", self._final), *self._parts.items()):
            yield from self._write_part(name, part)
        yield "INSERT OR REPLACE INTO saved VALUES (1, ?, ?, ?)", [(self._seq, *self._moment)]

    def _surplus(self, agents: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Yield agents, each with the end (ns) before which none of its stored runs is needed.

        It is consumed within the transaction, so that runs of earlier statements count. A second
        attempt may find it consumed: the next save of the agent deletes the rest.
        """
        if self._store is None:
            return
        newest = "SELECT end_ns FROM run WHERE agent = ? ORDER BY end_ns DESC LIMIT 1 OFFSET ?"
        for agent in agents:
            for (last,) in self._store.rows(newest, agent, self._retention.last - 1):
                for (first,) in self._store.rows(newest, agent, 0):
                    yield agent, self._retention.oldest_end(first, last)

    def _write_agents(self, keys: set[AgentKey]) -> Iterator[Statement]:
        agents = self._state.engine.agents
        gone = (
            [key for key in self._agents if agents.seen(key) is None]
            if len(self._agents) > len(agents)
            else []
        )
        numbers = [*self._gone, *(self._agents.pop(key) for key in gone)]
        self._gone = []
        for number in numbers:
            yield "DELETE FROM run WHERE agent = ?", [(number,)]
            yield "DELETE FROM agent WHERE id = ?", [(number,)]
        new = [key for key in agents.keys() if key not in self._agents]  # noqa: SIM118  no mapping
        keys.update(new)
        for key in (*new, *sorted(keys.difference(self._agents, new))):  # as they were first seen
            self._last_agent += 1
            self._agents[key] = self._last_agent
        yield (
            "INSERT OR REPLACE INTO agent VALUES (?, ?, ?)",
            [(self._agents[key], pack(key), agents.seen(key) or self._clock()) for key in keys],
        )

    def _write_part(self, name: str, part: StoredPart) -> Iterator[Statement]:
        changes = list(part.changes())
        yield (
            "DELETE FROM part WHERE name = ? AND key = ?",
            [(name, pack(key)) for key, body in changes if body is None],
        )
        first = self._position + 1
        self._position = self._position + len(changes)
        kept = [
            (name, pack(key), at, pack(body))
            for at, (key, body) in enumerate(changes, first)
            if body is not None
        ]
        yield "INSERT OR REPLACE INTO part VALUES (?, ?, ?, ?)", kept

    def _over(self, now: float) -> Iterator[int]:
        """Yield the arrivals that nothing needs any longer: of final traces, old ones of no trace,
        moments before all others.
        """
        yield from self._open.unneeded(now)
        yield from self._counts
        self._counts.clear()
        horizon = now - self._wait
        yield from (seq for at, seq in self._evaluations if at <= horizon)
        self._evaluations = [(at, seq) for at, seq in self._evaluations if at > horizon]
        yield from self._old_ticks()

    def _old_ticks(self) -> Iterator[int]:
        """Yield the moments before all spans that are kept; of too many, every other one of the
        older half.
        """
        first = min(self._open.first, self._seq)
        if self._evaluations:
            first = min(first, self._evaluations[0][1])
        ticks = [seq for seq in self._ticks if seq >= first]
        if len(ticks) > MAX_TICKS:
            ticks = ticks[: MAX_TICKS // 2 : 2] + ticks[MAX_TICKS // 2 :]
        yield from sorted(set(self._ticks).difference(ticks, (self._seq,)))
        self._ticks = ticks

    # --- At the start -----------------------------------------------------------------------------

    def restore(self) -> None:
        """Go on where the last process stopped. A damaged database is set aside, and what can be
        read of it is kept.
        """
        began = time.monotonic()
        self._moment = self._clock.moment()
        # what is loaded stays, and to look through it for cycles again and again costs most
        gc.disable()
        try:
            store = self._store = self._opened()
            self._load(store)
            with _LOAD:
                self._state.engine.load_agents(READY_LOAD_S)
        finally:
            gc.enable()
        self._clock.resume(self._moment.now)
        if self.lost:
            _logger.error("%d entries of the state are damaged, and lost.", self.lost)
        self.used = store.size
        _logger.info(
            "State is back: %d open traces, %d agents to load, %.1f s.",
            len(self._open),
            self._state.engine.agents.unloaded,
            time.monotonic() - began,
        )

    def _load(self, store: Store) -> None:
        """Load what was saved, assemble open traces again, and apply what came after
        it was saved.
        """
        for seq, *moment in self._saved(store):
            self._seq = seq
            self._moment = Moment(*moment)
            self._clock.resume(self._moment.now)
        saved = self._seq
        for (self._position,) in store.rows("SELECT ifnull(max(position), 0) FROM part"):
            pass
        self._load_agents(store)
        self._load_part(store, "closed", self._final)
        latest = store.rows("SELECT body FROM run ORDER BY seq DESC LIMIT ?", MAX_RUNS)
        self._state.engine.assembler.restore_final(list(self._intact(unpack_run, latest))[::-1])
        for row in store.rows("SELECT * FROM arrival WHERE seq <= ? ORDER BY seq", saved):
            self._repeat(Arrival(*row), counting=False)
        self._state.recording.discard()
        for name, part in self._parts.items():
            self._load_part(store, name, part)
        self._changed = {}  # what was noted meanwhile is stored already
        for part in (self._final, *self._parts.values()):
            deque(part.changes(), maxlen=0)
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

    def _opened(self) -> Store:
        """Open the database, as soon as it can be opened; set one aside that cannot be read. Raise
        `OtherLayout` for one of another version.
        """
        self._directory.finish_replacing()
        if self._directory.lacks_journal:
            _logger.error(
                "%s-wal is missing, although the service did not end in good order: what it stored "
                "last is lost. Restore all files of the directory together.",
                self._directory.database,
            )
        while True:
            try:
                store = Store(self._directory.database, self._sync)
                if store.damage:
                    store = self._salvaged(store)
                self._directory.use()
            except Unreadable as error:
                why = str(error)
                self._directory.discard_salvage()
                Store(self._directory.salvage, self._sync).close()
                kept = self._salvaged_without_head()
                name = self._directory.replace_database()
                _logger.error(  # noqa: TRY400
                    "The state was set aside as %s: %s. %s",
                    name,
                    why,
                    "What could be read of it was kept."
                    if kept
                    else "The service begins without it.",
                )
            except Unavailable as error:
                _logger.warning("%s; trying again in %g s.", error.detail, RETRY_INTERVAL_S)
                time.sleep(RETRY_INTERVAL_S)
            else:
                return store

    def _salvaged(self, damaged: Store) -> Store:
        """Return a new database with everything that can be read of a damaged one, which is set
        aside when the new one is complete. Close the damaged one.
        """
        self._directory.discard_salvage()
        with closing(Store(self._directory.salvage, self._sync)) as store:
            self._copy(damaged, store)
        name = self._directory.replace_database()
        damaged.close()
        _logger.error(
            "The state was set aside as %s: %s. What could be read of it was kept.",
            name,
            damaged.damage,
        )
        return Store(self._directory.database, self._sync)

    def _salvaged_without_head(self) -> bool:
        """Copy what can be read of a database that cannot be opened, as when its first page is
        lost, to the salvage, which is empty. Return whether that was anything.
        """
        page = head_for(self._directory.database, self._directory.salvage)
        try:
            with (
                self._directory.headed(page) as path,
                closing(Store(path)) as damaged,
                closing(Store(self._directory.salvage, self._sync)) as store,
            ):
                self._copy(damaged, store)
                return any(
                    True for _ in store.rows("SELECT 1 FROM run UNION SELECT 1 FROM arrival")
                )
        except (Unreadable, OtherLayout):
            return False

    def _copy(self, damaged: Store, store: Store) -> None:
        for table in ORDER:
            copy_table(damaged, table, store)
        self._name_agents(store)

    def _name_agents(self, store: Store) -> None:
        """Add the agents whose rows were lost: their runs name them."""
        question = (
            "SELECT agent, body FROM run WHERE agent NOT IN (SELECT id FROM agent) ORDER BY seq"
        )
        found: dict[int, AgentKey] = {}
        for agent, body in store.rows(question):
            with suppress(Damaged):
                found[agent] = unpack_run(body).key
        seen = next((now for (now,) in store.rows("SELECT now FROM saved")), self._clock())
        rows = [(agent, pack(key), seen) for agent, key in found.items()]
        store.transact([("INSERT OR IGNORE INTO agent VALUES (?, ?, ?)", rows)])

    def _load_agents(self, store: Store) -> None:
        """Let every agent be known by its key. Its runs are read when something asks for it."""

        def agent(number: int, key: bytes, seen: float) -> tuple[AgentKey, int, float]:
            return agent_key(unpack(key)), number, seen

        found = list(self._intact(agent, store.rows("SELECT id, key, seen FROM agent ORDER BY id")))
        self._agents = {key: number for key, number, _ in found}
        self._last_agent = max(self._agents.values(), default=0)
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
                for request in self._intact(_request, [(arrival.kind, arrival.body)]):
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
                self._store = self._salvaged(store)
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


def _arrivals(group: Sequence[Decoded], moment: Moment, seq: int) -> Iterator[Arrival]:
    """Yield requests as rows: the spans of a trace together, and its evaluations."""
    for request in group:
        traces: dict[TraceId, list[AgentSpan]] = {}
        for span in request.spans:
            traces.setdefault(span.trace_id, []).append(span)
        for trace_id, spans in traces.items():
            yield Arrival(seq, SPANS, *moment, trace_id, pack_spans(spans))
            seq += 1
        evaluations: dict[TraceId | None, list[Evaluation]] = {}
        for evaluation in request.evaluations:
            evaluations.setdefault(evaluation.trace_id, []).append(evaluation)
        for trace_id, some in evaluations.items():
            yield Arrival(seq, EVALUATIONS, *moment, trace_id, pack(some))
            seq += 1
        if request.malformed or request.other_logs:
            yield Arrival(
                seq, COUNTS, *moment, None, pack((dict(request.malformed), request.other_logs))
            )
            seq += 1


def _request(kind: int, body: bytes) -> Decoded:
    """Return what a row holds. Raise `Damaged`."""
    if kind == SPANS:
        return Decoded(unpack_spans(body))
    if kind == EVALUATIONS:
        return Decoded(evaluations=evaluations_of(unpack(body)))
    malformed, other_logs = unpack(body)
    return Decoded(malformed=malformed, other_logs=other_logs)


def _insert(arrivals: Sequence[Arrival]) -> Statement:
    return "INSERT OR REPLACE INTO arrival VALUES (?, ?, ?, ?, ?, ?)", arrivals
