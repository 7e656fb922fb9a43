"""Panels as SVG, drawn from answers: not Grafana's own drawing, but the same numbers in the same place and colours."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any

from tests.dashboards.drawing import (
    BOTTOM,
    COLOURS,
    GRID,
    LEFT,
    PALETTE,
    RIGHT,
    SCHEMES,
    TOP,
    Axes,
    Curve,
    Frame,
    box,
    colour_at,
    hours,
    shape,
    shown,
    svg,
    text,
)


def curves(frame: Frame, panel: Mapping[str, Any], found: Sequence[Curve], marks: Sequence[float]) -> str:
    """Curves, stacked layers or bars, with thresholds as dashed lines."""
    defaults = panel["fieldConfig"]["defaults"]
    custom, unit = defaults.get("custom", {}), defaults.get("unit", "short")
    stacked, bars = custom.get("stacking", {}).get("mode") == "normal", custom.get("drawStyle") == "bars"
    axes = _axes(frame, defaults, found, stacked=stacked)
    parts = axes.drawn(unit)
    floor: dict[float, float] = {}
    for at, curve in enumerate(found):
        colour = _colour(panel, curve.name, at)
        line = [
            (when, floor.get(when, 0.0) + value if stacked else value, floor.get(when, 0.0))
            for when, value in curve.samples
        ]
        parts += _bars(axes, line, colour, frame) if bars else _line(axes, line, colour, filled=stacked)
        if stacked:
            floor.update({when: top for when, top, _ in line})
    if custom.get("thresholdsStyle", {}).get("mode") == "dashed":
        parts += _limits(axes, defaults)
    return svg(frame, [*parts, *_marked(axes, marks)])


def _marked(axes: Axes, marks: Sequence[float]) -> Iterable[str]:
    for x in map(axes.x, marks):
        low, colour = axes.frame.height - BOTTOM, COLOURS["purple"]
        yield shape("line", x1=x, x2=x, y1=TOP, y2=low, stroke=colour, stroke_dasharray="4 3")


def _axes(frame: Frame, defaults: Mapping[str, Any], found: Sequence[Curve], *, stacked: bool) -> Axes:
    heights: dict[float, float] = {}
    for curve in found:
        for when, value in curve.samples:
            heights[when] = heights.get(when, 0.0) + value if stacked else max(heights.get(when, value), value)
    low = defaults.get("min", 0)
    high = (
        defaults.get("max")
        or max([value for value in heights.values() if math.isfinite(value)], default=1.0) * 1.08
        or 1.0
    )
    return Axes(frame, low, high)


def _colour(panel: Mapping[str, Any], name: str, at: int) -> str:
    return _fixed(panel, name) or PALETTE[at % len(PALETTE)]


def _fixed(panel: Mapping[str, Any], name: str) -> str:
    for override in panel["fieldConfig"]["overrides"]:
        if _matches(override["matcher"], name):
            colour = override["properties"][0]["value"].get("fixedColor", "text")
            return COLOURS.get(colour) or colour
    return ""


def _matches(matcher: Mapping[str, str], name: str) -> bool:
    wanted = matcher["options"]
    return re.search(wanted.strip("/"), name) is not None if matcher["id"] == "byRegexp" else wanted == name


Line = Sequence[tuple[float, float, float]]


def _line(axes: Axes, line: Line, colour: str, *, filled: bool) -> list[str]:
    pieces = list(_pieces(line, axes.frame))
    parts: list[str] = []
    for piece in pieces:
        way = " ".join(f"{axes.x(when):.1f},{axes.y(top):.1f}" for when, top, _ in piece)
        if filled:
            back = " ".join(f"{axes.x(when):.1f},{axes.y(low):.1f}" for when, _, low in reversed(piece))
            parts.append(shape("polygon", points=f"{way} {back}", fill=colour, fill_opacity=0.6))
        if len(piece) == 1:
            parts.append(shape("circle", cx=axes.x(piece[0][0]), cy=axes.y(piece[0][1]), r=2, fill=colour))
        parts.append(shape("polyline", points=way, fill="none", stroke=colour, stroke_width=1.5))
    return parts


def _pieces(line: Line, frame: Frame) -> Iterable[Line]:
    """A curve without evidence for a while has a gap."""
    gap, piece = (frame.end - frame.start) / 40, list[tuple[float, float, float]]()
    for sample in line:
        if piece and (sample[0] - piece[-1][0] > gap or math.isnan(sample[1])):
            yield piece
            piece = []
        if not math.isnan(sample[1]):
            piece.append(sample)
    if piece:
        yield piece


def _bars(axes: Axes, line: Line, colour: str, frame: Frame) -> list[str]:
    wide = max(1.5, (frame.width - LEFT - RIGHT) / 160)
    return [
        box(axes.x(when) - wide / 2, axes.y(top), wide, axes.y(low) - axes.y(top), colour, 0.85)
        for when, top, low in line
        if top > low
    ]


def _limits(axes: Axes, defaults: Mapping[str, Any]) -> Iterable[str]:
    for step in defaults["thresholds"]["steps"]:
        if step["value"] is not None and step["value"] <= axes.high:
            y, colour = axes.y(step["value"]), COLOURS[step["color"]]
            yield shape("line", x1=LEFT, x2=axes.frame.width - RIGHT, y1=y, y2=y, stroke=colour, stroke_dasharray="8 5")


def legend(panel: Mapping[str, Any], found: Sequence[Curve]) -> str:
    """The names of the curves, each beside its colour."""
    return "".join(
        f'<span><i style="background:{_colour(panel, curve.name, at)}"></i>{escape(curve.name)}</span>'
        for at, curve in enumerate(found[:24])
    )


def heat(frame: Frame, panel: Mapping[str, Any], found: Sequence[Curve]) -> str:
    """A histogram over time: each row a bucket, lighter where more came."""
    rows = sorted(found, key=lambda curve: float(curve.labels["le"].replace("+Inf", "inf")))
    edges = [float(row.labels["le"].replace("+Inf", "inf")) for row in rows]
    below: dict[float, float] = {}
    counts: list[dict[float, float]] = []
    for row in rows:
        told = dict(row.samples)
        counts.append({when: max(0.0, value - below.get(when, 0.0)) for when, value in told.items()})
        below = told
    kept = [at for at, edge in enumerate(edges) if math.isfinite(edge)]
    most = max((value for at in kept for value in counts[at].values()), default=1.0) or 1.0
    axes = Axes(frame, 0, len(kept))
    unit = panel["options"]["yAxis"].get("unit", "short")
    scheme = SCHEMES[panel["options"]["color"]["scheme"]]
    times = sorted({when for row in rows for when, _ in row.samples})
    wide = (axes.x(times[1]) - axes.x(times[0])) if len(times) > 1 else 4
    parts = list(hours(axes))
    for place, at in enumerate(kept):
        if place % 4 == 3:
            parts.append(text(LEFT - 5, axes.y(place + 1) + 4, shown(edges[at], unit, 0), size=10, anchor="end"))
        for when, value in counts[at].items():
            if value > 0:
                share = math.sqrt(value / most)
                tint = ",".join(f"{round(low + (high - low) * share)}" for low, high in zip(*scheme, strict=True))
                top, low = axes.y(place + 1), axes.y(place)
                parts.append(box(axes.x(when) - wide, top, wide - 0.5, low - top - 0.5, f"rgb({tint})"))
    return svg(frame, parts)


def calendar(frame: Frame, panel: Mapping[str, Any], found: Sequence[Curve]) -> str:
    """A row a series, coloured by value."""
    steps, left = panel["fieldConfig"]["defaults"]["thresholds"]["steps"], 150
    row = (frame.height - BOTTOM - TOP) / max(1, len(found))
    room = frame.width - left - RIGHT
    parts: list[str] = []
    for at, curve in enumerate(sorted(found, key=lambda one: one.name)):
        y = TOP + at * row
        parts.append(text(left - 8, y + row / 2 + 4, curve.name.strip()[:24], size=11, anchor="end"))
        for when, value in curve.samples:
            x = left + (when - frame.start) / (frame.end - frame.start) * room
            parts.append(box(x, y + 1, room / 150 + 0.4, row - 3, colour_at(value, steps), 0.85))
    return svg(frame, parts)


def numbers(frame: Frame, panel: Mapping[str, Any], found: Sequence[Curve], name: Callable[[float, str], str]) -> str:
    """The latest value of each series, large, with a line behind it."""
    defaults, options = panel["fieldConfig"]["defaults"], panel["options"]
    steps, unit = defaults["thresholds"]["steps"], defaults.get("unit", "short")
    wide, parts = frame.width / max(1, len(found)), list[str]()
    for at, curve in enumerate(found):
        value = curve.samples[-1][1]
        colour, middle = _fixed(panel, curve.name) or colour_at(value, steps), wide * (at + 0.5)
        words = curve.name if options["textMode"] == "name" else name(value, unit)
        if options["graphMode"] == "area" and len(curve.samples) > 2:
            parts += _spark(curve, colour, frame, wide * at, wide)
        both = options["textMode"] == "value_and_name" or (len(found) > 1 and options["textMode"] == "auto")
        size = min(34, int(1.5 * wide / max(3, len(words))))
        parts.append(
            text(
                middle,
                frame.height / 2 + (size / 3 if not both else 4),
                words,
                size=size,
                fill=colour,
                anchor="middle",
                weight=600,
            )
        )
        if both:
            parts.append(
                text(middle, frame.height / 2 + 22, curve.name.strip()[: int(wide / 6)], size=11, anchor="middle")
            )
    return svg(frame, parts)


def _spark(curve: Curve, colour: str, frame: Frame, left: float, wide: float) -> list[str]:
    values = [value for _, value in curve.samples if math.isfinite(value)]
    low, high = min(values, default=0.0), max(values, default=1.0)
    tall = frame.height * 0.35
    way = " ".join(
        f"{left + (when - frame.start) / (frame.end - frame.start) * wide:.1f},"
        f"{frame.height - (value - low) / ((high - low) or 1) * tall - 2:.1f}"
        for when, value in curve.samples
        if math.isfinite(value)
    )
    return [shape("polyline", points=way, fill="none", stroke=colour, stroke_opacity=0.5)]


def dial(frame: Frame, panel: Mapping[str, Any], found: Sequence[Curve]) -> str:
    """A share as an arc."""
    defaults = panel["fieldConfig"]["defaults"]
    value = found[0].samples[-1][1]
    colour = colour_at(value, defaults["thresholds"]["steps"])
    x, y, radius = frame.width / 2, frame.height * 0.78, min(frame.width / 2 - 14, frame.height * 0.68)
    parts = [_arc(x, y, radius, 1.0, GRID), _arc(x, y, radius, max(0.004, min(1.0, value)), colour)]
    return svg(
        frame,
        [*parts, text(x, y - 6, shown(value, "percentunit", 0), size=24, fill=colour, anchor="middle", weight=600)],
    )


def _arc(x: float, y: float, radius: float, share: float, colour: str) -> str:
    angle = math.pi * (1 - share)
    to_x, to_y = x + radius * math.cos(angle), y - radius * math.sin(angle)
    way = f"M {x - radius:.1f} {y:.1f} A {radius:.1f} {radius:.1f} 0 0 1 {to_x:.1f} {to_y:.1f}"
    return shape("path", d=way, fill="none", stroke=colour, stroke_width=15)


def across(frame: Frame, panel: Mapping[str, Any], found: Sequence[Curve]) -> str:
    """A bar a series."""
    defaults = panel["fieldConfig"]["defaults"]
    steps, unit, most = defaults["thresholds"]["steps"], defaults.get("unit", "short"), defaults.get("max")
    values = [curve.samples[-1][1] for curve in found]
    most = most or max(values, default=1.0) or 1.0
    left, row = min(170, frame.width * 0.4), min(44.0, frame.height / max(1, len(found)))
    parts: list[str] = []
    for at, (curve, value) in enumerate(zip(found, values, strict=True)):
        y, room = at * row + 4, frame.width - left - 60
        colour = colour_at(value, steps)
        parts += [
            text(left - 8, y + row / 2 + 2, curve.name.strip(), size=12, anchor="end"),
            box(left, y, room, row - 10, GRID),
            box(left, y, max(1.0, min(1.0, value / most) * room), row - 10, colour, 0.8),
            text(frame.width - 54, y + row / 2 + 2, shown(value, unit), size=12, fill=colour, weight=600),
        ]
    return svg(frame, parts)
