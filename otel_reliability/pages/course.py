"""How an agent's score went: few points, for as long as there is something to see."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from otel_reliability.config import Settings
from otel_reliability.engine import Engine
from otel_reliability.metrics.stability.score import PENALTIES
from otel_reliability.metrics.uncertainty import Numbers
from otel_reliability.model.event import RunChange, RunEvent
from otel_reliability.model.row import Row
from otel_reliability.model.run import AgentKey
from otel_reliability.windows.fleet import Fleet

MOST_POINTS: Final = 60
"""Points of a course: as many as a small picture can show."""
SPAN_NS: Final = 7 * 86_400 * 10**9
"""A week: what is older is let go of."""
WARM_UP: Final = 10
"""Runs that a window holds at least before its score is a point: that of fewer swings too far to show a trend."""
BURST: Final = 500
"""Points that may be added at once, over all agents: each costs as much as the reading of a score."""
RATE: Final = 20.0
"""Points a second that may be added for ever: they cost a hundredth of a processor. An agent whose turn passes gets the next."""
TRAILING: Final = 100
"""Runs that each point of a recording's course looks back on, as the usual window of a service does."""
MOST_ROWS: Final = 10_000
"""Runs of a recording whose course is drawn, the newest."""

_OF_SCORE: Final = frozenset({"score", "window.runs", *PENALTIES})


class Point(NamedTuple):
    """The score when the newest run had ended at `ns`."""

    ns: int
    score: float


class Course:
    """At most `MOST_POINTS` points. When they are full, every other one goes, and from then on only every other run adds one.

    >>> course = Course()
    >>> for run in range(200):
    ...     if course.due():
    ...         course.add(Point(run, 80.0))
    >>> len(course.points), course.points[-1].ns - course.points[-2].ns
    (50, 4)
    """

    __slots__ = ("_ns", "_scores", "_stride", "_wait")

    def __init__(self) -> None:
        self._ns, self._scores = array("q"), array("d")
        self._stride = self._wait = 1

    @property
    def points(self) -> list[Point]:
        """The oldest first."""
        return list(map(Point, self._ns, self._scores))

    def due(self) -> bool:
        """A run closed: whether it is this one's turn to add a point."""
        self._wait -= 1
        return self._wait <= 0

    def add(self, point: Point) -> None:
        """The score now. One that is no newer than the last takes its place."""
        if self._ns and point.ns <= self._ns[-1]:
            self._scores[-1] = point.score
        else:
            self._ns.append(point.ns)
            self._scores.append(point.score)
            self._thin(point.ns)
        self._wait = self._stride

    def _thin(self, now_ns: int) -> None:
        old = bisect_left(self._ns, now_ns - SPAN_NS)
        if old:
            self._keep(slice(old, None))
            if len(self._ns) < MOST_POINTS // 3:
                self._stride = 1
        if len(self._ns) > MOST_POINTS:
            self._keep(slice(1 - len(self._ns) % 2, None, 2))  # the newest stays
            self._stride *= 2

    def _keep(self, places: slice) -> None:
        self._ns, self._scores = self._ns[places], self._scores[places]


class Courses:
    """The course of every agent that an engine knows, since this began to listen. An agent that expires takes its own along.

    It listens within the engine's turn, so whoever reads a course must do so within a turn too. Nothing is kept over a restart.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._courses: dict[AgentKey, Course] = {}
        self._left, self._asked = float(BURST), engine.now()
        engine.observers.append(self._see)

    def __len__(self) -> int:
        return len(self._courses)

    def of(self, key: AgentKey) -> tuple[Point, ...]:
        """The points of an agent, the oldest first."""
        course = self._courses.get(key)
        return () if course is None else tuple(course.points)

    def _see(self, event: RunEvent, now: float) -> None:
        if event.change is not RunChange.CLOSED:
            return
        key = event.run.key
        course = self._courses.get(key)
        if course is not None and not course.due():
            return
        state = self._engine.fleet.agent(key)
        if state is not None and state.first_window.runs >= WARM_UP and self._may(now):
            self._mark(key, course or self._begin(key))

    def _may(self, now: float) -> bool:
        """Whether one more point can be afforded now."""
        self._left = min(float(BURST), self._left + RATE * max(0.0, now - self._asked))
        self._asked = now
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def _begin(self, key: AgentKey) -> Course:
        fleet = self._engine.fleet
        if len(self._courses) >= len(fleet):
            self._courses = {known: course for known, course in self._courses.items() if fleet.agent(known) is not None}
        return self._courses.setdefault(key, Course())

    def _mark(self, key: AgentKey, course: Course) -> None:
        point = point_now(self._engine.fleet, key)
        if point is not None:
            course.add(point)


def point_now(fleet: Fleet, key: AgentKey) -> Point | None:
    """The score of an agent's first window as it is now; None where there is none."""
    state = fleet.agent(key)
    if state is None:
        return None
    score, end_ns = state.first_window.reading("score").value, state.last_run_ns
    return None if score is None or end_ns is None else Point(end_ns, score)


def recorded_course(rows: Sequence[Row], settings: Settings, trailing: int = TRAILING) -> tuple[Point, ...]:
    """How the score of the last hundred runs went through a recording, at most `MOST_POINTS` points.

    >>> from otel_reliability.metrics.examples import row
    >>> rows = [row("a b" if number < 30 else "b a"[: 1 + number % 3], pressure=0.1) for number in range(60)]
    >>> course = recorded_course(rows, Settings(), trailing=20)
    >>> len(course) <= MOST_POINTS, course[0].score > course[-1].score
    (True, True)
    """
    numbers = Numbers(settings, _OF_SCORE)
    latest = [row for row in rows[-MOST_ROWS:] if row.baseline]
    wanted = {WARM_UP - 1 + at for at in _spread(len(latest) - WARM_UP + 1, MOST_POINTS)}
    points: list[Point] = []
    for at, row in enumerate(latest):
        numbers.add([row])
        if at >= trailing:
            numbers.evict([latest[at - trailing]])
        score = numbers.read()["score"].value if at in wanted else None
        if score is not None:
            points.append(Point(row.end_ns, score))
    return tuple(points)


def _spread(number: int, most: int) -> frozenset[int]:
    """So many places of so many, evenly, the last one among them.

    >>> sorted(_spread(10, 4)), sorted(_spread(3, 4))
    ([1, 4, 7, 9], [0, 1, 2])
    """
    steps: Iterable[int] = range(1, min(number, most) + 1)  # none, where there is nothing to spread over
    return frozenset(round(step * number / min(number, most)) - 1 for step in steps)
