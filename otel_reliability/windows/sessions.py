"""Sessions: which runs are in them, when they close, and which are scored again."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS
from otel_reliability.metrics.sessions import weights_of
from otel_reliability.model.changed import ChangedKeys
from otel_reliability.model.observation import (
    Observation,
    counts_for_change,
    joined,
    observation_of,
)
from otel_reliability.model.record import agent_key, unpack
from otel_reliability.model.row import BASELINE
from otel_reliability.model.run import AgentKey, Run, RunChange, RunEvent
from otel_reliability.windows.session_runs import SessionRun, SessionRuns, session_run_of
from otel_reliability.windows.session_scores import (
    BareSession,
    RecentSessions,
    SessionScores,
    bare_session,
    scores_of,
)

SessionKey: TypeAlias = tuple[AgentKey, str]
"""Agent and id of a session."""


MAX_RUNS: Final = 1_000
"""Runs of one session; the newest count."""
MAX_REMEMBERED_RUNS: Final = 1_000_000
"""Runs of all sessions that are remembered."""


class SessionEvent(NamedTuple):
    """A session was scored. `first`: it has just closed; else it had closed before, and a late
    change has it scored again.

    `session` holds its scores, `scores` also what explains them. `touched` is the engine's time of
    its last change. `observation` is for change detection: None if it has entered before, or no run
    counts there.
    """

    key: AgentKey
    session: BareSession
    first: bool
    runs: tuple[SessionRun, ...]
    weights: Mapping[str, float]
    touched: float
    observation: Observation | None

    @property
    def reliability(self) -> float | None:
        """Its score; None: it had no signal for that."""
        return self.session.reliability.score

    @property
    def consistency(self) -> float | None:
        """Its score; None: it had no signal for that."""
        return self.session.consistency.score

    @property
    def scores(self) -> SessionScores:
        """Its scores with all that explains them, computed each time."""
        return scores_of(self.key, self.session.session_id, self.runs, self.weights)


class Sessions:
    """The conversations of all agents, by agent and session id. Their runs are the top-level
    baseline runs.

    A session closes when nothing has happened in it for `sessions.idle` seconds. It stays closed:
    what comes later (a late run, a late evaluation, a turn after a long break) has it scored again
    at the next `tick`. For change detection it is one observation, of its complete runs as it first
    closed, without those that were observations before they joined it. One that is forgotten at a
    limit is a new session when it goes on.

    Closed sessions are remembered for that, up to `limits.sessions` with the open ones and a
    million runs in all; beyond, the first to have closed are forgotten, and if none has, the
    longest idle is closed early. Closed ones are kept as bytes. `accounts` counts, by (what, why):
    ("sessions", "forgotten"), ("sessions", "closed_early"), runs ("session_runs", "limit") left out
    of one endless session, and ("signals", name) refused because a score was not from 0 to 1.

    `known` says whose sessions are kept: agents beyond the limit of agents have none.
    """

    def __init__(
        self, settings: Settings = DEFAULTS, known: Callable[[AgentKey], bool] = lambda _: True
    ) -> None:
        self.accounts: Counter[tuple[str, str]] = Counter()
        self.remembered_runs = 0
        """Runs that are remembered, of all sessions."""
        self._settings = settings
        self._known = known
        self._weights = weights_of(settings.sessions.weights)
        self._open: OrderedDict[SessionKey, SessionRuns] = OrderedDict()
        self._closed: OrderedDict[SessionKey, bytes] = OrderedDict()
        self._late: dict[SessionKey, None] = {}
        self._early: list[SessionEvent] = []
        self._recent: dict[AgentKey, RecentSessions] = {}
        self._touched = ChangedKeys[SessionKey]()

    def __len__(self) -> int:
        return len(self._open) + len(self._closed)

    @property
    def number_open(self) -> int:
        """Number of sessions that have not closed yet."""
        return len(self._open)

    def recent(self, key: AgentKey) -> RecentSessions | None:
        """Return the last closed sessions of an agent; None while it has none."""
        return self._recent.get(key)

    def scores(self, key: AgentKey) -> list[SessionScores]:
        """Return the last closed sessions of an agent that are still remembered, with metadata, the
        earliest first.
        """
        recent = self._recent.get(key)
        found = [
            self.scores_of_closed(key, one.session_id)
            for one in (recent.sessions() if recent is not None else ())
        ]
        return [scores for scores in found if scores is not None]

    def scores_of_closed(self, key: AgentKey, session_id: str) -> SessionScores | None:
        """Return a session of an agent that has closed and is still remembered, with metadata."""
        session = self._find((key, session_id)) if (key, session_id) in self._closed else None
        weights = self._settings.sessions.weights
        return None if session is None else scores_of(key, session_id, session.sorted(), weights)

    def remembers_closed(self, key: AgentKey, session_id: str) -> bool:
        """Return whether such a session is remembered."""
        return (key, session_id) in self._closed

    def apply(self, event: RunEvent, now: float) -> bool:
        """Apply one change of one run, at the engine's time. Return whether the run was waiting
        here unobserved: its earlier version was taken out of an open session, so no detector has
        it, and `Monitor.apply` adds the run if it has no session now.
        """
        change = event.change
        run = event.run
        previous = event.previous
        unobserved = False
        if change is RunChange.CLOSED:
            self._put_in(run, now)
        elif change is RunChange.WITHDRAWN:
            unobserved = self._take_out(run)
            self._drop_if_empty(run)
        elif change is RunChange.REVISED:
            replaced = previous or run
            unobserved = self._take_out(replaced)
            if _key_of(run) != _key_of(replaced):
                self._drop_if_empty(replaced)  # before the run enters: making room could close it
            self._put_in(run, now, observe=unobserved or not counts_for_change(replaced))
            self._drop_if_empty(replaced)
        return unobserved

    def tick(self, now: float, most: int | None = None) -> list[SessionEvent]:
        """Close what has been idle for long enough, so many sessions or all, score again what
        changed since it closed, and return both.

        They are sorted by last change, end and id, so that the times of ticks do not change the
        order in which sessions close: those of one last change close together.
        """
        due: list[SessionKey] = []
        last = now
        for key, session in self._open.items():
            if now - session.touched < self._settings.sessions.idle:
                break
            if most is not None and len(due) >= most and session.touched != last:
                break
            due.append(key)
            last = session.touched
        return self._score(due)

    def is_due(self, now: float) -> bool:
        """Return whether a session has been idle for long enough to close."""
        first = next(iter(self._open.values()), None)
        return first is not None and now - first.touched >= self._settings.sessions.idle

    def close_all(self, most: int | None = None) -> list[SessionEvent]:
        """Close every session, or so many of them: at shutdown, or at the end of a recording."""
        return self._score(list(islice(self._open, most)))

    def forget(self, *keys: AgentKey) -> None:
        """Forget the sessions of agents that expired."""
        if not keys:
            return
        expired = set(keys)
        for key in expired:
            self._recent.pop(key, None)
        for kept in (self._open, self._closed):
            for key in [key for key in kept if key[0] in expired]:
                self._forget(key)

    # --- Restarts ---------------------------------------------------------------------------------

    def changes(self) -> Iterator[tuple[Any, Any]]:
        """Yield what changed since the last call: agent and id of a session, and its data (None: it
        is forgotten).

        The data of a closed one are the bytes that it is kept as; those of an open one when it was
        touched last, its runs, and its observations.
        """
        for key in self._touched.take():
            session = self._open.get(key)
            plain = None if session is None else session.plain()
            yield [list(key[0]), key[1]], self._closed.get(key, plain)

    def restore(self, data: Iterable[tuple[Any, Any]]) -> None:
        """Replace all sessions by those that `changes` returned, the one that changed last at the
        end.
        """
        for kept in (
            self._open,
            self._closed,
            self._late,
            self._early,
            self._recent,
            self._touched,
        ):
            kept.clear()
        self.remembered_runs = 0
        for (plain, session_id), body in data:
            is_closed = isinstance(body, bytes)
            key = agent_key(plain)
            session = SessionRuns.unpacked(body) if is_closed else SessionRuns.of(*body)
            self.remembered_runs += len(session.runs)
            if not is_closed:
                self._open[key, session_id] = session
            else:
                self._closed[key, session_id] = body
                found = bare_session(session_id, session.sorted(), self._weights)
                self._recent.setdefault(key, RecentSessions()).add(found)
        for key, _ in sorted(self._open.items(), key=lambda item: item[1].touched):
            self._open.move_to_end(key)

    # --- Runs in and out --------------------------------------------------------------------------

    def _find(self, key: SessionKey | None) -> SessionRuns | None:
        """Return a session that is remembered: an open one, or a copy of a closed one."""
        if key not in self._closed:
            return None if key is None else self._open.get(key)
        return SessionRuns.unpacked(self._closed[key])

    def _changed(self, key: SessionKey, session: SessionRuns) -> None:
        """Keep what was changed in a session that `_find` returned; a closed one
        is scored again.
        """
        self._touched.add(key)
        if key in self._closed:
            self._closed[key] = session.packed()
            self._late[key] = None

    def _put_in(self, run: Run, now: float, *, observe: bool = True) -> None:
        key = _key_of(run)
        if key is None or not self._known(run.key):
            return
        kept, refused = session_run_of(run, self._settings.sessions.derive)
        self.accounts.update([("signals", name) for name in refused])
        session = self._find(key) or self._open.setdefault(key, SessionRuns(now))
        if key not in self._closed:
            self._open.move_to_end(key)
            if observe and self._settings.change.enabled and counts_for_change(run):
                session.observed[run.run_id] = observation_of(run)
        session.touched = now
        self.remembered_runs += kept.run_id not in session.runs
        session.runs[kept.run_id] = kept
        if len(session.runs) > MAX_RUNS:
            oldest = min(session.runs.values()).run_id
            del session.runs[oldest]
            session.observed.pop(oldest, None)
            self.remembered_runs -= 1
            self.accounts["session_runs", "limit"] += 1
        self._changed(key, session)
        self._make_room()

    def _take_out(self, run: Run) -> bool:
        """Remove a run from its session. Return whether its observation waited there, and so no
        detector has it.
        """
        key = _key_of(run)
        session = self._find(key)
        if key is None or session is None or session.runs.pop(run.run_id, None) is None:
            return False
        self.remembered_runs -= 1
        self._changed(key, session)
        return session.observed.pop(run.run_id, None) is not None

    def _drop_if_empty(self, run: Run) -> None:
        key = _key_of(run)
        session = self._find(key)
        if key is None or session is None or session.runs:
            return
        self._forget(key)
        recent = self._recent.get(run.key)
        if recent is not None:
            recent.drop(key[1])
            if not len(recent):
                del self._recent[run.key]

    # --- Closing ----------------------------------------------------------------------------------

    def _score(self, due: Iterable[SessionKey]) -> list[SessionEvent]:
        late = [(key, session) for key in self._late if (session := self._find(key)) is not None]
        events = [*self._early, *[self._event(key, session, first=False) for key, session in late]]
        self._early.clear()
        self._late.clear()
        for key in due:
            session = self._open.pop(key)
            events.append(self._event(key, session, first=True))
            self._closed[key] = session.packed()
        return sorted(events, key=_by_last_change)

    def _event(self, key: SessionKey, session: SessionRuns, *, first: bool) -> SessionEvent:
        agent, session_id = key
        self._touched.add(key)
        runs = tuple(session.sorted())
        found = bare_session(session_id, runs, self._weights)
        self._recent.setdefault(agent, RecentSessions()).add(found)
        observation = (
            joined(session_id, list(session.observed.values())) if session.observed else None
        )
        session.observed.clear()
        weights = self._settings.sessions.weights
        return SessionEvent(agent, found, first, runs, weights, session.touched, observation)

    # --- Limits -----------------------------------------------------------------------------------

    def _make_room(self) -> None:
        """Forget the first closed sessions beyond the limits; without any, close the longest idle
        ones early.
        """
        while (
            len(self) > self._settings.limits.sessions or self.remembered_runs > MAX_REMEMBERED_RUNS
        ):
            if self._closed:
                self._forget(next(iter(self._closed)))
            else:
                key = next(iter(self._open))
                self._early.append(self._event(key, self._open[key], first=True))
                self._forget(key)
                self.accounts["sessions", "closed_early"] += 1
            self.accounts["sessions", "forgotten"] += 1

    def _forget(self, key: SessionKey) -> None:
        session = self._open.pop(key, None)
        closed = self._closed.pop(key, None)
        if session is not None:
            self.remembered_runs -= len(session.runs)
        elif closed is not None:
            _, runs = unpack(closed)
            self.remembered_runs -= len(runs)
            self._late.pop(key, None)
        self._touched.add(key)


def _by_last_change(event: SessionEvent) -> tuple[float, int, str, AgentKey]:
    return event.touched, event.session.end_ns, event.session.session_id, event.key


def _key_of(run: Run) -> SessionKey | None:
    """Return the session of a run; None for one that counts in none: without id, nested or
    perturbed.
    """
    counts = run.session_id is not None and not run.nested and run.condition == BASELINE
    return (run.key, run.session_id) if counts and run.session_id is not None else None
