"""All agents: which are known, which of their runs count, and which are idle."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS
from otel_reliability.model.run import AgentKey, Run, RunChange, RunEvent
from otel_reliability.windows.agent import AgentState

AHEAD_NS: Final = 300 * 10**9
"""Limit for a run's end ahead of the clock in live modes: clocks differ, but not by more than five minutes."""


def clamped(run: Run, wall_ns: int) -> Run:
    """Return the run as a live entry point accepts it: it ends at most five minutes after now.

    One stamp from a clock that leapt ahead would else push every other run out of a window by time.
    """
    latest = wall_ns + AHEAD_NS
    return run if run.end_ns <= latest else run._replace(start_ns=min(run.start_ns, latest), end_ns=latest)


OTHER_AGENT: Final = AgentKey("", "", "", "__other__")
"""Agent whose counters include the runs of agents beyond the limit. It has no windows: a mixture has no path entropy."""


MAX_POSTPONED: Final = 100
"""Changes that wait for an agent that is not loaded; it is loaded when it has as many."""

Load: TypeAlias = Callable[[], Iterable[Run]]
"""Reads an agent's final runs from where they were stored before a restart."""


class _Unloaded(NamedTuple):
    """An agent of which nothing was asked since a restart: where its final runs are, and what came since, in order."""

    load: Load
    since: list[tuple[RunChange, Run]]


