"""All sessions: which are open, when they close, and which closed ones are to be scored again."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS
from otel_reliability.model.event import RunChange, RunEvent
from otel_reliability.model.row import BASELINE
from otel_reliability.model.run import AgentKey, Run
from otel_reliability.windows.recent_sessions import RecentSessions
from otel_reliability.windows.session import Session, SessionKey, SessionScores
from otel_reliability.windows.signals import Trace, trace_of

MOST_RUNS: Final = 10_000
"""Runs of one session; the newest count."""
MOST_TRACES: Final = 1_000_000
"""Runs of all sessions that are remembered."""


class SessionEvent(NamedTuple):
    """A session was scored. `first`: it has just closed; else it had closed before, and what came late changed it."""

    scores: SessionScores
    first: bool


class Sessions:
    """The conversations of all agents, by agent and session id. Their traces are the top-level baseline runs.

    A session closes when nothing has happened in it for `sessions.idle` seconds. It stays closed: what comes later (a late
    run, a late evaluation, a turn after a long break) has it scored again at the next `tick`.

    Closed sessions are remembered for that, up to `limits.sessions` with the open ones and a million runs in all; beyond, the
    first to have closed are forgotten, and if none has, the longest idle is closed early. `accounts` counts, by (what, why):
    ("sessions", "forgotten"), ("sessions", "closed_early"), runs ("session_runs", "ceiling") left out of one endless session,
    and ("signals", name) refused because a score was not from 0 to 1.

    `known` tells whose sessions are kept: agents beyond the ceiling of agents have none.
    """

    def __init__(self, settings: Settings = DEFAULTS, known: Callable[[AgentKey], bool] = lambda _: True) -> None:
        self.accounts: Counter[tuple[str, str]] = Counter()
        self.traces = 0
        """Runs that are remembered, of all sessions."""
        self._settings = settings
        self._known = known
        self._open: OrderedDict[SessionKey, Session] = OrderedDict()
        self._closed: OrderedDict[SessionKey, Session] = OrderedDict()
        self._late: dict[SessionKey, None] = {}
        self._early: list[SessionEvent] = []
        self._agents: dict[AgentKey, RecentSessions] = {}
        self._ids: dict[AgentKey, set[str]] = {}

    def __len__(self) -> int:
        return len(self._open) + len(self._closed)

    @property
    def open(self) -> int:
        """How many sessions have not closed yet."""
        return len(self._open)

    def recent(self, key: AgentKey) -> RecentSessions | None:
        """The last closed sessions of an agent; None while it has none."""
        return self._agents.get(key)

    def scores(self, key: AgentKey) -> list[SessionScores]:
        """The last closed sessions of an agent that are still remembered, with their metadata, the earliest first."""
        recent = self._agents.get(key)
        ids: Iterable[str] = () if recent is None else recent.ids()
        return [self._score((key, one), self._closed[key, one]) for one in ids if (key, one) in self._closed]

    def apply(self, event: RunEvent, now: float) -> None:
        """Something happened to a run, by the engine's clock."""
        change = event.change
        gone = event.run if change is RunChange.WITHDRAWN else event.previous
        if gone is not None:
            self._take_out(gone)
        if change is RunChange.CLOSED or change is RunChange.REVISED:
            self._put_in(event.run, now)
        if gone is not None:
            self._drop_if_empty(gone)

    def tick(self, now: float) -> list[SessionEvent]:
        """Close what has been idle for long enough, score again what changed since it closed, and say so."""
        idle = self._settings.sessions.idle
        due: list[SessionKey] = []
        for key, session in self._open.items():
            if now - session.touched < idle:
                break
            due.append(key)
        return self._settled(due)

    def close_all(self) -> list[SessionEvent]:
        """Close every session: shutdown, or the end of a recording."""
        return self._settled(list(self._open))

    def forget(self, key: AgentKey) -> None:
        """An agent expired: its sessions are forgotten with it."""
        for session_id in self._ids.pop(key, set()):
            self._forget((key, session_id))
        self._agents.pop(key, None)

    # --- Runs in and out ----------------------------------------------------------------------------------------------

    def _put_in(self, run: Run, now: float) -> None:
        key = session_of(run)
        if key is None or not self._known(run.key):
            return
        trace = trace_of(run, self._settings.sessions.derive)
        for name in trace.refused:
            self.accounts["signals", name] += 1
        session = self._session(key, now)
        self.traces += run.run_id not in session.traces
        session.traces[run.run_id] = trace
        self._fit(session)

    def _session(self, key: SessionKey, now: float) -> Session:
        session = self._closed.get(key)
        if session is not None:
            self._late[key] = None
            return session
        session = self._open.get(key)
        if session is None:
            session = self._open[key] = Session(now)
            self._ids.setdefault(key[0], set()).add(key[1])
        session.touched = now
        self._open.move_to_end(key)
        return session

    def _take_out(self, run: Run) -> None:
        key = session_of(run)
        session = None if key is None else self._find(key)
        if key is None or session is None or session.traces.pop(run.run_id, None) is None:
            return
        self.traces -= 1
        if key in self._closed:
            self._late[key] = None

    def _drop_if_empty(self, run: Run) -> None:
        key = session_of(run)
        session = None if key is None else self._find(key)
        if key is None or session is None or session.traces:
            return
        self._forget(key)
        self._unlist(key)
        if run.key in self._agents:
            self._agents[run.key].drop(key[1])

    def _find(self, key: SessionKey) -> Session | None:
        return self._open.get(key) or self._closed.get(key)

    # --- Closing ------------------------------------------------------------------------------------------------------

    def _settled(self, due: Iterable[SessionKey]) -> list[SessionEvent]:
        events = [*self._early, *(self._event(key, first=False) for key in self._late)]
        self._early.clear()
        self._late.clear()
        return sorted([*events, *map(self._close, due)], key=_by_end)

    def _close(self, key: SessionKey) -> SessionEvent:
        self._closed[key] = self._open.pop(key)
        return self._event(key, first=True)

    def _event(self, key: SessionKey, first: bool) -> SessionEvent:
        scores = self._score(key, self._closed[key])
        self._agents.setdefault(key[0], RecentSessions()).put(scores)
        return SessionEvent(scores, first)

    def _score(self, key: SessionKey, session: Session) -> SessionScores:
        return session.scores(key, self._settings.sessions.weights)

    # --- Ceilings -----------------------------------------------------------------------------------------------------

    def _fit(self, session: Session) -> None:
        if len(session.traces) > MOST_RUNS:
            oldest: Trace = min(session.traces.values())
            del session.traces[oldest.run_id]
            self.traces -= 1
            self.accounts["session_runs", "ceiling"] += 1
        while len(self) > self._settings.limits.sessions or self.traces > MOST_TRACES:
            self._make_room()

    def _make_room(self) -> None:
        if not self._closed:
            key = next(iter(self._open))
            self._early.append(self._close(key))
            self.accounts["sessions", "closed_early"] += 1
        key = next(iter(self._closed))
        self._forget(key)
        self._unlist(key)
        self.accounts["sessions", "forgotten"] += 1

    def _forget(self, key: SessionKey) -> None:
        session = self._open.pop(key, None) or self._closed.pop(key, None)
        self.traces -= 0 if session is None else len(session.traces)
        self._late.pop(key, None)

    def _unlist(self, key: SessionKey) -> None:
        ids = self._ids[key[0]]
        ids.discard(key[1])
        if not ids:
            del self._ids[key[0]]


def session_of(run: Run) -> SessionKey | None:
    """The session of a run; None for a nested or a perturbed run, and for one without a session id."""
    if run.session_id is None or run.nested or run.condition != BASELINE:
        return None
    return (run.key, run.session_id)


def _by_end(event: SessionEvent) -> tuple[int, str, AgentKey]:
    return (event.scores.end_ns, event.scores.session_id, event.scores.key)
