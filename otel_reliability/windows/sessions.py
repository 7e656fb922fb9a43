"""All sessions: which are open, when they close, and which closed ones are to be scored again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS
from otel_reliability.model.event import RunChange, RunEvent
from otel_reliability.model.record import agent_key
from otel_reliability.model.row import BASELINE
from otel_reliability.model.run import AgentKey, Run
from otel_reliability.windows.recent_sessions import RecentSessions
from otel_reliability.windows.session import (
    Closed,
    Session,
    SessionScores,
    bare_scores,
    count,
    scores_of,
    scores_of_one,
    traces_in,
    traces_of,
    weights_of,
    with_trace,
    without,
)
from otel_reliability.windows.shelf import Agent, Key, Shelf, new_shelf
from otel_reliability.windows.signals import RUN_ID, Trace, trace_of

MOST_RUNS: Final = 10_000
"""Runs of one session; the newest count."""
MOST_TRACES: Final = 1_000_000
"""Runs of all sessions that are remembered."""

_CLOSED, _SETTLED, _WITHDRAWN = RunChange.CLOSED, RunChange.SETTLED, RunChange.WITHDRAWN


class SessionEvent(NamedTuple):
    """A session was scored. `first`: it has just closed; else it had closed before, and what came late changed it.

    `closed` is what it scores, `scores` with what explains that.
    """

    key: AgentKey
    closed: Closed
    first: bool
    traces: tuple[Trace, ...]
    weights: Mapping[str, float]

    @property
    def reliability(self) -> float | None:
        """Its score; None: it had no signal for that."""
        return self.closed[2]

    @property
    def consistency(self) -> float | None:
        """Its score; None: it had no signal for that."""
        return self.closed[3]

    @property
    def scores(self) -> SessionScores:
        """Its scores with all that explains them, worked out anew each time."""
        return scores_of(self.key, self.closed[1], self.traces, self.weights)


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
        self._open, self._closed = new_shelf(), new_shelf()
        self._late: dict[Key, None] = {}
        self._touched: set[tuple[AgentKey, str]] = set()
        self._early: list[SessionEvent] = []
        self._agents: dict[AgentKey, Agent] = {}
        self._numbered: dict[int, Agent] = {}
        self._next_number = 0
        self._weights, self._derive = weights_of(settings.sessions.weights), settings.sessions.derive
        self._most = settings.limits.sessions

    def __len__(self) -> int:
        return len(self._open) + len(self._closed)

    @property
    def open(self) -> int:
        """How many sessions have not closed yet."""
        return len(self._open)

    def recent(self, key: AgentKey) -> RecentSessions | None:
        """The last closed sessions of an agent; None while it has none."""
        agent = self._agents.get(key)
        return None if agent is None else agent.recent

    def scores(self, key: AgentKey) -> list[SessionScores]:
        """The last closed sessions of an agent that are still remembered, with their metadata, the earliest first."""
        agent = self._agents.get(key)
        if agent is None or agent.recent is None:
            return []
        found = [(one, self._closed.get((agent.number, one))) for one in agent.recent.ids()]
        weights = self._settings.sessions.weights
        return [scores_of(key, one, traces_of(session), weights) for one, session in found if session is not None]

    def closed(self, key: AgentKey, session_id: str) -> SessionScores | None:
        """A session of an agent that has closed and is still remembered, with its metadata."""
        agent = self._agents.get(key)
        session = None if agent is None else self._closed.get((agent.number, session_id))
        return (
            None if session is None else scores_of(key, session_id, traces_of(session), self._settings.sessions.weights)
        )

    def remembers_closed(self, key: AgentKey, session_id: str) -> bool:
        """Whether there is one."""
        agent = self._agents.get(key)
        return agent is not None and (agent.number, session_id) in self._closed

    def apply(self, event: RunEvent, now: float) -> None:
        """Something happened to a run, by the engine's clock."""
        change, run, gone = event
        self._touch(run)
        if gone is not None:
            self._touch(gone)
        if change is _CLOSED:
            held = self._open.take(run, now, self._agents, self._known, self._closed) if self._derive else 0
            if not held:
                self._put_in(run, now)
                return
            self.traces += 1
            if held > self._most or self.traces > MOST_TRACES:
                self._make_room()
        elif change is not _SETTLED:
            gone = gone or run
            self._take_out(gone)
            if change is _WITHDRAWN:
                self._drop_if_empty(gone)
            else:
                self._put_back(run, gone, now)

    def _touch(self, run: Run) -> None:
        if run.session_id is not None:
            self._touched.add((run.key, run.session_id))

    def tick(self, now: float) -> list[SessionEvent]:
        """Close what has been idle for long enough, score again what changed since it closed, and say so."""
        return self._settled(self._open.due(now, self._settings.sessions.idle))

    def close_all(self, most: int | None = None) -> list[SessionEvent]:
        """Close every session, or so many of them: shutdown, or the end of a recording."""
        return self._settled(list(islice(self._open, most)))

    def forget(self, *keys: AgentKey) -> None:
        """Agents expired: their sessions are forgotten with them."""
        gone = [agent for agent in [self._agents.pop(key, None) for key in keys] if agent is not None]
        numbers = {agent.number: agent.key for agent in gone if agent.sessions}
        for agent in gone:
            del self._numbered[agent.number]
        for shelf in (self._open, self._closed) if numbers else ():
            for key in shelf.keys_of(set(numbers)):
                self._forget(key)
                self._touched.add((numbers[key[0]], key[1]))

    # --- Over a restart -----------------------------------------------------------------------------------------------

    def changes(self) -> Iterator[tuple[Any, Any]]:
        """Yield what changed since this was last asked for: agent and id of a session, and its plain data (None: it is gone).

        The data are whether it has closed, when it was touched last, and its traces.
        """
        touched, self._touched = self._touched, set()
        for key, session_id in touched:
            agent = self._agents.get(key)
            session = None if agent is None else self._find((agent.number, session_id))[1]
            if agent is None or session is None:
                yield [list(key), session_id], None
            else:
                closed = (agent.number, session_id) in self._closed
                yield [list(key), session_id], [closed, session[0], list(traces_in(session))]

    def restore(self, data: Iterable[tuple[Any, Any]]) -> None:
        """Replace all sessions by those that `changes` yielded, the one that changed last at the end."""
        self._open, self._closed, self.traces = new_shelf(), new_shelf(), 0
        self._touched.clear()
        self._late.clear()
        self._early.clear()
        for agent in self._agents.values():
            agent.sessions, agent.recent = 0, None
        for (plain_key, session_id), (closed, touched, traces) in data:
            key = agent_key(plain_key)
            agent = self._agents.get(key) or self._begin(key)
            session: Session = (touched,)
            for *scores, derived in traces:
                session = with_trace(session, (*scores, tuple(derived)), touched) if len(session) > 1 else (
                    touched, (*scores, tuple(derived))
                )  # fmt: skip
            agent.sessions += 1
            self.traces += len(traces)
            (self._closed if closed else self._open)[agent.number, session_id] = session
            if closed:
                agent.recent = agent.recent or RecentSessions()
                agent.recent.add(bare_scores(session_id, traces_of(session), self._weights))

    # --- Runs in and out ----------------------------------------------------------------------------------------------

    def _put_back(self, run: Run, gone: Run, now: float) -> None:
        """A run comes as it is now. The session that it left goes first, if it is empty: whoever makes room could close it."""
        stays = (run.key, run.session_id) == (gone.key, gone.session_id)
        if not stays:
            self._drop_if_empty(gone)
        self._put_in(run, now)
        if stays:
            self._drop_if_empty(gone)

    def _put_in(self, run: Run, now: float) -> None:
        session_id, agent_key = run.session_id, run.key
        if session_id is None or not _counts(run) or not self._known(agent_key):
            return
        trace, refused = trace_of(run, self._derive)
        for name in refused:
            self.accounts["signals", name] += 1
        agent = self._agents.get(agent_key) or self._begin(agent_key)
        key = (agent.number, session_id)
        if key not in self._open and key not in self._closed:
            agent.sessions += 1
            self._open[key] = (now, trace)
            self.traces += 1
        else:
            self._go_on(key, trace, now)
        if len(self) > self._most or self.traces > MOST_TRACES:
            self._make_room()

    def _go_on(self, key: Key, trace: Trace, now: float) -> None:
        """A run comes to a session that is there."""
        kept = self._open if key in self._open else self._closed
        session = kept[key]
        self.traces -= count(session)
        kept[key] = session = with_trace(session, trace, now)
        self.traces += count(session)
        self._fit(kept, key)
        if kept is self._open:
            kept.move_to_end(key)
        else:
            self._late[key] = None

    def _begin(self, key: AgentKey) -> Agent:
        self._next_number += 1
        agent = self._agents[key] = self._numbered[self._next_number] = Agent(key, self._next_number)
        return agent

    def _take_out(self, run: Run) -> None:
        key = self._key_of(run)
        kept, session = (self._open, None) if key is None else self._find(key)
        if key is None or session is None:
            return
        number = count(session)
        kept[key] = session = without(session, run.run_id)
        if count(session) == number:
            return
        self.traces -= 1
        if kept is self._closed:
            self._late[key] = None

    def _drop_if_empty(self, run: Run) -> None:
        key = self._key_of(run)
        session = None if key is None else self._find(key)[1]
        if key is None or session is None or count(session):
            return
        self._forget(key)
        agent = self._numbered[key[0]]
        if agent.recent is not None:
            agent.recent.drop(key[1])
            agent.recent = agent.recent if len(agent.recent) else None
        self._unlist(key)

    def _key_of(self, run: Run) -> Key | None:
        """The session of a run, None where it belongs to none that is known."""
        agent = self._agents.get(run.key)
        if agent is None or run.session_id is None or not _counts(run):
            return None
        return (agent.number, run.session_id)

    def _find(self, key: Key) -> tuple[Shelf, Session | None]:
        """The session, and where it is kept."""
        session = self._open.get(key)
        if session is not None or key not in self._closed:
            return self._open, session
        return self._closed, self._closed[key]

    # --- Closing ------------------------------------------------------------------------------------------------------

    def _settled(self, due: Iterable[Key]) -> list[SessionEvent]:
        events = [*self._early, *[self._event(key, self._closed[key], first=False) for key in self._late]]
        self._early.clear()
        self._late.clear()
        return sorted([*events, *[self._close(key) for key in due]], key=_by_end)

    def _close(self, key: Key) -> SessionEvent:
        session = self._open.pop(key, None)
        if session is None:
            raise KeyError(key)
        self._closed[key] = session
        return self._event(key, session, first=True)

    def _event(self, key: Key, session: Session, first: bool) -> SessionEvent:
        agent, traces = self._numbered[key[0]], tuple(traces_of(session))
        self._touched.add((agent.key, key[1]))
        closed = bare_scores(key[1], traces, self._weights)
        if agent.recent is None:
            agent.recent = RecentSessions()
        agent.recent.add(closed)
        return SessionEvent(agent.key, closed, first, traces, self._settings.sessions.weights)

    # --- Ceilings -----------------------------------------------------------------------------------------------------

    def _fit(self, kept: Shelf, key: Key) -> None:
        """Beyond the ceiling of one session its oldest run is left out."""
        session = kept[key]
        if count(session) > MOST_RUNS:
            kept[key] = without(session, min(traces_in(session))[RUN_ID])
            self.traces -= 1
            self.accounts["session_runs", "ceiling"] += 1

    def _make_room(self) -> None:
        kept, closed = self._open, self._closed
        telling = (SessionEvent, self._settings.sessions.weights, self._early)
        while len(kept) + len(closed) > self._most or self.traces > MOST_TRACES:
            if len(closed):
                key, session = closed.popitem(last=False)
                self._touched.add((self._numbered[key[0]].key, key[1]))
                self._late.pop(key, None)
                self.traces -= count(session)
                self._unlist(key)
            else:
                if kept.close(self._numbered, self._weights, scores_of_one, telling):
                    self.traces -= 1
                else:
                    self._close_early()
                self.accounts["sessions", "closed_early"] += 1
            self.accounts["sessions", "forgotten"] += 1

    def _close_early(self) -> None:
        """Close the session that is idle for longest, and forget it."""
        key, session = self._open.popitem(last=False)
        self.traces -= count(session)
        self._early.append(self._event(key, session, first=True))
        self._unlist(key)

    def _forget(self, key: Key) -> None:
        session = self._open.pop(key, None)
        session = self._closed.pop(key, None) if session is None else session
        self.traces -= 0 if session is None else count(session)
        self._late.pop(key, None)

    def _unlist(self, key: Key) -> None:
        """The agent has this session no more; it need not be known where nothing else is known of it."""
        agent = self._numbered[key[0]]
        agent.sessions -= 1
        if not agent.sessions and agent.recent is None:
            del self._agents[agent.key], self._numbered[agent.number]


def _counts(run: Run) -> bool:
    """Whether a run belongs to its session: a nested or a perturbed one does not."""
    return not run.nested and run.condition == BASELINE


def _by_end(event: SessionEvent) -> tuple[int, str, AgentKey]:
    return (event.closed[0], event.closed[1], event.key)
