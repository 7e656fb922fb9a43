"""Small SVG charts: the curve of a score over time, and the bars of token pressure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from otel_reliability.report.history import depths
from otel_reliability.report.text import MINUS, count, percent, seconds
from otel_reliability.report.view import ScorePoint

WIDTH: Final = 120.0
HEIGHT: Final = 32.0
MARGIN: Final = 3.0
MIN_CHANGE: Final = 2.5
"""Points of change below which a curve is level."""

MAX_BARS: Final = 60
MIN_BARS: Final = 24
"""Bars that a chart has space for at least: few runs should not look like walls."""
HIGH: Final = 0.8
"""Pressure above which answers are at risk of being cut."""
BAR_WIDTH: Final = 10


class Curve(NamedTuple):
    """A line of score over time. `line` and `area` are SVG paths, `end` is where the line ends,
    `summary` is the same in words.

    `change` is the last score less the first, with its sign; `direction` is up, down or level.
    """

    line: str
    area: str
    end: tuple[float, float]
    direction: str
    change: str
    summary: str


def curve(points: Sequence[ScorePoint]) -> Curve | None:
    """Return the curve of a history; None for fewer than two points.

    >>> found = curve([ScorePoint(0, 90.0), ScorePoint(60 * 10**9, 72.0)])
    >>> found.change, found.direction, found.summary
    ('−18', 'down', 'from 90 to 72 in 1 min')
    """
    if len(points) < 2:
        return None
    first = points[0]
    last = points[-1]
    length = max(1, last.ns - first.ns)
    width = WIDTH - 2 * MARGIN
    height = HEIGHT - 2 * MARGIN
    drawn = [
        (round(MARGIN + width * (one.ns - first.ns) / length, 1), round(MARGIN + height * depth, 1))
        for one, depth in zip(points, depths([point.score for point in points]), strict=True)
    ]
    line = "M" + "L".join(f"{x:g} {y:g}" for x, y in drawn)
    change = last.score - first.score
    return Curve(
        line=line,
        area=f"{line}V{HEIGHT:g}H{drawn[0][0]:g}Z",
        end=drawn[-1],
        direction="level" if abs(change) < MIN_CHANGE else "up" if change > 0 else "down",
        change="±0" if round(change) == 0 else f"{'+' if change > 0 else MINUS}{abs(change):.0f}",
        summary=(
            f"from {first.score:.0f} to {last.score:.0f} in {seconds((last.ns - first.ns) / 1e9)}"
        ),
    )


class PressureChart(NamedTuple):
    """The latest runs by id, each with the share of its context window that it filled, and the same
    in words.
    """

    runs: Mapping[str, float]
    width: float
    summary: str


def pressure_chart(pressures: Mapping[str, float]) -> PressureChart | None:
    """Return the chart of the latest runs that report how full the context was; None without any.

    >>> pressure_chart({"a": 0.5, "b": 0.9}).summary
    '2 runs: 70 % on average, 90 % at most; 1 of them above 80 %.'
    """
    latest = dict(list(pressures.items())[-MAX_BARS:])
    if not latest:
        return None
    values = latest.values()
    high = sum(value > HIGH for value in values)
    above = f"{high} of them above {percent(HIGH)}" if high else f"none above {percent(HIGH)}"
    mean = percent(sum(values) / len(values))
    most = percent(max(values))
    summary = f"{count(len(values), 'run')}: {mean} on average, {most} at most; {above}."
    return PressureChart(latest, BAR_WIDTH * max(len(latest), MIN_BARS), summary)
