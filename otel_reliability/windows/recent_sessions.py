"""The last closed sessions of one agent, and the gauges of them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import Final

from otel_reliability.metrics.sessions.gauges import SPECS, mean_and_worst
from otel_reliability.model.reading import MetricSpec, Reading
from otel_reliability.windows.session import Closed, SessionScores, closed_of

LAST: Final = 100
TOGETHER: Final = 32
"""So many are put in their places together, or before anybody looks: most are gone again before that."""
_ID: Final = 1
_RELIABILITY: Final = 2
_CONSISTENCY: Final = 3
_RISKY: Final = 4
_SURE: Final = 5
_DERIVED: Final = 6


class RecentSessions:
    """The sessions of one agent whose last run ended latest, at most 100, by (end, session id): not by when they closed."""

    __slots__ = ("_by_id", "_new", "_sorted")

    def __init__(self) -> None:
        self._by_id: dict[str, Closed] = {}
        self._sorted: list[Closed] = []
        self._new: list[Closed] = []

    def __len__(self) -> int:
        return len(self._order)

    @property
    def _order(self) -> list[Closed]:
        if self._new:
            self._place()
        return self._sorted

    def ids(self) -> list[str]:
        """The ids of the sessions, the earliest first."""
        return [closed[_ID] for closed in self._order]

    def put(self, scores: SessionScores) -> None:
        """A session was scored, for the first time or again."""
        self.add(closed_of(scores))

    def add(self, closed: Closed) -> None:
        """The same by what is needed here."""
        self._new.append(closed)
        if len(self._new) >= TOGETHER:
            self._place()

    def _place(self) -> None:
        """Put those in their places that are new: at once where no session is told of twice."""
        new = {closed[_ID]: closed for closed in self._new}
        if len(new) == len(self._new) and self._by_id.keys().isdisjoint(new):
            order = sorted([*self._sorted, *self._new])[-LAST:]
            by_id = {closed[_ID]: closed for closed in order}
            self._sorted, self._by_id, self._new = order, by_id, []
        while self._new:
            self._insert(self._new[0])
            del self._new[0]

    def _insert(self, closed: Closed) -> None:
        order, session_id = self._sorted, closed[_ID]
        if session_id in self._by_id:
            self._remove(session_id)
        insort(order, closed)
        self._by_id[session_id] = closed
        if len(order) > LAST:
            del self._by_id[order.pop(0)[_ID]]

    def drop(self, session_id: str) -> None:
        """A session is none any more: its runs turned out to be another's."""
        self._place()
        self._remove(session_id)

    def _remove(self, session_id: str) -> None:
        closed = self._by_id.pop(session_id, None)
        if closed is not None:
            del self._sorted[bisect_left(self._sorted, closed)]

    def readings(self) -> dict[str, Reading]:
        """The gauges by name; the runs of a reading are the traces that were evaluated."""
        scored = [closed for closed in self._order if closed[_RELIABILITY] is not None]
        judged = [closed for closed in self._order if closed[_CONSISTENCY] is not None]
        found = (
            *mean_and_worst(
                _those([one[_RELIABILITY] for one in scored]), sum([one[_RISKY] for one in scored]), _note(scored)
            ),
            *mean_and_worst(
                _those([one[_CONSISTENCY] for one in judged]), sum([one[_SURE] for one in judged]), _note(judged)
            ),
        )
        return {spec.name: reading for spec, reading in zip(SPECS, found, strict=True)}

    def series(self) -> list[tuple[MetricSpec, tuple[tuple[str, str], ...], Reading]]:
        """What is emitted: (spec, attributes, reading) of all that has a value."""
        found = self.readings()
        return [(spec, (), found[spec.name]) for spec in SPECS if found[spec.name].value is not None]


def _those(scores: Iterable[float | None]) -> list[float]:
    return [score for score in scores if score is not None]


def _note(sessions: list[Closed]) -> str:
    derived = sorted({name for closed in sessions for name in closed[_DERIVED]})
    told = f"last {len(sessions)} sessions"
    return f"{told}; derived: {', '.join(derived)}" if derived else told
