"""The last closed sessions of one agent, and the gauges of them."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Final, NamedTuple

from otel_reliability.metrics.sessions.gauges import SPECS, mean_and_worst
from otel_reliability.model.reading import MetricSpec, Reading
from otel_reliability.windows.session import SessionScores

LAST: Final = 100


class Closed(NamedTuple):
    """What a gauge needs of a closed session. Compares by when its last run ended."""

    end_ns: int
    session_id: str
    reliability: float | None
    consistency: float | None
    reliability_runs: int
    consistency_runs: int
    derived: tuple[str, ...]


class RecentSessions:
    """The sessions of one agent whose last run ended latest, at most 100, by (end, session id): not by when they closed."""

    __slots__ = ("_by_id", "_order")

    def __init__(self) -> None:
        self._by_id: dict[str, Closed] = {}
        self._order: list[Closed] = []

    def __len__(self) -> int:
        return len(self._order)

    def ids(self) -> list[str]:
        """The ids of the sessions, the earliest first."""
        return [closed.session_id for closed in self._order]

    def put(self, scores: SessionScores) -> None:
        """A session was scored, for the first time or again."""
        self.drop(scores.session_id)
        closed = _closed(scores)
        insort(self._order, closed)
        self._by_id[closed.session_id] = closed
        if len(self._order) > LAST:
            del self._by_id[self._order.pop(0).session_id]

    def drop(self, session_id: str) -> None:
        """A session is none any more: its runs turned out to be another's."""
        closed = self._by_id.pop(session_id, None)
        if closed is not None:
            del self._order[bisect_left(self._order, closed)]

    def readings(self) -> dict[str, Reading]:
        """The gauges by name; the runs of a reading are the traces that were evaluated."""
        scored = [closed for closed in self._order if closed.reliability is not None]
        judged = [closed for closed in self._order if closed.consistency is not None]
        reliability = mean_and_worst(
            [closed.reliability for closed in scored if closed.reliability is not None],
            sum(closed.reliability_runs for closed in scored),
            _note(scored),
        )
        consistency = mean_and_worst(
            [closed.consistency for closed in judged if closed.consistency is not None],
            sum(closed.consistency_runs for closed in judged),
            _note(judged),
        )
        return {spec.name: reading for spec, reading in zip(SPECS, (*reliability, *consistency), strict=True)}

    def series(self) -> list[tuple[MetricSpec, tuple[tuple[str, str], ...], Reading]]:
        """What is emitted: (spec, attributes, reading) of all that has a value."""
        found = self.readings()
        return [(spec, (), found[spec.name]) for spec in SPECS if found[spec.name].value is not None]


def _closed(scores: SessionScores) -> Closed:
    reliability, consistency = scores.reliability, scores.consistency
    return Closed(
        scores.end_ns,
        scores.session_id,
        None if reliability is None else reliability.score,
        None if consistency is None else consistency.score,
        0 if reliability is None else reliability.metadata["traces_evaluated"],
        0 if consistency is None else consistency.metadata["traces_evaluated"],
        scores.derived,
    )


def _note(sessions: list[Closed]) -> str:
    derived = sorted({name for closed in sessions for name in closed.derived})
    told = f"last {len(sessions)} sessions"
    return f"{told}; derived: {', '.join(derived)}" if derived else told
