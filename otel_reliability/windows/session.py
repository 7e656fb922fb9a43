"""One session: the traces of a conversation, and what they score.

A session is a plain tuple: when, by the engine's clock, something last happened in it, then its traces; beyond `FEW` of them
a dictionary of them by their ids. There are tens of thousands of sessions, for half an hour and more each: as objects they
would be looked at whenever garbage is looked for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from otel_reliability.metrics.sessions import SessionScore, agent_consistency, agent_reliability
from otel_reliability.metrics.sessions.bare import Four, bare_consistency, bare_reliability
from otel_reliability.metrics.sessions.signals import NO_TRACES, NOT_EVALUABLE, SIGNALS, merged
from otel_reliability.model.run import AgentKey
from otel_reliability.windows.signals import DERIVED, END, RUN_ID, START, Trace, scores_in, signals_by_name

SessionKey: TypeAlias = tuple[AgentKey, str]
"""Whose conversation, and its id."""
Session: TypeAlias = tuple[Any, ...]
"""(touched, trace, trace ...), or (touched, {run id: trace})."""
Closed: TypeAlias = tuple[int, str, float | None, float | None, int, int, tuple[str, ...]]
"""What gauges need of a closed session: when its last run ended, its id, reliability and consistency, the runs evaluated for
each, and the signals that were derived. Compares by when its last run ended.
"""

FEW: Final = 8
MOST_KNOWN: Final = 1_024
"""Scores that are remembered by the signals of a short session: where nobody judges, they are the same again and again."""


class SessionScores(NamedTuple):
    """A session, scored. None: it had no signal for that score, so there is no reading of it.

    `runs` are its run ids by when they began, `derived` the signals that no evaluation gave.
    """

    key: AgentKey
    session_id: str
    runs: tuple[str, ...]
    start_ns: int
    end_ns: int
    reliability: SessionScore | None
    consistency: SessionScore | None
    derived: tuple[str, ...]


# --- Traces in and out ------------------------------------------------------------------------------------------------


def count(session: Session) -> int:
    """How many traces it has."""
    return len(session[1]) if _is_long(session) else len(session) - 1


def with_trace(session: Session, trace: Trace, touched: float) -> Session:
    """The session and this trace, in the place of one of the same run."""
    run_id, held = trace[RUN_ID], session[1:]
    if _is_long(session):
        session[1][run_id] = trace
        return (touched, session[1])
    if run_id in [one[RUN_ID] for one in held]:
        return (touched, *[trace if one[RUN_ID] == run_id else one for one in held])
    if len(held) < FEW:
        return (touched, *held, trace)
    return (touched, {one[RUN_ID]: one for one in (*held, trace)})


def without(session: Session, run_id: str) -> Session:
    """The session without the trace of a run, which it may have."""
    if _is_long(session):
        session[1].pop(run_id, None)
        return session
    return (session[0], *[trace for trace in session[1:] if trace[RUN_ID] != run_id])


def traces_in(session: Session) -> Collection[Trace]:
    """Its traces."""
    return session[1].values() if _is_long(session) else session[1:]


def traces_of(session: Session) -> list[Trace]:
    """Its traces, by when they began."""
    return sorted(traces_in(session))


def _is_long(session: Session) -> bool:
    return len(session) == 2 and type(session[1]) is dict


# --- Scores -----------------------------------------------------------------------------------------------------------


def bare_scores(session_id: str, traces: Sequence[Trace], weights: tuple[float, ...]) -> Closed:
    """What these traces of a session, at least one, score now. `weights`: of the signals, in their order."""
    scores = tuple([scores_in(trace) for trace in traces])
    reliability, consistency, risky, sure = (_known if len(scores) <= FEW else _both)(scores, weights)
    if len(traces) == 1:
        return (traces[0][END], session_id, reliability, consistency, risky, sure, traces[0][DERIVED])
    end_ns = max([trace[END] for trace in traces])
    return (end_ns, session_id, reliability, consistency, risky, sure, _names(traces))


def scores_of_one(scores: Four, weights: tuple[float, ...]) -> tuple[float | None, float | None, int, int]:
    """What a session of one trace scores: reliability, consistency, and the runs evaluated for each."""
    return _known((scores,), weights)


def _both(scores: tuple[Four, ...], weights: tuple[float, ...]) -> tuple[float | None, float | None, int, int]:
    reliability, risky = bare_reliability(scores, weights)
    consistency, sure = bare_consistency(scores, weights)
    return reliability, consistency, risky, sure


_known = lru_cache(MOST_KNOWN)(_both)


def scores_of(key: AgentKey, session_id: str, traces: Sequence[Trace], weights: Mapping[str, float]) -> SessionScores:
    """The same with all that explains it."""
    ids = tuple([trace[RUN_ID] for trace in traces])
    found = {trace[RUN_ID]: signals_by_name(trace) for trace in traces}
    signals = {run_id: signals for run_id, signals in found.items() if signals}
    return SessionScores(
        key,
        session_id,
        runs=ids,
        start_ns=traces[0][START],
        end_ns=max([trace[END] for trace in traces]),
        reliability=_evaluable(agent_reliability(ids, signals, weights)),
        consistency=_evaluable(agent_consistency(ids, signals, weights)),
        derived=_names(traces),
    )


def closed_of(scores: SessionScores) -> Closed:
    """What gauges need of it."""
    reliability, consistency = scores.reliability, scores.consistency
    return (
        scores.end_ns,
        scores.session_id,
        None if reliability is None else reliability.score,
        None if consistency is None else consistency.score,
        0 if reliability is None else reliability.metadata["traces_evaluated"],
        0 if consistency is None else consistency.metadata["traces_evaluated"],
        scores.derived,
    )


def weights_of(settings: Mapping[str, float]) -> tuple[float, ...]:
    """What the signals weigh, in their order.

    >>> weights_of({"coherence": 0.5})
    (1.0, 1.0, 0.8, 0.5)
    """
    weights = merged(settings)
    return tuple([weights[name] for name in SIGNALS])


def _evaluable(score: SessionScore) -> SessionScore | None:
    """The reference gives 1.0 to a session it knows nothing of; to us that is no evidence."""
    return None if score.reason in {NO_TRACES, NOT_EVALUABLE} else score


def _names(traces: Iterable[Trace]) -> tuple[str, ...]:
    found = {trace[DERIVED] for trace in traces}
    if len(found) == 1:
        return found.pop()
    return tuple(sorted({name for names in found for name in names}))
