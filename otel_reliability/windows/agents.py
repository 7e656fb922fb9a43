"""All agents: which are known, which of their runs count, and which are idle; and the windows,
recent runs and tasks of each.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from otel_reliability.config import ObjectiveSettings, Settings
from otel_reliability.metrics.base import DEFAULTS
from otel_reliability.model.record import pack, unpack_run
from otel_reliability.model.row import OTHER_TASK, Row
from otel_reliability.model.run import AgentKey, Outcome, Run, RunChange, RunEvent
from otel_reliability.model.span import Subject
from otel_reliability.windows.rows import (
    DroppedRow,
    PathTable,
    Sought,
    end_in,
    index_in,
    order_of,
    row_of,
    run_id_in,
)
from otel_reliability.windows.window import AgentWindow

_RAW: Final = -15
"""Deflate without a header (`wbits` of zlib)."""


class RecentRuns:
    """The `limit` runs with the greatest (end time, run id), the newest last, for the UI.

    Final runs are packed, without the hashes of their tool calls and their requests. One that may
    still change is kept as it is: assembly holds it anyway, and in a busy agent newer runs replace
    it before it is final, so that it is never packed (22 µs).
    """

    __slots__ = ("_dictionary", "_records", "_runs", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._records: list[bytes] = []
        """The order of each run (`rows.order_of`), and behind it the run if it is packed."""
        self._runs: list[Run | None] = []
        """Each run that is not packed."""
        self._dictionary = b""
        """One run of the agent, whose words others need not repeat (a dictionary of zlib)."""

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Run]:
        records = zip(self._records, self._runs, strict=True)
        return iter([self._unpack(record) if run is None else run for record, run in records])

    def add(self, run: Run, order: bytes) -> None:
        """Add a run of this order; it replaces one of the same."""
        self.remove(order)
        at = bisect_left(self._records, order)
        self._records.insert(at, order)
        self._runs.insert(at, run)
        if len(self._records) > self.limit:
            del self._records[0], self._runs[0]

    def get(self, order: bytes) -> Run | None:
        """Return the run of this order; None if it is not here."""
        at = index_in(self._records, order)
        if at is None:
            return None
        run = self._runs[at]
        return self._unpack(self._records[at]) if run is None else run

    def remove(self, order: bytes) -> None:
        """Remove the run of this order; do nothing if it is not here."""
        at = index_in(self._records, order)
        if at is not None:
            del self._records[at], self._runs[at]

    def finalize(self, order: bytes) -> None:
        """Note that the run of this order is final; do nothing if it is not here."""
        at = index_in(self._records, order)
        run = None if at is None else self._runs[at]
        if at is not None and run is not None:
            self._records[at] = order + self._pack(run)
            self._runs[at] = None

    def _pack(self, run: Run) -> bytes:
        calls = run.tool_calls
        if calls is not None:
            calls = tuple(
                [replace(call, arguments=None, result=None, effect=None) for call in calls]
            )
        plain = pack(replace(run, run_id="", end_ns=0, tool_calls=calls, request=None))
        self._dictionary = self._dictionary or plain
        press = zlib.compressobj(wbits=_RAW, zdict=self._dictionary)
        return press.compress(plain) + press.flush()

    def _unpack(self, record: bytes) -> Run:
        run_id, begin = run_id_in(record)
        run = unpack_run(zlib.decompressobj(_RAW, self._dictionary).decompress(record[begin:]))
        return replace(run, run_id=run_id, end_ns=end_in(record))


class AgentState:
    """One agent's runs, each kept once, as a row that all its windows share.

    `recent` are its last whole runs, the newest last. Runs that hit a limit are counted in
    `accounts`.
    """

    __slots__ = (
        "_accounts",
        "_dropped",
        "_max_tasks",
        "_paths",
        "_reopenable",
        "_tasks",
        "key",
        "recent",
        "windows",
    )

    def __init__(
        self, key: AgentKey, settings: Settings, accounts: Counter[tuple[str, str]]
    ) -> None:
        self.key = key
        self.recent = RecentRuns(settings.limits.recent_runs)
        self._accounts = accounts
        self._max_tasks = settings.limits.tasks
        self._paths = PathTable()
        self._tasks: Counter[str] = Counter()
        self._reopenable: dict[str, bytes] = {}
        """Orders, by run id, of the runs that closed and are not final, also of those that no
        window keeps.
        """
        self._dropped: list[DroppedRow] = []
        self.windows: Mapping[str, AgentWindow] = {
            window.name: AgentWindow(window, settings, self._reopenable, self._dropped)
            for window in settings.windows
        }

    @property
    def first_window(self) -> AgentWindow:
        """The window that settings name first: the one of the UI, of histograms and of the API's
        list.
        """
        return next(iter(self.windows.values()))

    @property
    def empty(self) -> bool:
        """True if no run is left."""
        return not any(window.runs or window.spares for window in self.windows.values())

    @property
    def last_run_ns(self) -> int | None:
        """End of its last run; None while it has none."""
        return max(
            (end for window in self.windows.values() if (end := window.newest_ns) is not None),
            default=None,
        )

    def row(self, run_id: str, end_ns: int | None = None) -> Row | None:
        """Return the row of a run that a window still keeps. A final run is found sooner by its end
        (ns).

        The row of a run that ended in the future has an earlier end than the run: it is searched.
        """
        order = self._reopenable.get(run_id) or (
            None if end_ns is None else order_of(end_ns, run_id)
        )
        for window in self.windows.values():
            is_clamped = order is not None and end_in(order) > (window.newest_ns or 0)
            row = window.find(run_id, None if is_clamped else order)
            if row is not None:
                return row
        return None

    def close(self, run: Run) -> None:
        """Add a run that was closed; it replaces an earlier version of the same run."""
        order = order_of(run.end_ns, run.run_id)
        earlier = self._reopenable.get(run.run_id, order)
        if any(window.keeps(earlier) for window in self.windows.values()):
            self._remove(earlier)
        self.recent.add(run, order)
        self._enter(self._row_of(run), order)

    def withdraw(self, run: Run) -> None:
        """Remove a run; do nothing if it is not here."""
        order = self._reopenable.get(run.run_id)
        if order is None:
            row = self.row(run.run_id)
            order = order_of((run if row is None else row).end_ns, run.run_id)
        self._remove(order)
        self._reopenable.pop(run.run_id, None)

    def is_final(self, run_id: str) -> bool:
        """Return whether a run that was closed cannot change any more by spans."""
        return run_id not in self._reopenable

    def sought(self, sought: Sought) -> Iterable[Row]:
        """Return the rows of these runs, traces, sessions and keys that a window still keeps."""
        rows = (row for window in self.windows.values() for row in window.sought(sought))
        return {row.run_id: row for row in rows}.values()

    def replace_row(self, row: Row, evaluated: Callable[[Run], Run]) -> None:
        """Replace the row of a final run, of the same order, whose outcome became known.
        `evaluated` makes the same of the whole run, where that is kept.
        """
        order = order_of(row.end_ns, row.run_id)
        kept = [window for window in self.windows.values() if window.keeps(order)]
        recent = self.recent.get(order)
        if row.path is not None:
            row = replace(row, path=self._paths.intern(row.path.names))
        if row.task is not None and row.task in self._tasks:
            self._tasks[row.task] += 1
        self._remove(order)  # it releases the path and the task once
        for window in kept:
            window.insert(row, order)
        self._forget_dropped()
        if recent is not None:
            self.recent.add(evaluated(recent), order)
            self.recent.finalize(order)

    def finalize(self, run: Run) -> None:
        """Note that a run is final; do nothing if it is not here."""
        order = self._reopenable.pop(run.run_id, None)
        if order is not None:
            self.recent.finalize(order)
            for window in self.windows.values():
                window.finalize(order)
            self._forget_dropped()

    def loading(self, runs: Iterable[Run]) -> Iterator[None]:
        """Add final runs that were stored, in any order, each once, some at each step; they were
        counted before the restart. The newest first costs least: a window has room for no older
        ones once it is full.
        """
        accounts = self._accounts
        self._accounts = Counter[tuple[str, str]]()
        for number, run in enumerate(runs, 1):
            order = order_of(run.end_ns, run.run_id)
            self.recent.add(run, order)
            self._enter(self._row_of(run), order)
            self.finalize(run)
            if number % RUNS_PER_STEP == 0:
                yield
        self._accounts = accounts

    def _enter(self, row: Row, order: bytes) -> None:
        """Add the row of a run that may still change to all windows."""
        self._reopenable[row.run_id] = order
        for name, window in self.windows.items():
            if not window.insert(row, order):
                self._accounts["refused", name] += 1
        self._forget_dropped()

    def _remove(self, order: bytes) -> None:
        self.recent.remove(order)
        for window in self.windows.values():
            window.remove(order)
        self._forget_dropped()

    def _row_of(self, run: Run) -> Row:
        row = row_of(run, self._paths)
        task = self._task_of(run)
        return row if task == run.task_id else replace(row, task=task)

    def _task_of(self, run: Run) -> str | None:
        """Count a task of one more row, and return it: `__other__` beyond the limit."""
        task = run.task_id
        if task is None:
            return None
        if task not in self._tasks and len(self._tasks) >= self._max_tasks:
            self._accounts["tasks", "limit"] += 1
            return OTHER_TASK
        self._tasks[task] += 1
        return task

    def _forget_dropped(self) -> None:
        """Forget the rows that the windows dropped, unless another window keeps them."""
        dropped = self._dropped
        if len(self.windows) > 1:
            rows = {row.order: row for row in dropped}
            windows = self.windows.values()
            dropped = [
                row
                for order, row in rows.items()
                if not any(window.keeps(order) for window in windows)
            ]
        for row in dropped:
            self._forget(row)
        self._dropped.clear()

    def _forget(self, row: DroppedRow) -> None:
        if row.path is not None:
            self._paths.release(row.path)
        if row.task is not None and row.task in self._tasks:
            self._tasks[row.task] -= 1
            if not self._tasks[row.task]:
                del self._tasks[row.task]


AHEAD_NS: Final = 300 * 10**9
"""Limit for a run's end ahead of the clock in live modes: clocks differ, but not by more than five
minutes.

