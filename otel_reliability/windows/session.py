"""The scores of one session, from the signals of its traces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.metrics.sessions import SessionScore, agent_consistency, agent_reliability
from otel_reliability.metrics.sessions.bare import Four, bare_consistency, bare_reliability
from otel_reliability.metrics.sessions.signals import NO_TRACES, NOT_EVALUABLE, SIGNALS, merged
from otel_reliability.model.run import AgentKey
from otel_reliability.windows.signals import Trace, scores_in, signals_by_name

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
