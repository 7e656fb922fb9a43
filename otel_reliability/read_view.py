"""All that is read of an engine's state: by telemetry, pages, the API and reports.

They know the state of agents, sessions, change detection and open runs by this class alone, so the
parts behind it may change. It is valid within a turn of the engine (`Engine.read`), or for a caller
that is alone with the engine.
"""

from __future__ import annotations

from typing import NamedTuple

from otel_reliability.change.detector import Detector
from otel_reliability.change.monitor import Monitor
from otel_reliability.config import Settings
from otel_reliability.model.run import AgentKey
from otel_reliability.watch import Usage, Watch
from otel_reliability.windows.agents import AgentRegistry, AgentState
from otel_reliability.windows.session_scores import RecentSessions, SessionScores
from otel_reliability.windows.sessions import Sessions


class WindowLosses(NamedTuple):
    """Runs and agents that windows lost: runs that came too late, by window; runs whose end was in
    the future, and was clamped; agents that expired.
    """

    late_runs: dict[str, int]
    clamped_runs: int
    expired_agents: int


class ReadView:
    """The state of an engine as readers see it. Reading loads agents after a restart, and changes
    nothing else.
    """

    __slots__ = ("_agents", "_monitor", "_sessions", "_watch", "settings")

    def __init__(
        self,
        settings: Settings,
        agents: AgentRegistry,
        sessions: Sessions,
        monitor: Monitor | None,
        watch: Watch,
    ) -> None:
        self.settings = settings
        self._agents = agents
        self._sessions = sessions
        self._monitor = monitor
        self._watch = watch

    # --- Agents -----------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return the number of agents."""
        return len(self._agents)

    def keys(self) -> list[AgentKey]:
        """Return the agents that have runs, in the order in which they were first seen."""
        return self._agents.keys()

    def agent(self, key: AgentKey) -> AgentState | None:
        """Return the state of an agent; None if it has no runs, has expired, or is beyond the
        limit.
        """
        return self._agents.agent(key)

    def loaded(self, key: AgentKey) -> AgentState | None:
        """Return the state of an agent as `agent` does; None too while its runs are not loaded
        after a restart.
        """
        return self._agents.loaded(key)

    def has_runs(self, key: AgentKey) -> bool:
        """Return whether an agent has runs and has not expired."""
        return self._agents.seen(key) is not None

    def counted_as(self, key: AgentKey) -> AgentKey:
        """Return the agent whose counters include a run of this agent: itself, or `__other__`
        beyond the limit.
        """
        return self._agents.counted_as(key)

    @property
    def window_losses(self) -> WindowLosses:
        """Runs and agents that windows lost so far."""
        found = self._agents.accounts
        late = {window: number for (what, window), number in found.items() if what == "refused"}
        return WindowLosses(late, found["clamped", "future_end"], found["expired", "idle"])

    # --- Sessions, changes, open runs -------------------------------------------------------------

    @property
    def open_sessions(self) -> int:
        """Number of open sessions."""
        return self._sessions.number_open

    @property
    def closed_sessions(self) -> int:
        """Number of closed sessions that are remembered."""
        return len(self._sessions) - self._sessions.number_open

    def sessions(self, key: AgentKey) -> list[SessionScores]:
        """Return the sessions of an agent, with their scores."""
        return self._sessions.scores(key)

    def recent_sessions(self, key: AgentKey) -> RecentSessions | None:
        """Return the numbers about the last closed sessions of an agent; None without any."""
        return self._sessions.recent(key)

    @property
    def detects_change(self) -> bool:
        """True if change detection is switched on."""
        return self._monitor is not None

    def detector(self, key: AgentKey) -> Detector | None:
        """Return the change detector of an agent; None without an observation, and where change
        detection is switched off.
        """
        return None if self._monitor is None else self._monitor.detector(key)

    def open_run_usage(self, key: AgentKey) -> Usage:
        """Return by kind the largest share of its bound that an open run of an agent has
        reached.
        """
        return self._watch.most_extreme(key)

    def exceeding(self, key: AgentKey) -> list[tuple[str, Usage]]:
        """Return the open runs of an agent that exceed a bound: id, and share of the bound by
        kind.
        """
        return self._watch.exceeding(key)
