"""The last closed sessions of one agent, and the gauges of them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from otel_reliability.metrics.sessions.gauges import SPECS, mean_and_worst
from otel_reliability.model.reading import MetricSpec, Reading
from otel_reliability.windows.compiled import NATIVE
from otel_reliability.windows.session import Closed, SessionScores, closed_of

LAST: Final = 100
_ID: Final = 1
_RELIABILITY: Final = 2
_CONSISTENCY: Final = 3
_RISKY: Final = 4
_SURE: Final = 5
_DERIVED: Final = 6


class Latest(Protocol):
    """As `PlainLatest`."""

    def __len__(self) -> int: ...
    def order(self) -> list[Closed]: ...
    def add(self, closed: Closed) -> None: ...
    def drop(self, session_id: str) -> None: ...


class PlainLatest:
    """So many sessions whose last run ended latest, each once."""

    __slots__ = ("_by_id", "_most", "_order")

    def __init__(self, most: int) -> None:
        self._by_id: dict[str, Closed] = {}
        self._order: list[Closed] = []
        self._most = most

    def __len__(self) -> int:
        return len(self._order)

    def order(self) -> list[Closed]:
        """The sessions, the earliest first."""
        return self._order[:]

    def add(self, closed: Closed) -> None:
        """A session, in the place of what it was before."""
        order, session_id = self._order, closed[_ID]
        if session_id in self._by_id:
            self.drop(session_id)
        if order and closed < order[-1]:
            insort(order, closed)
        else:
            order.append(closed)
        self._by_id[session_id] = closed
        if len(order) > self._most:
            del self._by_id[order.pop(0)[_ID]]

    def drop(self, session_id: str) -> None:
        """None of this id."""
        closed = self._by_id.pop(session_id, None)
        if closed is not None:
            del self._order[bisect_left(self._order, closed)]


new_latest: Final[Callable[[int], Latest]] = PlainLatest if NATIVE is None else NATIVE.Latest


class RecentSessions:
    """The sessions of one agent whose last run ended latest, at most 100, by (end, session id): not by when they closed."""

    __slots__ = ("_latest", "add", "drop")

    def __init__(self) -> None:
        self._keep(new_latest(LAST))

    def _keep(self, latest: Latest) -> None:
        self._latest = latest
        self.add = latest.add
        """A session was scored, for the first time or again."""
        self.drop = latest.drop
        """A session is none any more: its runs turned out to be another's."""

    def __reduce__(self) -> tuple[Any, tuple[()], list[Closed]]:
        """The same whether it is compiled or not."""
        return RecentSessions, (), self._latest.order()

    def __setstate__(self, order: list[Closed]) -> None:
        for closed in order:
            self.add(closed)

    def __len__(self) -> int:
        return len(self._latest)

    def ids(self) -> list[str]:
        """The ids of the sessions, the earliest first."""
        return [closed[_ID] for closed in self._latest.order()]

    def put(self, scores: SessionScores) -> None:
        """A session was scored, for the first time or again."""
        self.add(closed_of(scores))

    def readings(self) -> dict[str, Reading]:
        """The gauges by name; the runs of a reading are the traces that were evaluated."""
        order = self._latest.order()
        scored = [closed for closed in order if closed[_RELIABILITY] is not None]
        judged = [closed for closed in order if closed[_CONSISTENCY] is not None]
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
