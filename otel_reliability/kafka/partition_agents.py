"""The agents of one partition: an engine that is fed by run records, and its state, stored as the
service stores it.

Final runs are stored by agent and loaded when something asks for the agent; runs that may still
change as they were last sent; sessions, change detection, series and totals as the parts that they
are.
"""

from __future__ import annotations

import hashlib
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from otel_reliability.assembly.across_traces import AcrossTraces
from otel_reliability.config import Settings
from otel_reliability.engine import Engine
from otel_reliability.kafka.partition_values import KeyValues, PartitionValues
from otel_reliability.kafka.stage import KafkaMessage, Outgoing
from otel_reliability.model.observation import Observation
from otel_reliability.model.record import Damaged, RunRecord, agent_key, pack, read, unpack_run
from otel_reliability.model.run import AgentKey, Run, RunChange, RunEvent
from otel_reliability.state.parts import Retention, parts_of
from otel_reliability.telemetry.exposition import Registry
from otel_reliability.telemetry.series_recording import SeriesRecording

REMEMBER_FINAL_S: Final = 15 * 60.0
"""Seconds for which ids of final runs are remembered, so that a record that comes again is known.
"""
MAX_OPEN: Final = 100_000
"""Runs that are not final; beyond, the one that changed first is made final early."""
_RUN = "run"
_OPEN = "open"
_FINAL = "final"
_AGENT = "agent"
_HEAD = "head"


class _Known(NamedTuple):
    """The last record of a run. `run` is None while it is withdrawn."""

    revision: int
    run: Run | None
    since: float


class _Runs(NamedTuple):
    """The stored final runs of an agent: its number, and their ends by row."""

    number: int
    ends: dict[int, int]


