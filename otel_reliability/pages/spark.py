"""Small curves: where the points of a line stand in a picture of so many units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from otel_reliability.pages.course import Point
from otel_reliability.report.text import MINUS, seconds

WIDTH: Final = 120.0
HEIGHT: Final = 32.0
MARGIN: Final = 3.0
LEAST_RANGE: Final = 20.0
"""Points of score that a curve spans at least: else the noise of a steady agent would fill the picture."""
STEADY: Final = 2.5
"""Points of change below which a curve goes neither up nor down."""


class Curve(NamedTuple):
    """A line of score over time. `line` and `area` are SVG paths, `end` is where the line ends, `told` says it in words.

    `change` is the last score less the first; `direction` is up, down or level.
    """

    line: str
    area: str
    end: tuple[float, float]
    change: float
    direction: str
    sign: str
    told: str


def curve(points: Sequence[Point]) -> Curve | None:
    """The curve of a course; None for fewer than two points.

    >>> found = curve([Point(0, 90.0), Point(60 * 10**9, 72.0)])
    >>> found.sign, found.direction, found.told
    ('−18', 'down', 'from 90 to 72 in 1 min')
    """
    if len(points) < 2:
        return None
    first, last = points[0], points[-1]
    places = _places(points)
    line = "M" + "L".join(f"{x:g} {y:g}" for x, y in places)
    change = last.score - first.score
    return Curve(
        line=line,
        area=f"{line}V{HEIGHT:g}H{places[0][0]:g}Z",
        end=places[-1],
        change=change,
        direction="level" if abs(change) < STEADY else "up" if change > 0 else "down",
        sign=_signed(change),
        told=f"from {first.score:.0f} to {last.score:.0f} in {seconds((last.ns - first.ns) / 1e9)}",
    )


def _places(points: Sequence[Point]) -> list[tuple[float, float]]:
    scores = [point.score for point in points]
    middle, span = (max(scores) + min(scores)) / 2, max(max(scores) - min(scores), LEAST_RANGE)
    top = min(100.0, middle + span / 2)
    start, length = points[0].ns, max(1, points[-1].ns - points[0].ns)
    room, height = WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN
    return [
        (round(MARGIN + room * (one.ns - start) / length, 1), round(MARGIN + height * (top - one.score) / span, 1))
        for one in points
    ]


def _signed(change: float) -> str:
    if round(change) == 0:
        return "±0"
    return f"{'+' if change > 0 else MINUS}{abs(change):.0f}"