class AgentRegistry:
    """The windows of every agent, kept up to date with the events of runs.

    `accounts` counts, by (what, why): runs ("refused", window) that came too late for a window, ("clamped", "future_end"),
    of agents ("agents", "limit") and tasks ("tasks", "limit") beyond the limit; and agents ("expired", "idle").

    `places_return`: whether an expired agent frees its place under the limit of agents. In the host's process it does not:
    the SDK counts the attribute sets of ended series too.
    """

    def __init__(self, settings: Settings = DEFAULTS, *, places_return: bool = False) -> None:
        self.accounts: Counter[tuple[str, str]] = Counter()
        self._settings = settings
        self._readmits = places_return
        self._admitted: dict[AgentKey, None] = {}
        self._agents: dict[AgentKey, AgentState | None] = {}
        self._unloaded: OrderedDict[AgentKey, _Unloaded] = OrderedDict()
        """Agents that were restored and not read since, those with new runs first. They are None in `_agents`."""
        self._seen: OrderedDict[AgentKey, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._agents)

    def keys(self) -> list[AgentKey]:
        """Return the agents that have runs, in the order in which they were first seen."""
        return list(self._agents)

    def agent(self, key: AgentKey) -> AgentState | None:
        """Return the state of an agent; None if it has no runs, has expired, or is beyond the limit."""
        unloaded = self._unloaded.pop(key, None)
        if unloaded is None:
            return self._agents.get(key)
        state = self._agents[key] = AgentState(key, self._settings, self.accounts)
        state.load(unloaded.load())
        for change, run in unloaded.since:
            if change is RunChange.FINAL:
                state.finalize(run)
            else:
                state.close(run)
        return state

    def loaded(self, key: AgentKey) -> AgentState | None:
        """Return the state of an agent as `agent` does; None too while its runs are not loaded after a restart."""
        return self._agents.get(key)

    def counted_as(self, key: AgentKey) -> AgentKey:
        """Return the agent whose counters include a run of this agent: itself, or `__other__` beyond the limit."""
        return key if key in self._admitted else OTHER_AGENT

    def apply(self, event: RunEvent, now: float, wall_ns: int | None = None) -> None:
        """Apply one change of one run.

        `now` is the engine's clock in seconds, by which agents expire. `wall_ns` is the Unix time of live telemetry: an end
        more than five minutes later is clamped to that. None: a recording, whose times are used as they are.
        """
        change, run, previous = event
        if change is RunChange.FINAL:
            if run.key in self._unloaded:
                self._postpone(change, run)
            elif (state := self._agents.get(run.key)) is not None:
                state.finalize(run)
            return
        closed = change is not RunChange.WITHDRAWN
        replaced = previous if closed else run
        if replaced is not None:
            state = self.agent(replaced.key)
            if state is not None:
                state.withdraw(replaced)
        if closed:
            self._close(run, now, wall_ns)
        if replaced is not None:
            self._forget_if_empty(replaced.key)

    def advance(self, now: float) -> list[AgentKey]:
        """Let agents expire that had no run for `limits.agent_idle` seconds, and return them: their series end."""
        expired: list[AgentKey] = []
        while self._seen and now - next(iter(self._seen.values())) >= self._settings.limits.agent_idle:
            key, _ = self._seen.popitem(last=False)
            self._forget(key)
            expired.append(key)
        self.accounts["expired", "idle"] += len(expired)
        return expired

    # --- Restarts -----------------------------------------------------------------------------------------------------

    @property
    def unloaded(self) -> int:
        """Number of agents that were restored and not loaded yet."""
        return len(self._unloaded)

    @property
    def is_behind(self) -> bool:
        """Return whether an agent that is not loaded yet has new runs."""
        return bool(self._unloaded) and bool(next(iter(self._unloaded.values())).since)

    def load_next(self) -> None:
        """Load one agent that was restored, those with new runs first; do nothing without one."""
        if self._unloaded:
            self.agent(next(iter(self._unloaded)))

    def seen(self, key: AgentKey) -> float | None:
        """Return the engine's time when an agent last had a run; None for an agent without runs."""
        return self._seen.get(key)

    def restore_runs(self, agents: Mapping[AgentKey, tuple[float, Load]]) -> None:
        """Add agents, each with the time it was last seen and its final runs, which are read when the agent is."""
        self._admitted.update(dict.fromkeys(agents))
        self._agents.update(dict.fromkeys(agents))
        self._unloaded.update((key, _Unloaded(load, [])) for key, (_, load) in agents.items())
        self._seen.update(sorted(((key, seen) for key, (seen, _) in agents.items()), key=itemgetter(1)))

    # --- Agents -------------------------------------------------------------------------------------------------------

    def _close(self, run: Run, now: float, wall_ns: int | None) -> None:
        key = run.key
        unloaded = self._unloaded.get(key)
        state = self._agents.get(key) or (self._begin(key) if unloaded is None else None)
        if state is None and unloaded is None:
            self.accounts["agents", "limit"] += 1
            return
        if wall_ns is not None:
            unclamped, run = run, clamped(run, wall_ns)
            self.accounts["clamped", "future_end"] += run is not unclamped
        if unloaded is not None:
            self._postpone(RunChange.CLOSED, run)
        elif state is not None:
            state.close(run)
        if self._seen.get(key) != now:  # most agents have several runs at once
            self._seen[key] = now
            self._seen.move_to_end(key)

    def _postpone(self, change: RunChange, run: Run) -> None:
        """Keep a change until its agent is loaded, which is done before others, and at once when it has many."""
        since = self._unloaded[run.key].since
        since.append((change, run))
        self._unloaded.move_to_end(run.key, last=False)
        if len(since) >= MAX_POSTPONED:
            self.agent(run.key)

    def _begin(self, key: AgentKey) -> AgentState | None:
        """Return a new agent; None beyond the limit of agents."""
        if key not in self._admitted:
            if len(self._admitted) >= self._settings.limits.agents:
                return None
            self._admitted[key] = None
        state = self._agents[key] = AgentState(key, self._settings, self.accounts)
        return state

    def _forget_if_empty(self, key: AgentKey) -> None:
        """Forget an agent of which every run was withdrawn: its runs turned out to be another's."""
        state = self.agent(key)
        if state is not None and state.empty:
            del self._seen[key]
            self._forget(key)

    def _forget(self, key: AgentKey) -> None:
        del self._agents[key]
        self._unloaded.pop(key, None)
        if self._readmits:
            self._admitted.pop(key, None)
