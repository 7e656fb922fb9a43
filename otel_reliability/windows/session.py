"""One session: the signals of its traces, its scores, and the gauges of an agent's last sessions."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.metrics.sessions import SessionScore, agent_consistency, agent_reliability
from otel_reliability.metrics.sessions.bare import Four, bare_consistency, bare_reliability
from otel_reliability.metrics.sessions.gauges import SPECS, mean_and_worst
from otel_reliability.metrics.sessions.signals import (
    LOOP_DETECTION,
    NO_TRACES,
    NOT_EVALUABLE,
    SIGNALS,
    TOOL_CORRECTNESS,
    merged,
)
from otel_reliability.model.reading import MetricSpec, Reading
from otel_reliability.model.run import AgentKey, Run, ToolCall
from otel_reliability.windows.rows import signals_of

DERIVABLE: Final = (LOOP_DETECTION, TOOL_CORRECTNESS)


class Trace(NamedTuple):
    """A run as its session keeps it, sorted by start: the score of each of `SIGNALS` or None, and which are derived."""

    start_ns: int
    run_id: str
    end_ns: int
    confidence: float | None
    loop_detection: float | None
    tool_correctness: float | None
    coherence: float | None
    derived: tuple[str, ...]


def trace_of(run: Run, derive: bool) -> tuple[Trace, tuple[str, ...]]:
    """Return the signals of a run, and the names of the evaluations refused because their score was not from 0 to 1.

    With `derive`, loop_detection and tool_correctness are derived from the tool calls where no evaluation gives them.
    """
    evaluated = {name: score for name, score in signals_of(run.evaluations) if name in SIGNALS}
    found = {name: score for name, score in evaluated.items() if 0.0 <= score <= 1.0}
    refused = tuple([name for name in evaluated if name not in found])
    derived = derived_signals(run.tool_calls) if derive else None
    added = () if derived is None else tuple([name for name in DERIVABLE if name not in found])
    if derived is not None:
        found = {**dict(zip(DERIVABLE, derived, strict=True)), **found}
    confidence, loops, tools, coherence = [found.get(name) for name in SIGNALS]
    return Trace(run.start_ns, run.run_id, run.end_ns, confidence, loops, tools, coherence, added), refused


def scores_in(trace: Trace) -> Four:
    """Return the score of each of `SIGNALS`."""
    return trace[3:7]


def signals_by_name(trace: Trace) -> dict[str, float]:
    """Return the signals that a trace has.

    >>> signals_by_name(Trace(0, "run", 1, 0.5, None, None, 1.0, ()))
    {'confidence': 0.5, 'coherence': 1.0}
    """
    return {name: score for name, score in zip(SIGNALS, scores_in(trace), strict=True) if score is not None}


def derived_signals(calls: Sequence[ToolCall] | None) -> tuple[float, float] | None:
    """Return loop_detection = 1 − share of repeats and tool_correctness = 1 − share of failed calls; None without calls.

    >>> derived_signals(())
    """
    if not calls:
        return None
    repeats, failed = sum([call.repeat for call in calls]), sum([not call.ok for call in calls])
    return 1.0 - repeats / len(calls), 1.0 - failed / len(calls)


SessionKey: TypeAlias = tuple[AgentKey, str]
"""Agent and id of a session."""

MAX_CACHED_TRACES: Final = 8
"""Traces of a session up to which its scores are cached by their signals: without evaluations they are often the same."""
MAX_CACHED: Final = 1_024


class ClosedSession(NamedTuple):
    """The part of a closed session that gauges need; sorted by the end of its last run.

    `evaluated_reliability` and `evaluated_consistency` count the traces evaluated for a score, `derived` names the signals
    that no evaluation gave.
    """

    end_ns: int
    session_id: str
    reliability: float | None
    consistency: float | None
    evaluated_reliability: int
    evaluated_consistency: int
    derived: tuple[str, ...]


class SessionScores(NamedTuple):
    """A session with its scores; None: it had no signal for that score, so there is no reading of it.

    `runs` are its run ids in the order of their starts, `derived` the signals that no evaluation gave.
    """

    key: AgentKey
    session_id: str
    runs: tuple[str, ...]
    start_ns: int
    end_ns: int
    reliability: SessionScore | None
    consistency: SessionScore | None
    derived: tuple[str, ...]


def closed_session(session_id: str, traces: Sequence[Trace], weights: tuple[float, ...]) -> ClosedSession:
    """Return the scores of a session of at least one trace. `weights`: of the signals, in their order."""
    scores = tuple([scores_in(trace) for trace in traces])
    found = (_cached_scores if len(scores) <= MAX_CACHED_TRACES else _scores)(scores, weights)
    return ClosedSession(max([trace.end_ns for trace in traces]), session_id, *found, _derived(traces))


def scores_of(key: AgentKey, session_id: str, traces: Sequence[Trace], weights: Mapping[str, float]) -> SessionScores:
    """Return the same with all that explains it; `traces` are sorted."""
    ids = tuple([trace.run_id for trace in traces])
    found = {trace.run_id: signals_by_name(trace) for trace in traces}
    signals = {run_id: signals for run_id, signals in found.items() if signals}
    return SessionScores(
        key,
        session_id,
        runs=ids,
        start_ns=traces[0].start_ns,
        end_ns=max([trace.end_ns for trace in traces]),
        reliability=_evaluable(agent_reliability(ids, signals, weights)),
        consistency=_evaluable(agent_consistency(ids, signals, weights)),
        derived=_derived(traces),
    )


def closed_of(scores: SessionScores) -> ClosedSession:
    """Return what gauges need of a scored session."""
    reliability, consistency = scores.reliability, scores.consistency
    return ClosedSession(
        scores.end_ns,
        scores.session_id,
        None if reliability is None else reliability.score,
        None if consistency is None else consistency.score,
        0 if reliability is None else reliability.metadata["traces_evaluated"],
        0 if consistency is None else consistency.metadata["traces_evaluated"],
        scores.derived,
    )


def weights_of(settings: Mapping[str, float]) -> tuple[float, ...]:
    """Return the weights of the signals, in their order.

    >>> weights_of({"coherence": 0.5})
    (1.0, 1.0, 0.8, 0.5)
    """
    weights = merged(settings)
    return tuple([weights[name] for name in SIGNALS])


def _scores(scores: tuple[Four, ...], weights: tuple[float, ...]) -> tuple[float | None, float | None, int, int]:
    reliability, evaluated_reliability = bare_reliability(scores, weights)
    consistency, evaluated_consistency = bare_consistency(scores, weights)
    return reliability, consistency, evaluated_reliability, evaluated_consistency


_cached_scores = lru_cache(MAX_CACHED)(_scores)


def _evaluable(score: SessionScore) -> SessionScore | None:
    """Return None for the 1.0 that the reference gives to a session without signals: that is no data."""
    return None if score.reason in {NO_TRACES, NOT_EVALUABLE} else score


def _derived(traces: Iterable[Trace]) -> tuple[str, ...]:
    return tuple(sorted({name for trace in traces for name in trace.derived}))


LAST: Final = 100
"""Closed sessions of an agent that its gauges are about."""


class RecentSessions:
    """The sessions of one agent whose last run ended latest, at most 100, by (end, session id): not by when they closed."""

    __slots__ = ("_closed", "_sorted")

    def __init__(self, closed: Iterable[ClosedSession] = ()) -> None:
        self._closed: dict[str, ClosedSession] = {}
        self._sorted: list[ClosedSession] = []
        for session in closed:
            self.add(session)

    def __len__(self) -> int:
        return len(self._sorted)

    def sessions(self) -> list[ClosedSession]:
        """Return the sessions, the earliest first."""
        return self._sorted[:]

    def add(self, closed: ClosedSession) -> None:
        """Add a session that was scored, for the first time or again."""
        self.drop(closed.session_id)
        self._closed[closed.session_id] = closed
        insort(self._sorted, closed)
        if len(self._sorted) > LAST:
            del self._closed[self._sorted.pop(0).session_id]

    def put(self, scores: SessionScores) -> None:
        """Add a session with its explained scores."""
        self.add(closed_of(scores))

    def drop(self, session_id: str) -> None:
        """Remove a session whose runs turned out to be another's; do nothing without such a session."""
        closed = self._closed.pop(session_id, None)
        if closed is not None:
            self._sorted.remove(closed)

    def readings(self) -> dict[str, Reading]:
        """Return the gauges by name; the runs of a reading are the traces that were evaluated."""
        scored = [one for one in self._sorted if one.reliability is not None]
        evaluated = [one for one in self._sorted if one.consistency is not None]
        found = (
            *mean_and_worst(
                [one.reliability for one in scored if one.reliability is not None],
                sum([one.evaluated_reliability for one in scored]),
                _note(scored),
            ),
            *mean_and_worst(
                [one.consistency for one in evaluated if one.consistency is not None],
                sum([one.evaluated_consistency for one in evaluated]),
                _note(evaluated),
            ),
        )
        return {spec.name: reading for spec, reading in zip(SPECS, found, strict=True)}

    def series(self) -> list[tuple[MetricSpec, tuple[tuple[str, str], ...], Reading]]:
        """Return what is emitted: (spec, attributes, reading) of all that has a value."""
        found = self.readings()
        return [(spec, (), found[spec.name]) for spec in SPECS if found[spec.name].value is not None]


def _note(sessions: list[ClosedSession]) -> str:
    derived = sorted({name for closed in sessions for name in closed.derived})
    number = f"last {len(sessions)} sessions"
    return f"{number}; derived: {', '.join(derived)}" if derived else number