One stamp from a clock that leapt ahead would else push every other run out of a window by time.
"""

OTHER_AGENT: Final = AgentKey("", "", "", "__other__")
"""Agent whose counters include the runs of agents beyond the limit. It has no windows: a mixture
has no path entropy.
"""


MAX_POSTPONED: Final = 1_000
"""Changes that wait for an agent that is not loaded; it is loaded when it has as many."""
RUNS_PER_STEP: Final = 16
"""Runs of an agent that are loaded at a time."""

Load: TypeAlias = Callable[[], Iterable[Run]]
"""Reads an agent's final runs from where they were stored before a restart."""


class _Unloaded:
    """An agent whose stored runs are not all loaded since a restart: how far that is, and what came
    since, in order.
    """

    __slots__ = ("_load", "_make", "_observe", "observed", "since", "steps")

    def __init__(
        self, make: Callable[[], AgentState], load: Load, observe: Callable[[AgentState], None]
    ) -> None:
        self._make = make
        self._load = load
        self._observe = observe
        self.observed = 0
        """Number of the first changes that were observed before the restart."""
        self.since: list[RunEvent] = []
        self.begin()

    def begin(self) -> None:
        """Load from the start: nothing is loaded, or reading failed."""
        self.steps = self._all_steps()
        """Yields None after each step, the state at last."""

    def _all_steps(self) -> Iterator[AgentState | None]:
        state = self._make()
        yield from state.loading(self._load())
        for number, event in enumerate(self.since):
            change = event.change
            if change is RunChange.CLOSED or change is RunChange.REVISED:
                state.close(event.run)
                if change is RunChange.CLOSED and number >= self.observed:
                    self._observe(state)
            elif change is RunChange.FINAL:
                state.finalize(event.run)
            else:
                state.withdraw(event.run)
        yield state


