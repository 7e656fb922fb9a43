"""Small pictures in SVG: points, and curves. Readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

Point: TypeAlias = tuple[float, float]

WIDTH: Final = 640
HEIGHT: Final = 360
LEFT: Final = 60
BOTTOM: Final = 50
COLOURS: Final = ("#2f7ed8", "#d8752f", "#3a9a4f", "#8e5bb5", "#777777")


class Axis(NamedTuple):
    """What an axis says, and from where to where it goes."""

    title: str
    low: float
    high: float

    def place(self, value: float, length: float) -> float:
        """How far along a line of this length a value stands."""
        return (value - self.low) / (self.high - self.low) * length


Drawn: TypeAlias = Callable[[list[Point], str], str]


def picture(groups: Mapping[str, Sequence[Point]], x: Axis, y: Axis, drawn: Drawn) -> str:
    """Several groups of points, drawn as `circles` or as a `curve` each."""
    parts = [_frame(x, y)]
    for at, (name, points) in enumerate(groups.items()):
        colour = COLOURS[at % len(COLOURS)]
        parts.append(drawn([_place(point, x, y) for point in points], colour))
        parts.append(
            f'<rect x="{LEFT + 14}" y="{16 + 20 * at}" width="12" height="12" fill="{colour}"/>'
        )
        parts.append(f'<text x="{LEFT + 32}" y="{26 + 20 * at}">{name}</text>')
    style = "text{font:13px sans-serif;fill:#777}line{stroke:#999}"
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}">'
        f"<style>{style}</style>\n{body}\n</svg>\n"
    )


def _place(point: Point, x: Axis, y: Axis) -> Point:
    across = x.place(point[0], WIDTH - LEFT - 20)
    up = y.place(point[1], HEIGHT - BOTTOM - 15)
    return (round(LEFT + across, 1), round(HEIGHT - BOTTOM - up, 1))


def _frame(x: Axis, y: Axis) -> str:
    base = HEIGHT - BOTTOM
    middle = (LEFT + WIDTH) / 2
    texts = [
        f'<line x1="{LEFT}" y1="{base}" x2="{WIDTH - 20}" y2="{base}"/>',
        f'<line x1="{LEFT}" y1="15" x2="{LEFT}" y2="{base}"/>',
        f'<text x="{middle}" y="{HEIGHT - 10}" text-anchor="middle">{x.title}</text>',
        (
            f'<text x="16" y="{base / 2}" text-anchor="middle" transform="rotate(-90 16 '
            f'{base / 2})">{y.title}</text>'
        ),
    ]
    for quarter in range(5):
        across = x.low + (x.high - x.low) * quarter / 4
        up = y.low + (y.high - y.low) * quarter / 4
        at_x, at_y = _place((across, up), x, y)
        texts.append(f'<text x="{at_x}" y="{base + 18}" text-anchor="middle">{across:g}</text>')
        texts.append(f'<text x="{LEFT - 8}" y="{at_y + 4}" text-anchor="end">{up:g}</text>')
    return "\n".join(texts)


def circles(points: list[Point], colour: str) -> str:
    return "\n".join(
        f'<circle cx="{x}" cy="{y}" r="5" fill="{colour}" fill-opacity="0.6"/>' for x, y in points
    )


def curve(points: list[Point], colour: str) -> str:
    corners = " ".join(f"{x},{y}" for x, y in points)
    return f'<polyline points="{corners}" fill="none" stroke="{colour}" stroke-width="2"/>'
