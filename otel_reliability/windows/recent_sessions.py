"""The last closed sessions of one agent, and the gauges of them."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from typing import Final

from otel_reliability.metrics.sessions.gauges import SPECS, mean_and_worst
from otel_reliability.model.reading import MetricSpec, Reading
from otel_reliability.windows.session import ClosedSession, SessionScores, closed_of

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
