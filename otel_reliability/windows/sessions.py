"""Sessions: the signals of their runs, when they close, which are scored again, and the gauges of
an agent's last ones.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from statistics import fmean
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import convert

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS
from otel_reliability.metrics.sessions import (
    COHERENCE,
    CONFIDENCE,
    LOOP_DETECTION,
    SIGNALS,
    SPECS,
    TOOL_CORRECTNESS,
    BareScore,
    SessionScore,
    SignalScores,
    agent_consistency,
    agent_reliability,
    bare_consistency,
    bare_reliability,
    weights_of,
)
from otel_reliability.model.changed import ChangedKeys
from otel_reliability.model.observation import (
    Observation,
    counts_for_change,
    joined,
    observation_of,
)
from otel_reliability.model.reading import NO_DATA, MetricSpec, Reading
from otel_reliability.model.record import agent_key, pack, unpack
from otel_reliability.model.row import BASELINE
from otel_reliability.model.run import AgentKey, Run, RunChange, RunEvent, ToolCall
from otel_reliability.windows.rows import signals_of


class SessionRun(NamedTuple):
    """A run as its session keeps it, sorted by start: the score of each of `SIGNALS` or None, and
    which are derived.
    """

    start_ns: int
    run_id: str
    end_ns: int
    confidence: float | None
    loop_detection: float | None
    tool_correctness: float | None
    coherence: float | None
    derived: tuple[str, ...]

    @property
    def scores(self) -> SignalScores:
        """The score of each of `SIGNALS`."""
        return self.confidence, self.loop_detection, self.tool_correctness, self.coherence

    @property
    def signals(self) -> dict[str, float]:
        """The signals that it has.

        >>> SessionRun(0, "run", 1, 0.5, None, None, 1.0, ()).signals
        {'confidence': 0.5, 'coherence': 1.0}
        """
        return {
            name: score
            for name, score in zip(SIGNALS, self.scores, strict=True)
            if score is not None
        }


def session_run_of(run: Run, derive: bool) -> tuple[SessionRun, tuple[str, ...]]:
    """Return the signals of a run, and the names of the evaluations refused because their score was
    not from 0 to 1.

    With `derive`, loop_detection and tool_correctness are derived from the tool calls where no
    evaluation gives them.
    """
    evaluated = {name: score for name, score in signals_of(run.evaluations) if name in SIGNALS}
    found = {name: score for name, score in evaluated.items() if 0.0 <= score <= 1.0}
    refused = tuple([name for name in evaluated if name not in found])
    derived = derived_signals(run.tool_calls) if derive else {}
    added = tuple([name for name in derived if name not in found])
    signals = {**derived, **found}
    session_run = SessionRun(
        start_ns=run.start_ns,
        run_id=run.run_id,
        end_ns=run.end_ns,
        confidence=signals.get(CONFIDENCE),
        loop_detection=signals.get(LOOP_DETECTION),
        tool_correctness=signals.get(TOOL_CORRECTNESS),
        coherence=signals.get(COHERENCE),
        derived=added,
    )
    return session_run, refused


def derived_signals(calls: Sequence[ToolCall] | None) -> dict[str, float]:
    """Return loop_detection = 1 − share of repeats and tool_correctness = 1 − share of failed
    calls; none without calls.
    """
    if not calls:
        return {}
    repeats = sum([call.repeat for call in calls])
    failed = sum([not call.ok for call in calls])
    return {LOOP_DETECTION: 1.0 - repeats / len(calls), TOOL_CORRECTNESS: 1.0 - failed / len(calls)}


SessionKey: TypeAlias = tuple[AgentKey, str]
"""Agent and id of a session."""


class ClosedSession(NamedTuple):
    """The part of a closed session that gauges need: its scores, and the signals that no evaluation
    gave.

    Sorted by the end of its last run.
    """

    end_ns: int
    session_id: str
    reliability: BareScore
    consistency: BareScore
    derived: tuple[str, ...]


class SessionScores(NamedTuple):
    """A session with its scores; None: it had no signal for that score, so there is no reading of
    it.

    `runs` are its run ids in the order of their starts, `derived` the signals that no evaluation
    gave.
    """

    key: AgentKey
    session_id: str
    runs: tuple[str, ...]
    start_ns: int
    end_ns: int
    reliability: SessionScore | None
    consistency: SessionScore | None
    derived: tuple[str, ...]


def closed_session(
    session_id: str, runs: Sequence[SessionRun], weights: tuple[float, ...]
) -> ClosedSession:
    """Return the scores of a session of at least one run. `weights`: of the signals, in their
    order.
    """
    scores = [run.scores for run in runs]
    return ClosedSession(
        end_ns=max([run.end_ns for run in runs]),
        session_id=session_id,
        reliability=bare_reliability(scores, weights),
        consistency=bare_consistency(scores, weights),
        derived=_derived(runs),
    )


def scores_of(
    key: AgentKey, session_id: str, runs: Sequence[SessionRun], weights: Mapping[str, float]
) -> SessionScores:
    """Return the same with all that explains it; `runs` are sorted."""
    ids = tuple([run.run_id for run in runs])
    signals = {run.run_id: found for run in runs if (found := run.signals)}
    reliability = agent_reliability(ids, signals, weights)
    consistency = agent_consistency(ids, signals, weights)
    return SessionScores(
        key=key,
        session_id=session_id,
        runs=ids,
        start_ns=runs[0].start_ns,
        end_ns=max([run.end_ns for run in runs]),
        reliability=reliability if reliability.evaluated else None,
        consistency=consistency if consistency.evaluated else None,
        derived=_derived(runs),
    )


def _derived(runs: Iterable[SessionRun]) -> tuple[str, ...]:
    return tuple(sorted({name for run in runs for name in run.derived}))


LAST: Final = 100
"""Closed sessions of an agent that its gauges are about."""


class RecentSessions:
    """The sessions of one agent whose last run ended latest, at most 100, by (end, session id): not
    by when they closed.
    """

    __slots__ = ("_sessions",)

    def __init__(self) -> None:
        self._sessions: list[ClosedSession] = []

    def __len__(self) -> int:
        return len(self._sessions)

    def sessions(self) -> list[ClosedSession]:
        """Return the sessions, the earliest first."""
        return self._sessions[:]

    def add(self, closed: ClosedSession) -> None:
        """Add a session that was scored, for the first time or again."""
        self.drop(closed.session_id)
        insort(self._sessions, closed)
        del self._sessions[:-LAST]

    def put(self, scores: SessionScores) -> None:
        """Add a session with its explained scores."""
        self.add(
            ClosedSession(
                end_ns=scores.end_ns,
                session_id=scores.session_id,
                reliability=_bare(scores.reliability),
                consistency=_bare(scores.consistency),
                derived=scores.derived,
            )
        )

    def drop(self, session_id: str) -> None:
        """Remove a session whose runs turned out to be another's; do nothing without such a
        session.
        """
        self._sessions = [one for one in self._sessions if one.session_id != session_id]

    def readings(self) -> dict[str, Reading]:
        """Return the gauges by name; the runs of a reading are the runs that were evaluated."""
        found = (
            *_gauges([(one.reliability, one.derived) for one in self._sessions]),
            *_gauges([(one.consistency, one.derived) for one in self._sessions]),
        )
        return {spec.name: reading for spec, reading in zip(SPECS, found, strict=True)}

    def series(self) -> list[tuple[MetricSpec, tuple[tuple[str, str], ...], Reading]]:
        """Return what is emitted: (spec, attributes, reading) of all that has a value."""
        found = self.readings()
        return [
            (spec, (), found[spec.name]) for spec in SPECS if found[spec.name].value is not None
        ]


def _bare(found: SessionScore | None) -> BareScore:
    return BareScore(None, 0) if found is None else BareScore(found.score, found.evaluated)


def _gauges(sessions: Iterable[tuple[BareScore, tuple[str, ...]]]) -> tuple[Reading, Reading]:
    """Return the mean and the worst of the scores of sessions, given with their derived signals; no
    value without a score.
    """
    scores: list[float] = []
    derived: set[str] = set()
    runs = 0
    for bare, names in sessions:
        if bare.score is not None:
            scores.append(bare.score)
            derived.update(names)
            runs += bare.evaluated
    if not scores:
        return NO_DATA, NO_DATA
    note = f"last {len(scores)} sessions"
    if derived:
        note = f"{note}; derived: {', '.join(sorted(derived))}"
    return Reading(fmean(scores), runs, note=note), Reading(min(scores), runs, note=note)


MAX_RUNS: Final = 1_000
"""Runs of one session; the newest count."""
MAX_REMEMBERED_RUNS: Final = 1_000_000
"""Runs of all sessions that are remembered."""


class SessionRuns:
    """The runs of one conversation by run id, and the engine's time of its last change.

    `observed`: what change detection compares of its runs, until it first closes.
    """

    __slots__ = ("observed", "runs", "touched")

    def __init__(self, touched: float) -> None:
        self.touched = touched
        self.runs: dict[str, SessionRun] = {}
        self.observed: dict[str, Observation] = {}

    @classmethod
    def of(cls, touched: float, runs: Iterable[Any], observed: Any = ()) -> SessionRuns:
        """Return a session from plain data."""
        session = cls(touched)
        for *facts, derived in runs:
            run = SessionRun(*facts, derived=tuple(derived))
            session.runs[run.run_id] = run
        session.observed = (
            {run.id: run for run in convert(observed, list[Observation])} if observed else {}
        )
        return session

    @classmethod
    def unpacked(cls, packed: bytes) -> SessionRuns:
        """Return a closed session from what `packed` made of it."""
        touched, runs = unpack(packed)
        return cls.of(touched, runs)

    def plain(self) -> list[Any]:
        """Return an open session as plain data."""
        return [self.touched, list(self.runs.values()), list(self.observed.values())]

    def packed(self) -> bytes:
        """Return a closed session as bytes."""
        return pack((self.touched, list(self.runs.values())))

    def sorted(self) -> list[SessionRun]:
        """Return the runs in the order of their starts."""
        return sorted(self.runs.values())


class SessionEvent(NamedTuple):
    """A session was scored. `first`: it has just closed; else it had closed before, and a late
    change has it scored again.

    `closed` holds its scores, `scores` also what explains them. `touched` is the engine's time of
    its last change. `observation` is for change detection: None if it has entered before, or no run
    counts there.
    """

    key: AgentKey
    closed: ClosedSession
    first: bool
    runs: tuple[SessionRun, ...]
    weights: Mapping[str, float]
    touched: float
    observation: Observation | None

    @property
    def reliability(self) -> float | None:
        """Its score; None: it had no signal for that."""
        return self.closed.reliability.score

    @property
    def consistency(self) -> float | None:
        """Its score; None: it had no signal for that."""
        return self.closed.consistency.score

    @property
    def scores(self) -> SessionScores:
        """Its scores with all that explains them, computed each time."""
        return scores_of(self.key, self.closed.session_id, self.runs, self.weights)


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
    def open(self) -> int:
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
            self.closed(key, one.session_id)
            for one in (recent.sessions() if recent is not None else ())
        ]
        return [scores for scores in found if scores is not None]

    def closed(self, key: AgentKey, session_id: str) -> SessionScores | None:
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
                found = closed_session(session_id, session.sorted(), self._weights)
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
        return sorted(
            events, key=lambda one: (one.touched, one.closed.end_ns, one.closed.session_id, one.key)
        )

    def _event(self, key: SessionKey, session: SessionRuns, *, first: bool) -> SessionEvent:
        agent, session_id = key
        self._touched.add(key)
        runs = tuple(session.sorted())
        closed = closed_session(session_id, runs, self._weights)
        self._recent.setdefault(agent, RecentSessions()).add(closed)
        observation = (
            joined(session_id, list(session.observed.values())) if session.observed else None
        )
        session.observed.clear()
        weights = self._settings.sessions.weights
        return SessionEvent(agent, closed, first, runs, weights, session.touched, observation)

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


def _key_of(run: Run) -> SessionKey | None:
    """Return the session of a run; None for one that counts in none: without id, nested or
    perturbed.
    """
    counts = run.session_id is not None and not run.nested and run.condition == BASELINE
    return (run.key, run.session_id) if counts and run.session_id is not None else None
