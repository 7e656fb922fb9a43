"""One session: the traces of a conversation, and what they score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from otel_reliability.metrics.sessions import SessionScore, agent_consistency, agent_reliability
from otel_reliability.metrics.sessions.signals import NO_TRACES, NOT_EVALUABLE
from otel_reliability.model.run import AgentKey
from otel_reliability.windows.signals import Trace

SessionKey: TypeAlias = tuple[AgentKey, str]
"""Whose conversation, and its id."""


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


class Session:
    """The traces of one conversation. `touched` is when, by the engine's clock, something last happened in it."""

    __slots__ = ("touched", "traces")

    def __init__(self, touched: float) -> None:
        self.touched = touched
        self.traces: dict[str, Trace] = {}

    def scores(self, key: SessionKey, weights: Mapping[str, float]) -> SessionScores:
        """What its traces, of which there is at least one, score now."""
        traces = sorted(self.traces.values())
        ids = tuple(trace.run_id for trace in traces)
        signals = {trace.run_id: trace.signals for trace in traces if trace.signals}
        return SessionScores(
            *key,
            runs=ids,
            start_ns=traces[0].start_ns,
            end_ns=max(trace.end_ns for trace in traces),
            reliability=_evaluable(agent_reliability(ids, signals, weights)),
            consistency=_evaluable(agent_consistency(ids, signals, weights)),
            derived=_names(traces),
        )


def _evaluable(score: SessionScore) -> SessionScore | None:
    """The reference gives 1.0 to a session it knows nothing of; to us that is no evidence."""
    return None if score.reason in {NO_TRACES, NOT_EVALUABLE} else score


def _names(traces: Iterable[Trace]) -> tuple[str, ...]:
    return tuple(sorted({name for trace in traces for name in trace.derived}))
