"""All agents: who is known, which runs count for them, and who has not been seen for a day."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS
from otel_reliability.model.event import RunChange, RunEvent
from otel_reliability.model.run import AgentKey, Run
from otel_reliability.windows import usual
from otel_reliability.windows.agent import AgentState
from otel_reliability.windows.time import AHEAD_NS, clamped
from otel_reliability.windows.told import Told
from otel_reliability.windows.usual import close, settle

OTHER_AGENT: Final = AgentKey("", "", "", "__other__")
"""Whose counters the runs of agents beyond the ceiling go to. It has no windows: a mixture of agents has no path entropy."""


Asleep: TypeAlias = Callable[[], Mapping[str, Any]]
"""Gives what `AgentState.to_state` returns of an agent that was restored and not asked for yet."""

_SETTLED, _WITHDRAWN = RunChange.SETTLED, RunChange.WITHDRAWN
_NEVER: Final = (1 << 63) - 1
"""No run ends later."""


class Fleet:
    """The windows of every agent, kept up to date by what assembly says of runs.

    `accounts` counts, by (what, why): runs ("refused", window) that came too late for a window, ("clamped", "future_end"),
    of agents ("agents", "ceiling") and tasks ("tasks", "ceiling") beyond the ceiling; and agents ("expired", "idle").

    `places_return`: whether the place of an expired agent under the ceiling is free again. In the host's process it is not:
    the SDK counts the attribute sets of dead series too.
    """

    def __init__(self, settings: Settings = DEFAULTS, *, places_return: bool = False) -> None:
        self.accounts: Counter[tuple[str, str]] = Counter()
        self._settings = settings
        self._places_return = places_return
        self._places: set[AgentKey] = set()
        self._agents: dict[AgentKey, AgentState | Asleep] = {}
        self._asleep: dict[AgentKey, None] = {}
        self._told: dict[AgentKey, Told | Callable[[], Told]] = {}
        self._seen: OrderedDict[AgentKey, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._agents)

    def keys(self) -> list[AgentKey]:
        """The agents that have runs, in the order in which they were first seen."""
        return list(self._agents)

    def agent(self, key: AgentKey) -> AgentState | None:
        """What is known of an agent; None if it has no runs, has expired, or is beyond the ceiling."""
        found = self._agents.get(key)
        if found is None or isinstance(found, AgentState):
            return found
        return self._wake(key, found)

    def told(self, key: AgentKey) -> Told | None:
        """What is emitted of an agent; None if it is not known. One that sleeps need not wake if it was written down."""
        known = self._told.get(key)
        if callable(known):
            known = self._told[key] = known()
        if known is not None:
            return known
        state = self.agent(key)
        return None if state is None else state.told()

    def counted_as(self, key: AgentKey) -> AgentKey:
        """Whose counters a run of this agent goes to: its own, or `__other__` beyond the ceiling."""
        return key if key in self._places else OTHER_AGENT

    def apply(self, event: RunEvent, now: float, wall_ns: int | None = None) -> None:
        """Something happened to a run.

        `now` is the engine's clock in seconds, by which agents expire. `wall_ns` is the Unix time in live doors: ends more
        than five minutes later are clamped to that. None: a recording, whose times are taken as they are.
        """
        change, run, gone = event
        if change is _SETTLED:
            key = run.key
            state = self._agents.get(key)
            if not isinstance(state, AgentState):
                state = self.agent(key)
            if state is not None and not settle(state, run):
                state.settle(run)
        elif change is _WITHDRAWN:
            self._withdraw(run)
            self._forget_if_empty(run.key)
        elif gone is None:
            self._close(run, now, wall_ns)
        else:
            self._withdraw(gone)
            self._close(run, now, wall_ns)
            self._forget_if_empty(gone.key)

    def apply_usual(
        self, events: list[RunEvent], at: int, now: float, wall_ns: int | None = None, *, only_settled: bool = False
    ) -> int:
        """As `apply` of these events from a place on, as long as they are usual: runs of known agents that closed or settled.

        Gives the place of the first that is left. `only_settled`: somebody wants to look after each of the others.
        """
        latest = _NEVER if wall_ns is None else wall_ns + AHEAD_NS
        return usual.apply(self._agents, self._seen, events, at, now, latest, only_settled)

    def advance(self, now: float) -> list[AgentKey]:
        """Let agents expire that had no run for `limits.agent_idle` seconds, and say which: their series end."""
        expired: list[AgentKey] = []
        while self._seen and now - next(iter(self._seen.values())) >= self._settings.limits.agent_idle:
            key, _ = self._seen.popitem(last=False)
            self._forget(key)
            expired.append(key)
        self.accounts["expired", "idle"] += len(expired)
        return expired

    @property
    def asleep(self) -> int:
        """How many agents were restored and not asked for yet."""
        return len(self._asleep)

    def wake(self) -> None:
        """Wake the agent that has slept longest; nothing happens if there is none."""
        for key in self._asleep:
            self.agent(key)
            return

    def seen(self, key: AgentKey) -> float | None:
        """Return when an agent last had a run, by the engine's clock; None for one that is not known."""
        return self._seen.get(key)

    def restore_runs(self, agents: Mapping[AgentKey, tuple[float, Callable[[], Iterable[Run]]]]) -> None:
        """Let agents be known, each with when it last had a run, and its final runs in their order.

        An agent sleeps until it is asked for: only then its runs are read, since that takes as long as measuring them.
        """
        for key, (_, runs) in agents.items():
            self._places.add(key)
            self._agents[key] = partial(self._state_of, key, runs)
            self._asleep[key] = None
        self._seen.update(sorted(((key, seen) for key, (seen, _) in agents.items()), key=_by_time))

    def _state_of(self, key: AgentKey, runs: Callable[[], Iterable[Run]]) -> Mapping[str, Any]:
        state = AgentState(key, self._settings, Counter())
        for run in runs():
            state.close(run)
            state.settle(run)
        return state.to_state()

    def _new(self, key: AgentKey) -> AgentState:
        return AgentState(key, self._settings, self.accounts)

    def _wake(self, key: AgentKey, asleep: Asleep) -> AgentState:
        state = self._agents[key] = self._new(key)
        del self._asleep[key]
        self._told.pop(key, None)
        state.restore(asleep())
        return state

    def _close(self, run: Run, now: float, wall_ns: int | None) -> None:
        key, seen = run.key, self._seen
        state = self._agents.get(key)
        if not isinstance(state, AgentState):
            state = self.agent(key) or self._enter(key)
            if state is None:
                return
        if wall_ns is not None:
            run = self._in_time(run, wall_ns)
        if not close(state, run):
            state.close(run)
        if state.seen != now:  # most agents have several runs at once
            seen[key] = state.seen = now
            seen.move_to_end(key)

    def _enter(self, key: AgentKey) -> AgentState | None:
        """An agent that is not known begins; None: it is beyond the ceiling."""
        if not self._admit(key):
            self.accounts["agents", "ceiling"] += 1
            return None
        state = self._agents[key] = self._new(key)
        return state

    def _withdraw(self, run: Run) -> None:
        state = self.agent(run.key)
        if state is not None:
            state.withdraw(run)

    def _admit(self, key: AgentKey) -> bool:
        """Whether an agent has a place under the ceiling; it gets one if there is one left."""
        if key in self._places:
            return True
        if len(self._places) >= self._settings.limits.agents:
            return False
        self._places.add(key)
        return True

    def _in_time(self, run: Run, wall_ns: int) -> Run:
        allowed = clamped(run, wall_ns)
        if allowed is not run:
            self.accounts["clamped", "future_end"] += 1
        return allowed

    def _forget_if_empty(self, key: AgentKey) -> None:
        """An agent whose every run was withdrawn was none: its runs turned out to be another's."""
        state = self.agent(key)
        if state is not None and state.empty:
            del self._seen[key]
            self._forget(key)

    def _forget(self, key: AgentKey) -> None:
        del self._agents[key]
        self._asleep.pop(key, None)
        self._told.pop(key, None)
        if self._places_return:
            self._places.discard(key)


def _by_time(seen: tuple[AgentKey, float]) -> float:
    return seen[1]