class LateOutcome(NamedTuple):
    """An outcome that became known after its run was final, and for how many runs that one
    stands.
    """

    key: AgentKey
    outcome: Outcome
    weight: int


class AgentRegistry:
    """The windows of every agent, kept up to date with the events of runs.

    `accounts` counts, by (what, why): runs ("refused", window) that came too late for a window,
    ("clamped", "future_end"), of agents ("agents", "limit") and tasks ("tasks", "limit") beyond the
    limit; and agents ("expired", "idle").

    `places_return`: whether an expired agent frees its place under the limit of agents. In the
    host's process it does not: the SDK counts the attribute sets of ended series too.
    """

    def __init__(self, settings: Settings = DEFAULTS, *, places_return: bool = False) -> None:
        self.accounts: Counter[tuple[str, str]] = Counter()
        self.observers: list[Callable[[AgentState], None]] = []
        """Called for an agent when a run of it has closed and is in its windows."""
        self._settings = settings
        self._of_objective: dict[tuple[ObjectiveSettings, ...], Settings] = {}
        """Settings of the agents of one objective, which share their empty metrics."""
        self._readmits = places_return
        self._admitted: dict[AgentKey, None] = {}
        self._agents: dict[AgentKey, AgentState | None] = {}
        self._unloaded: OrderedDict[AgentKey, _Unloaded] = OrderedDict()
        """Agents that were restored and not read since, those with new runs first. They are None in
        `_agents`.
        """
        self._seen: OrderedDict[AgentKey, float] = OrderedDict()
        self.late: list[LateOutcome] = []
        """Outcomes that became known after their runs were final, since the engine took them."""

    def __len__(self) -> int:
        return len(self._agents)

    def keys(self) -> list[AgentKey]:
        """Return the agents that have runs, in the order in which they were first seen."""
        return list(self._agents)

    def agent(self, key: AgentKey) -> AgentState | None:
        """Return the state of an agent; None if it has no runs, has expired, or is beyond the
        limit.
        """
        if key in self._unloaded:
            deque(self.loading(key), maxlen=0)
        return self._agents.get(key)

    def loading(self, key: AgentKey) -> Iterator[None]:
        """Load an agent that was restored, some of its runs at each step. A call that is given up
        is continued by the next; one whose reading failed, with the error, is begun again.
        """
        unloaded = self._unloaded.get(key)
        if unloaded is None:
            return
        try:  # not `yield from`, which would end the steps when this is given up
            for state in unloaded.steps:
                if state is not None and self._unloaded.pop(key, None) is unloaded:
                    self._agents[key] = state
                    if any(event.change is RunChange.WITHDRAWN for event in unloaded.since):
                        self._forget_if_empty(key)
                yield
        except Exception:
            unloaded.begin()
            raise

    def loaded(self, key: AgentKey) -> AgentState | None:
        """Return the state of an agent as `agent` does; None too while its runs are not loaded
        after a restart.
        """
        return self._agents.get(key)

    def counted_as(self, key: AgentKey) -> AgentKey:
        """Return the agent whose counters include a run of this agent: itself, or `__other__`
        beyond the limit.
        """
        return key if self.is_known(key) else OTHER_AGENT

    def is_known(self, key: AgentKey) -> bool:
        """Return whether an agent is under the limit: beyond it, there are counters only."""
        return key in self._admitted

    def apply(self, event: RunEvent, now: float, wall_ns: int | None = None) -> None:
        """Apply one change of one run.

        `now` is the engine's clock in seconds, by which agents expire. `wall_ns` is the Unix time
        of live telemetry: an end more than five minutes later is clamped to that. None: a
        recording, whose times are used as they are.
        """
        change = event.change
        run = event.run
        previous = event.previous
        if change is RunChange.FINAL:
            if run.key in self._unloaded:
                self._postpone(change, run)
            elif (state := self._agents.get(run.key)) is not None:
                state.finalize(run)
            return
        if previous is not None and self._is_final(previous):
            self._evaluate_final(change, run, previous, now, wall_ns)
            return
        closed = change is not RunChange.WITHDRAWN
        replaced = previous if closed else run
        if replaced is not None:
            self._withdraw(replaced)
        if closed:
            self._close(change, run, now, wall_ns)
        if replaced is not None and replaced.key not in self._unloaded:
            self._forget_if_empty(replaced.key)

    def replace_row(
        self, key: AgentKey, row: Row, outcome: Outcome, evaluated: Callable[[Run], Run]
    ) -> None:
        """Replace the row of a final run by one with an outcome that became known. `outcome`: that
        of before. `evaluated` as in `AgentState.replace_row`.
        """
        state = self.agent(key)
        if state is not None:
            state.replace_row(row, evaluated)
            self._note_late(LateOutcome(key, row.outcome, row.weight), outcome)

    def _is_final(self, run: Run) -> bool:
        """Return whether a run that was closed is final; those that were restored are."""
        unloaded = self._unloaded.get(run.key)
        if unloaded is not None:
            own = [event for event in unloaded.since if event.run.run_id == run.run_id]
            return not own or own[-1].change is RunChange.FINAL
        state = self._agents.get(run.key)
        return state is not None and state.is_final(run.run_id)

    def _evaluate_final(
        self, change: RunChange, run: Run, before: Run, now: float, wall_ns: int | None
    ) -> None:
        """Replace a final run by its version with one more evaluation, which is final too."""
        self._note_late(LateOutcome(run.key, run.outcome, run.weight), before.outcome)
        state = self._agents.get(before.key)
        if state is not None and state.row(before.run_id, before.end_ns) is None:
            return  # no window holds it any more
        self._withdraw(before)
        self._close(change, run, now, wall_ns)
        if run.key in self._unloaded:
            self._postpone(RunChange.FINAL, run)
        elif (state := self._agents.get(run.key)) is not None:
            state.finalize(run)
        if before.key != run.key and before.key not in self._unloaded:
            self._forget_if_empty(before.key)

    def _withdraw(self, run: Run) -> None:
        if run.key in self._unloaded:
            self._postpone(RunChange.WITHDRAWN, run)
        elif (state := self._agents.get(run.key)) is not None:
            state.withdraw(run)

    def _note_late(self, found: LateOutcome, before: Outcome) -> None:
        if found.outcome is not before:
            self.late.append(found)

    def sought(self, subjects: Collection[Subject]) -> Iterator[tuple[AgentKey, Row]]:
        """Yield the rows of these runs, traces, sessions and keys, with their agents. Agents that
        are not loaded after a restart are left out.
        """
        sought = Sought.of(subjects)
        for key, state in self._agents.items():
            if state is not None:
                yield from ((key, row) for row in state.sought(sought))

    def remove(self, key: AgentKey) -> None:
        """Remove an agent; do nothing if it has no runs."""
        if key in self._agents:
            del self._seen[key]
            self._forget(key)

    def advance(self, now: float) -> list[AgentKey]:
        """Let agents expire that had no run for `limits.agent_idle` seconds, and return them: their
        series end.
        """
        expired: list[AgentKey] = []
        while (
            self._seen and now - next(iter(self._seen.values())) >= self._settings.limits.agent_idle
        ):
            key, _ = self._seen.popitem(last=False)
            self._forget(key)
            expired.append(key)
        self.accounts["expired", "idle"] += len(expired)
        return expired

    # --- Restarts ---------------------------------------------------------------------------------

    @property
    def unloaded(self) -> int:
        """Number of agents that were restored and not loaded yet."""
        return len(self._unloaded)

    def is_loaded(self, key: AgentKey) -> bool:
        """Return whether nothing of an agent is left to load."""
        return key not in self._unloaded

    @property
    def is_behind(self) -> bool:
        """Return whether an agent that is not loaded yet has new runs."""
        return bool(self._unloaded) and bool(next(iter(self._unloaded.values())).since)

    def load_next(self) -> Iterator[None]:
        """Load one agent that was restored, those with new runs first, as `loading` does; do
        nothing without one.
        """
        return self.loading(next(iter(self._unloaded))) if self._unloaded else iter(())

    def seen(self, key: AgentKey) -> float | None:
        """Return the engine's time when an agent last had a run; None for an agent without runs."""
        return self._seen.get(key)

    def restore_runs(self, agents: Mapping[AgentKey, tuple[float, Load]]) -> None:
        """Add agents, each with the time it was last seen and its final runs, which are read when
        the agent is.
        """
        self._admitted.update(dict.fromkeys(agents))
        self._agents.update(dict.fromkeys(agents))
        for key, (_, load) in agents.items():
            make = partial(AgentState, key, self._settings_of(key), self.accounts)
            self._unloaded[key] = _Unloaded(make, load, self._observe)
        self._seen.update(
            sorted(((key, seen) for key, (seen, _) in agents.items()), key=itemgetter(1))
        )

    def ignore_waiting(self) -> None:
        """Let no observer be called for the changes that wait for their agents now: they were
        observed before the restart.
        """
        for unloaded in self._unloaded.values():
            unloaded.observed = len(unloaded.since)

    # --- Agents -----------------------------------------------------------------------------------

    def _close(self, change: RunChange, run: Run, now: float, wall_ns: int | None) -> None:
        key = run.key
        unloaded = self._unloaded.get(key)
        state = self._agents.get(key) or (self._begin(key) if unloaded is None else None)
        if state is None and unloaded is None:
            self.accounts["agents", "limit"] += 1
            return
        if wall_ns is not None and run.end_ns > (latest := wall_ns + AHEAD_NS):
            run = replace(run, start_ns=min(run.start_ns, latest), end_ns=latest)
            self.accounts["clamped", "future_end"] += 1
        if unloaded is not None:
            self._postpone(change, run)
        elif state is not None:
            state.close(run)
            if change is RunChange.CLOSED:
                self._observe(state)
        if self._seen.get(key) != now:  # most agents have several runs at once
            self._seen[key] = now
            self._seen.move_to_end(key)

    def _postpone(self, change: RunChange, run: Run) -> None:
        """Keep a change until its agent is loaded, which is done before others, and at once when it
        has many.
        """
        since = self._unloaded[run.key].since
        since.append(RunEvent(change, run))
        self._unloaded.move_to_end(run.key, last=False)
        if len(since) >= MAX_POSTPONED:
            self.agent(run.key)

    def _observe(self, state: AgentState) -> None:
        for observer in self.observers:
            observer(state)

    def _settings_of(self, key: AgentKey) -> Settings:
        own = self._settings.of_agent(key.agent)
        return self._of_objective.setdefault(own.objectives, own)

    def _begin(self, key: AgentKey) -> AgentState | None:
        """Return a new agent; None beyond the limit of agents."""
        if key not in self._admitted:
            if len(self._admitted) >= self._settings.limits.agents:
                return None
            self._admitted[key] = None
        state = self._agents[key] = AgentState(key, self._settings_of(key), self.accounts)
        return state

    def _forget_if_empty(self, key: AgentKey) -> None:
        """Forget an agent of which every run was withdrawn: its runs turned out to be another's."""
        state = self._agents.get(key)
        if state is not None and state.empty:
            del self._seen[key]
            self._forget(key)

    def _forget(self, key: AgentKey) -> None:
        del self._agents[key]
        self._unloaded.pop(key, None)
        if self._readmits:
            self._admitted.pop(key, None)
