"""What pictures of panels are drawn with: numbers in their unit, colours by value, axes, and elements of SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final, NamedTuple

COLOURS: Final = {
    "green": "#73bf69", "yellow": "#f2cc0c", "orange": "#ff9830", "red": "#f2495c", "blue": "#5794f2", "purple": "#b877d9",
    "gray": "#8e8e8e", "text": "#ccccdc",
}  # fmt: skip
PALETTE: Final = (
    "#73bf69",
    "#f2cc0c",
    "#5794f2",
    "#ff9830",
    "#b877d9",
    "#f2495c",
    "#37872d",
    "#8ab8ff",
    "#e0b400",
    "#ca95e5",
)
SCHEMES: Final = {
    "Blues": ((30, 41, 59), (87, 148, 242)), "Oranges": ((48, 36, 26), (255, 152, 48)),
    "Purples": ((40, 30, 52), (184, 119, 217)), "Greens": ((24, 44, 30), (115, 191, 105)),
}  # fmt: skip
DIM: Final = "#9fa7b3"
GRID: Final = "#2c3235"
LEFT, RIGHT, TOP, BOTTOM = 56, 10, 8, 20


class Curve(NamedTuple):
    """A series of an answer: its name, its samples (time, value), its labels."""

    name: str
    samples: Sequence[tuple[float, float]]
    labels: Mapping[str, str]


class Frame(NamedTuple):
    """The room of a panel in pixels, and the time that it shows."""

    width: int
    height: int
    start: float
    end: float


def shown(value: float, unit: str, decimals: int | None = None) -> str:
    """A number as its panel's unit writes it.

    >>> shown(0.123, "percentunit"), shown(1536, "bytes"), shown(2.0, "short"), shown(math.nan, "short")
    ('12.3%', '1.5 KiB', '2', '')
    """
    if math.isnan(value):
        return ""
    match unit:
        case "percentunit":
            return f"{value * 100:.{1 if decimals is None else decimals}f}%".replace(".0%", "%")
        case "percent":
            return f"{value:.0f}%"
        case "bytes":
            return _bytes(value)
        case "s":
            return f"{value:.3g} s" if value < 60 else f"{value / 60:.3g} min"
        case _:
            return _plain(value, decimals)


def _bytes(value: float) -> str:
    for name in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or name == "GiB":
            return f"{value:.3g} {name}"
        value /= 1024
    return ""


def _plain(value: float, decimals: int | None) -> str:
    if decimals is not None:
        return f"{value:.{decimals}f}"
    for size, suffix in ((1e9, " Bil"), (1e6, " Mil"), (1e4, " K")):
        if abs(value) >= size:
            return f"{value / (1e3 if suffix == ' K' else size):.3g}{suffix}"
    return f"{value:.3g}"


def colour_at(value: float, steps: Sequence[Mapping[str, Any]]) -> str:
    """The colour of the last threshold that a value reaches."""
    found = "text"
    for step in steps:
        if step["value"] is None or value >= step["value"]:
            found = step["color"]
    return COLOURS.get(found, found)


def svg(frame: Frame, parts: Iterable[str]) -> str:
    """A picture of these."""
    return f'<svg width="{frame.width}" height="{frame.height}">{"".join(parts)}</svg>'


def text(
    x: float, y: float, words: str, *, size: int = 11, fill: str = DIM, anchor: str = "start", weight: int = 400
) -> str:
    """Words at a place."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}" text-anchor="{anchor}" font-weight="{weight}">'
        f"{escape(words)}</text>"
    )


def shape(kind: str, **settings: float | str) -> str:
    """An element of SVG; `_` in a name stands for `-`.

    >>> shape("rect", x=1.25, fill="red", fill_opacity=0.5)
    '<rect x="1.2" fill="red" fill-opacity="0.5"/>'
    """
    told = (
        f'{name.replace("_", "-")}="{value if isinstance(value, str) else format(value, ".1f")}"'
        for name, value in settings.items()
    )
    return f"<{kind} {' '.join(told)}/>"


def box(x: float, y: float, width: float, height: float, fill: str, opacity: float = 1.0) -> str:
    """A filled rectangle."""
    return shape("rect", x=x, y=y, width=width, height=max(0.0, height), fill=fill, fill_opacity=opacity)


class Axes(NamedTuple):
    """Where times and values come to stand."""

    frame: Frame
    low: float
    high: float

    def x(self, at: float) -> float:
        """A time's place."""
        share = (at - self.frame.start) / (self.frame.end - self.frame.start)
        return LEFT + share * (self.frame.width - LEFT - RIGHT)

    def y(self, value: float) -> float:
        """A value's place."""
        share = (value - self.low) / ((self.high - self.low) or 1)
        return self.frame.height - BOTTOM - share * (self.frame.height - TOP - BOTTOM)

    def drawn(self, unit: str) -> list[str]:
        """Lines and numbers of the grid."""
        return [*_values(self, unit), *hours(self)]


def _values(axes: Axes, unit: str) -> Iterable[str]:
    for value in _ticks(axes.low, axes.high):
        y = axes.y(value)
        yield shape("line", x1=LEFT, x2=axes.frame.width - RIGHT, y1=y, y2=y, stroke=GRID)
        yield text(LEFT - 5, y + 4, shown(value, unit), size=10, anchor="end")


def _ticks(low: float, high: float) -> Iterable[float]:
    """Round values within a range: steps of 1, 2, 2.5 or 5 times a power of ten, four or so.

    >>> list(_ticks(0, 18.1))
    [0, 5, 10, 15]
    """
    rough = ((high - low) or 1) / 4
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * nice for nice in (1, 2, 2.5, 5, 10) if power * nice >= rough)
    first = math.ceil(low / step)
    return (at * step for at in range(first, math.floor(high / step + 1e-9) + 1))


def hours(axes: Axes) -> Iterable[str]:
    """Times along the bottom."""
    frame = axes.frame
    parts = max(2, frame.width // 160)
    for step in range(parts + 1):
        at = frame.start + (frame.end - frame.start) * step / parts
        minutes = round((at - frame.end) / 60)
        words = "now" if minutes == 0 else f"−{-minutes // 60}:{-minutes % 60:02d} h"
        anchor = ("start", "middle", "end")[(step > 0) + (step == parts)]
        yield text(axes.x(at), frame.height - 6, words, size=10, anchor=anchor)
