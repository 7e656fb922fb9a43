"""The score of an agent over time, and the share of its runs that fail: few points, for as long as
there is something to see.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import ceil
from typing import Any, Final, NamedTuple

from otel_reliability.config import Settings
from otel_reliability.metrics.uncertainty import SampleNumbers
from otel_reliability.model.row import Row
from otel_reliability.report.view import End, ScorePoint

MAX_POINTS: Final = 60
"""Points of a history: as many as a small chart can show."""
FEW_POINTS: Final = 20
"""Points below which a history is short."""
MAX_AGE_NS: Final = 7 * 86_400 * 10**9
"""Age of a point from which it is dropped: a week."""
MIN_RUNS: Final = 10
"""Runs that a window holds before its score is a point: the score of fewer varies too much to show
a trend.
"""
TRAILING_RUNS: Final = 100
"""Runs that each point of a recording's history covers, like the default window of a service."""
MAX_ROWS: Final = 10_000
"""Runs of a recording whose history is computed, the newest."""

STEPS: Final = "▁▂▃▄▅▆▇█"
MIN_RANGE: Final = 20.0
"""Points of score that a chart spans at least: otherwise the noise of a steady agent would fill it.
"""


class History:
    """At most `MAX_POINTS` points. When they are full, every other one is dropped, and then only
    every other run adds one.

    >>> history = History()
    >>> for run in range(200):
    ...     if history.is_due():
    ...         history.add(ScorePoint(run, 80.0))
    >>> len(history.points), history.points[-1].ns - history.points[-2].ns
    (50, 4)
    """

    __slots__ = ("_ns", "_scores", "_stride", "_wait", "acknowledged")

    def __init__(self) -> None:
        self._ns, self._scores = array("q"), array("d")
        self._stride = self._wait = 1
        self.acknowledged = 0
        """When the last acknowledged change was detected (ns); 0 without one."""

    @property
    def points(self) -> list[ScorePoint]:
        return list(map(ScorePoint, self._ns, self._scores))

    def data(self) -> list[Any]:
        """Return the history as plain data."""
        return [self._stride, self._wait, list(self._ns), list(self._scores), self.acknowledged]

    @classmethod
    def of(cls, data: Sequence[Any]) -> History:
        """Return the history that `data` described."""
        found = cls()
        found._stride, found._wait, ns, scores, found.acknowledged = data
        found._ns, found._scores = array("q", ns), array("d", scores)
        return found

    def is_short(self) -> bool:
        """Return whether it has fewer points than show a curve."""
        return len(self._ns) < FEW_POINTS

    def is_due(self) -> bool:
        """Count a run that closed, and return whether it adds a point."""
        self._wait -= 1
        return self._wait <= 0

    def add(self, point: ScorePoint) -> None:
        """Add the score of now. A point that is no newer than the last replaces it."""
        if self._ns and point.ns <= self._ns[-1]:
            self._scores[-1] = point.score
        else:
            self._ns.append(point.ns)
            self._scores.append(point.score)
            self._thin(point.ns)
        self._wait = self._stride

    def _thin(self, now_ns: int) -> None:
        old = bisect_left(self._ns, now_ns - MAX_AGE_NS)
        if old:
            self._keep(slice(old, None))
            if len(self._ns) < MAX_POINTS // 3:
                self._stride = 1
        if len(self._ns) > MAX_POINTS:
            self._keep(slice(1 - len(self._ns) % 2, None, 2))  # the newest stays
            self._stride *= 2

    def _keep(self, kept: slice) -> None:
        self._ns = self._ns[kept]
        self._scores = self._scores[kept]