class PartitionAgents:
    """The agents of one partition. `accounts` counts records by what became of them."""

    def __init__(
        self, settings: Settings, store: KeyValues, pinned: Mapping[AgentKey, Sequence[Observation]]
    ) -> None:
        self.accounts: Counter[str] = Counter()
        self.now = 0.0
        self.engine = Engine(
            settings, clock=lambda: self.now, wall=self.wall, places_return=True, pinned=pinned
        )
        self.recording = SeriesRecording(self.engine, Registry(self.wall))
        self._across = AcrossTraces(settings, lambda _trace_id, _run_id: None)
        self._values = PartitionValues(store)
        self._retention = Retention.of(settings)
        self._wait = settings.assembly.remember
        self._parts = parts_of(self.engine, self.recording, Counter())
        self._agents: dict[AgentKey, _Runs] = {}
        self._open: OrderedDict[str, _Known] = OrderedDict()
        self._final: OrderedDict[str, float] = OrderedDict()
        self._changed: dict[str, None] = {}
        self._unsaved: dict[str, Run] = {}
        self._row = 0
        self._restore()
        self.engine.observers.append(self._observe)

    def wall(self) -> int:
        return round(self.now * 1e9)

    def take(self, message: KafkaMessage, now: float) -> Iterable[Outgoing]:
        """Receive a record, or a message that holds its time only. Raise `BadRecord`, with nothing
        received.
        """
        record = read(message.value) if message.value else None
        self.tick(now)
        if record is not None:
            self._receive(self._events(record))
        return ()

    def tick(self, now: float) -> None:
        """Meet what is due. A run of which no more records come is final in the end."""
        self.now = max(self.now, now)
        while self._open and self._is_over(next(iter(self._open.values()))):
            run_id, known = self._open.popitem(last=False)
            self._receive(self._end(run_id, known.run))
        self.engine.tick()

    def save(self) -> None:
        """Store everything that changed. Called before messages and state are committed.

        Final runs are recorded in every save: a run that is stored as final is not recorded again
        after a restart.
        """
        self.recording.record()
        changed = self._changed
        self._changed = {}
        for run_id in changed:
            self._values.put(_OPEN, run_id, self._open_data(run_id))
            self._values.put(_FINAL, run_id, self._final.get(run_id))
        unsaved = self._unsaved
        self._unsaved = {}
        for run in unsaved.values():
            self._store(run)
        while self._final and next(iter(self._final.values())) < self.now - REMEMBER_FINAL_S:
            self._values.put(_FINAL, self._final.popitem(last=False)[0], None)
        for name, part in self._parts.items():
            for key, body in part.changes():
                self._row += body is not None
                self._values.put(name, key, None if body is None else [self._row, body])
        self._forget_agents()
        self._values.put(_HEAD, None, [self.now, self._row])

    # --- Records ----------------------------------------------------------------------------------

    def _receive(self, events: Iterable[RunEvent]) -> None:
        """Receive events of runs, of which some may concern runs of other traces."""
        self.engine.receive_events(self._across.pass_on(events))

    def _events(self, record: RunRecord) -> Iterator[RunEvent]:
        """Yield what a record changes. Records may come twice, late and in any order."""
        run = record.run
        change = record.change
        run_id = record.run.run_id
        if run_id in self._final:
            self.accounts["duplicate" if change is RunChange.FINAL else "late"] += 1
            return
        known = self._open.pop(run_id, None)
        if known is not None and record.revision <= known.revision:
            self.accounts["duplicate"] += 1
            self._open[run_id] = known
            return
        self.accounts["taken"] += 1
        before = None if known is None else known.run
        self._changed[run_id] = None
        if change is RunChange.WITHDRAWN:
            self._open[run_id] = _Known(record.revision, None, self.now)
            if before is not None:
                yield RunEvent(RunChange.WITHDRAWN, before)
            return
        if before is None:
            yield RunEvent(RunChange.CLOSED, run)
        elif before != run:
            yield RunEvent(RunChange.REVISED, run, before)
        if change is RunChange.FINAL:
            yield from self._end(run_id, run)
        else:
            self._open[run_id] = _Known(record.revision, run, self.now)

    def _is_over(self, oldest: _Known) -> bool:
        is_early = len(self._open) > MAX_OPEN
        self.accounts["final_early"] += is_early
        return is_early or oldest.since <= self.now - self._wait

    def _end(self, run_id: str, run: Run | None) -> list[RunEvent]:
        self._final[run_id] = self.now
        self._changed[run_id] = None
        return [] if run is None else [RunEvent(RunChange.FINAL, run)]

    def _observe(self, event: RunEvent, now: float) -> None:
        if event.change is RunChange.FINAL:
            self._unsaved[event.run.run_id] = event.run

    # --- State ------------------------------------------------------------------------------------

    def _open_data(self, run_id: str) -> Any:
        known = self._open.get(run_id)
        if known is None:
            return None
        return [known.revision, None if known.run is None else pack(known.run), known.since]

    def _store(self, run: Run) -> None:
        """Store a final run, and delete those of its agent that nothing needs any longer."""
        runs = self._agents.get(run.key)
        if runs is None:
            runs = self._agents[run.key] = _Runs(_number_of(run.key), {})
        self._row += 1
        self._values.put(_AGENT, run.key, self.engine.agents.seen(run.key) or self.now)
        self._values.put(_RUN, [runs.number, self._row], [run.end_ns, pack(run)])
        runs.ends[self._row] = run.end_ns
        if len(runs.ends) > self._retention.last * 5 // 4:
            newest = sorted(runs.ends.values(), reverse=True)
            oldest = self._retention.oldest_end(newest[0], newest[self._retention.last - 1])
            for row in [row for row, end in runs.ends.items() if end < oldest]:
                del runs.ends[row]
                self._values.put(_RUN, [runs.number, row], None)

    def _forget_agents(self) -> None:
        registry = self.engine.agents
        if len(self._agents) <= len(registry):
            return
        for key in [key for key in self._agents if registry.seen(key) is None]:
            runs = self._agents.pop(key)
            self._values.put(_AGENT, key, None)
            for row in runs.ends:
                self._values.put(_RUN, [runs.number, row], None)

    def _restore(self) -> None:
        """Take everything back; agents are known at once, and their runs are read when something
        asks for them.
        """
        found: dict[str, list[tuple[Any, Any]]] = {
            name: [] for name in (*self._parts, _OPEN, _FINAL, _AGENT)
        }
        ends: dict[int, dict[int, int]] = {}
        for name, key, body in self._values.items():
            if name == _RUN:
                ends.setdefault(key[0], {})[key[1]] = body[0]
            elif name == _HEAD:
                self.now, self._row = body
            elif name in found:
                found[name].append((key, body))
        agents: dict[AgentKey, tuple[float, Callable[[], Iterable[Run]]]] = {}
        for plain, seen in found[_AGENT]:
            key = agent_key(plain)
            number = _number_of(key)
            runs = self._agents[key] = _Runs(number, dict(sorted(ends.get(number, {}).items())))
            agents[key] = seen, partial(self._runs_of, runs)
        self.engine.restore_agents(agents)
        for run_id, (revision, body, since) in sorted(found[_OPEN], key=lambda one: one[1][2]):
            run = None if body is None else unpack_run(body)
            self._open[run_id] = _Known(revision, run, since)
            if run is not None:
                self._receive([RunEvent(RunChange.CLOSED, run)])
        self._final.update(sorted(found[_FINAL], key=lambda one: one[1]))
        self.recording.discard()
        for name, part in self._parts.items():
            part.restore(
                (key, body) for key, (_, body) in sorted(found[name], key=lambda one: one[1][0])
            )
            deque(part.changes(), maxlen=0)

    def _runs_of(self, runs: _Runs) -> Iterator[Run]:
        """Yield the stored final runs of an agent, the newest first."""
        for row in sorted(runs.ends, key=runs.ends.__getitem__, reverse=True):
            body = self._values.get(_RUN, [runs.number, row])
            if body is not None:
                try:
                    yield unpack_run(body[1])
                except Damaged:
                    self._values.damaged += 1


def _number_of(key: AgentKey) -> int:
    """Return a number for an agent that is the same in every worker."""
    return int.from_bytes(hashlib.blake2b(pack(key), digest_size=7).digest(), "big")
