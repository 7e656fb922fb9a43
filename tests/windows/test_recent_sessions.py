from __future__ import annotations

from typing import Any

from otel_reliability.metrics.sessions import SessionScore
from otel_reliability.model.run import AgentKey
from otel_reliability.windows.sessions import LAST, RecentSessions, SessionScores


def scored(
    number: int, reliability: float | None = 0.5, consistency: float | None = None, **facts: Any
) -> SessionScores:
    """The n-th session to end, of two runs."""
    metadata = {"traces_evaluated": 2}
    return SessionScores(
        AgentKey("", "shop", "", "support"),
        session_id=f"s{number}",
        runs=("a", "b"),
        start_ns=0,
        end_ns=number,
        reliability=None if reliability is None else SessionScore(reliability, "", metadata),
        consistency=None if consistency is None else SessionScore(consistency, "", metadata),
        **({"derived": ()} | facts),
    )


def recent(*sessions: SessionScores) -> RecentSessions:
    """An agent's recent sessions, scored in this order."""
    found = RecentSessions()
    for session in sessions:
        found.put(session)
    return found


def values(sessions: RecentSessions) -> dict[str, float | None]:
    """The gauges by name."""
    return {name: reading.value for name, reading in sessions.readings().items()}


def test_gauges_are_the_mean_and_the_worst() -> None:
    """Sessions without a score are left out of that score's gauges."""
    found = values(recent(scored(1, 1.0, 0.9), scored(2, 0.5), scored(3, None, 0.3)))

    assert found == {
        "mean_session_reliability": 0.75,
        "min_session_reliability": 0.5,
        "mean_session_consistency": 0.6,
        "min_session_consistency": 0.3,
    }


def test_no_session_gives_no_value() -> None:
    """Nothing is emitted of an agent without scored sessions."""
    assert set(values(recent()).values()) == {None}
    assert recent(scored(1, None)).series() == []


def test_readings_tell_what_stands_behind_them() -> None:
    """The evaluated runs, how many sessions, and the signals that were derived."""
    reading = recent(scored(1), scored(2, derived=("loop_detection",))).readings()["mean_session_reliability"]

    assert reading.runs == 4
    assert reading.note == "last 2 sessions; derived: loop_detection"


def test_only_the_last_sessions_count() -> None:
    """The last hundred by when their last run ended, in whatever order they closed."""
    sessions = [scored(number, 0.0 if number < 5 else 1.0) for number in range(LAST + 5)]

    assert values(recent(*reversed(sessions)))["mean_session_reliability"] == 1.0
    assert values(recent(*sessions))["mean_session_reliability"] == 1.0
    assert len(recent(*sessions)) == LAST


def test_a_session_scored_again_counts_once() -> None:
    """With its new score, in its new place."""
    found = recent(scored(1, 0.2), scored(2, 0.5), scored(1, 0.9)._replace(end_ns=3))

    assert [one.session_id for one in found.sessions()] == ["s2", "s1"]
    assert values(found)["min_session_reliability"] == 0.5