def recorded_history(
    rows: Sequence[Row], settings: Settings, trailing: int = TRAILING_RUNS
) -> tuple[ScorePoint, ...]:
    """Return the score of the last hundred runs through a recording, as at most `MAX_POINTS`
    points.

    >>> from otel_reliability.testing import row
    >>> rows = [
    ...     row("a b" if number < 30 else "b a"[: 1 + number % 3], pressure=0.1)
    ...     for number in range(60)
    ... ]
    >>> history = recorded_history(rows, Settings(), trailing=20)
    >>> len(history) <= MAX_POINTS, history[0].score > history[-1].score
    (True, True)
    """
    numbers = SampleNumbers(settings, {"score"})
    latest = [row for row in rows[-MAX_ROWS:] if row.undisturbed]
    wanted = {MIN_RUNS - 1 + at for at in _spread(len(latest) - MIN_RUNS + 1, MAX_POINTS)}
    points: list[ScorePoint] = []
    for at, row in enumerate(latest):
        numbers.add([row])
        if at >= trailing:
            numbers.evict([latest[at - trailing]])
        score = numbers.reading("score").value if at in wanted else None
        if score is not None:
            points.append(ScorePoint(row.end_ns, score))
    return tuple(points)


def _spread(number: int, most: int) -> frozenset[int]:
    """Return so many indexes of so many, evenly, the last one among them.

    >>> sorted(_spread(10, 4)), sorted(_spread(3, 4))
    ([1, 4, 7, 9], [0, 1, 2])
    """
    steps: Iterable[int] = range(
        1, min(number, most) + 1
    )  # none, where there is nothing to spread over
    return frozenset(round(step * number / min(number, most)) - 1 for step in steps)


# --- Failures over time ---------------------------------------------------------------------------


class FailedShare(NamedTuple):
    """Consecutive runs: when the newest of them ended, how many failed, and of how many."""

    end_ns: int
    failed: int
    runs: int

    @property
    def share(self) -> float:
        return self.failed / self.runs


def failed_shares(ends: Sequence[End], most: int = MAX_POINTS) -> list[FailedShare]:
    """Return the runs in at most so many parts, alike in size, oldest first; nothing where none
    failed.

    >>> ends = [End("run", at, at, at + 1, at >= 3, None, None) for at in range(6)]
    >>> [one.share for one in failed_shares(ends)], [one.share for one in failed_shares(ends, 2)]
    ([0.0, 0.0, 0.0, 1.0, 1.0, 1.0], [0.0, 1.0])
    """
    if not any(one.failed for one in ends):
        return []
    parts = min(most, len(ends))
    edges = [round(at * len(ends) / parts) for at in range(parts + 1)]
    sides = [ends[first:last] for first, last in pairwise(edges)]
    return [FailedShare(part[-1].end_ns, sum(x.failed for x in part), len(part)) for part in sides]


def bars(shares: Sequence[FailedShare]) -> str:
    """Return the shares as characters: a space where none failed, a full block where all did.

    >>> bars([FailedShare(0, failed, 10) for failed in (0, 1, 5, 10)])
    ' ▁▄█'
    """
    return "".join(" " if not one.failed else STEPS[ceil(one.share * 8) - 1] for one in shares)


# --- As a picture ---------------------------------------------------------------------------------


def sparkline(scores: Sequence[float], width: int = 16) -> str:
    """Return a chart of characters, oldest score first; empty for fewer than two points.

    >>> sparkline([90, 84, 80, 70, 60]), sparkline([100, 99, 100]), sparkline([80])
    ('█▇▆▃▁', '███', '')
    >>> len(sparkline(range(60)))
    16
    """
    if len(scores) < 2:
        return ""
    last = len(scores) - 1
    shown = (
        scores if last < width else [scores[round(at * last / (width - 1))] for at in range(width)]
    )
    heights = (min(len(STEPS) - 1, int((1 - depth) * len(STEPS) + 1e-9)) for depth in depths(shown))
    return "".join(STEPS[height] for height in heights)


def depths(scores: Sequence[float]) -> list[float]:
    """Return how far below the top of a chart each score lies, as a share of its height.

    >>> depths([90, 80, 70]), depths([100, 98])
    ([0.0, 0.5, 1.0], [0.0, 0.1])
    """
    span = max(max(scores) - min(scores), MIN_RANGE)
    top = min(100.0, (max(scores) + min(scores) + span) / 2)
    return [(top - score) / span for score in scores]
