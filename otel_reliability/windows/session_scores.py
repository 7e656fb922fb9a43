"""The scores of a session, bare and explained, and the gauges of an agent's last sessions."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Final, NamedTuple

from otel_reliability.metrics.sessions import (
    SPECS,
    BareScore,
    SessionScore,
    agent_consistency,
    agent_reliability,
    bare_consistency,
    bare_reliability,
)
from otel_reliability.model.reading import NO_DATA, MetricSpec, Reading
from otel_reliability.model.run import AgentKey
from otel_reliability.windows.session_runs import SessionRun


class BareSession(NamedTuple):
    """A session that was scored, as gauges need it: without what explains its scores. `derived` are
    the signals that no evaluation gave.

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


def bare_session(
    session_id: str, runs: Sequence[SessionRun], weights: tuple[float, ...]
) -> BareSession:
    """Return a session of at least one run with its scores. `weights`: of the signals, in their
    order.
    """
    scores = [run.scores for run in runs]
    return BareSession(
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
        self._sessions: list[BareSession] = []

    def __len__(self) -> int:
        return len(self._sessions)

    def sessions(self) -> list[BareSession]:
        """Return the sessions, the earliest first."""
        return self._sessions[:]

    def add(self, session: BareSession) -> None:
        """Add a session that was scored, for the first time or again."""
        self.drop(session.session_id)
        insort(self._sessions, session)
        del self._sessions[:-LAST]

    def add_explained(self, scores: SessionScores) -> None:
        """Add a session with its explained scores."""
        self.add(
            BareSession(
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
