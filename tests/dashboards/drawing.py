"""Draws an evaluated dashboard as a page: not Grafana, but its layout, colours, units and legends."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any, Final

from tests.dashboards.evaluated import (
    Evaluated,
    Panel,
    Series,
    colour_of,
    rows_of,
    unit_of,
    word_of,
)

COLUMN: Final = 66
ROW: Final = 38
GAP: Final = 8
TITLE: Final = 32
THOUSANDS_FROM: Final = 10_000.0
"""Value from which a number is shown in thousands, as Grafana does."""
COLOURS: Final[Mapping[str, str]] = {
    "green": "#73BF69",
    "yellow": "#FADE2A",
    "orange": "#FF9830",
    "red": "#F2495C",
    "blue": "#5794F2",
    "purple": "#B877D9",
    "gray": "#808080",
    "text": "#ccccdc",
}
PALETTE: Final = ("#73BF69", "#F2CC0C", "#8AB8FF", "#FF780A", "#F2495C", "#5794F2", "#B877D9")
STYLE: Final = """
body{margin:0;background:#111217;color:#ccccdc;font:13px Roboto,Helvetica,Arial,sans-serif}
h1{font-size:15px;margin:0;padding:10px 16px}
main{position:relative;margin:0 8px}
section{position:absolute;background:#181b1f;border:1px solid #24272e;overflow:hidden}
h2{margin:0;font-size:14px;font-weight:500;height:32px;line-height:32px;padding:0 8px}
.row{position:absolute;font-size:16px;line-height:30px}
.stat{display:flex;height:calc(100% - 36px);align-items:center;justify-content:space-around}
.stat div{text-align:center}.stat b{display:block;font-weight:500}
table{border-collapse:collapse;width:100%;font-size:12px}
td,th{border:1px solid #24272e;padding:3px 5px;white-space:nowrap;text-align:left}
.empty{padding:20px;text-align:center}.legend span{margin:0 8px;font-size:11px}
"""


def draw(board: Evaluated, chromium: Path, picture: Path) -> None:
    """Write the page and its picture next to each other."""
    page = picture.with_suffix(".html")
    page.write_text(html_of(board), encoding="utf-8")
    height = 120 + ROW * max(_bottom(panel) for panel in board.made["panels"])
    subprocess.run(
        [
            chromium,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={picture.with_suffix('.profile')}",
            f"--window-size=1600,{height}",
            f"--screenshot={picture}",
            page.as_uri(),
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )


def _bottom(made: Mapping[str, Any]) -> int:
    place = made["gridPos"]
    return int(place["y"] + place["h"])


def html_of(board: Evaluated) -> str:
    """The page. Folded rows show their heading only."""
    answered = {panel.made["id"]: panel for panel in board.panels}
    parts = [
        (
            f'<div class=row style="left:0;top:{made["gridPos"]["y"] * ROW}px">'
            f"{'▸' if made['collapsed'] else '▾'} {escape(made['title'])}</div>"
        )
        if made["type"] == "row"
        else _panel(board, answered[made["id"]])
        for made in board.made["panels"]
    ]
    chosen = ", ".join(f"{name}: {value or '(none)'}" for name, value in board.chosen.items())
    head = f"{board.made['title']} · {_clock(board.begin)} to {_clock(board.end)} UTC · {chosen}"
    return (
        f"<!doctype html><meta charset=utf-8><style>{STYLE}</style>"
        f"<h1>{escape(head)} · drawn by the tests, not by Grafana</h1><main>{''.join(parts)}</main>"
    )


def _panel(board: Evaluated, panel: Panel) -> str:
    place = panel.made["gridPos"]
    width = place["w"] * COLUMN - GAP
    height = place["h"] * ROW - GAP
    at = f"left:{place['x'] * COLUMN}px;top:{place['y'] * ROW}px;width:{width}px;height:{height}px"
    drawn = {
        "stat": _stat,
        "bargauge": _bars,
        "gauge": _stat,
        "table": _table,
        "status-history": _calendar,
        "heatmap": _heat,
        "timeseries": _curves,
    }[panel.kind](board, panel, width, height - TITLE)
    if not panel.series:
        colour = COLOURS[colour_of(panel, "", None)] if panel.kind == "stat" else "#9a9aae"
        said = panel.made["fieldConfig"]["defaults"]["noValue"]
        drawn = f'<div class=empty style="color:{colour}">{escape(said)}</div>'
    return f'<section style="{at}"><h2>{escape(panel.title)}</h2>{drawn}</section>'


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M")


def _text(board: Evaluated, panel: Panel, name: str, value: float) -> str:
    word = word_of(panel, name, value)
    if word is not None:
        return word
    unit, decimals = unit_of(panel, name)
    if unit == "percentunit":
        return f"{100 * value:.{1 if decimals is None else decimals}f}%"
    if unit == "dateTimeFromNow":
        return f"{(board.end - value / 1000) / 60:.0f} minutes ago"
    if unit == "short" and abs(value) >= THOUSANDS_FROM:
        return f"{value / 1_000:,.4g} K"
    shown = f"{value:,.{decimals}f}" if decimals is not None else f"{value:,.4g}"
    return {"s": f"{shown} s", "currencyUSD": f"${shown}"}.get(unit, shown)


def _stat(board: Evaluated, panel: Panel, width: int, height: int) -> str:
    named = panel.made["options"].get("textMode") == "value_and_name"
    size = min(40, width // max(1, len(panel.series)) // 4)
    found = [
        f'<div style="color:{COLOURS[colour_of(panel, one.name, one.last)]}">'
        f"{escape(one.name) if named else ''}"
        f'<b style="font-size:{size}px">{_text(board, panel, one.name, one.last)}</b></div>'
        for one in panel.series
    ]
    return f"<div class=stat>{''.join(found)}</div>"


def _bars(board: Evaluated, panel: Panel, width: int, height: int) -> str:
    most = panel.made["fieldConfig"]["defaults"].get("max", 1)
    found = [
        f'<div style="padding:8px">{escape(one.name)} {one.last:.2f}<div style="height:16px;'
        f"width:{max(0.0, one.last / most) * 90:.0f}%;"
        f'background:{COLOURS[colour_of(panel, one.name, one.last)]}"></div></div>'
        for one in panel.series
    ]
    return "".join(found)


def _table(board: Evaluated, panel: Panel, width: int, height: int) -> str:
    rows = list(rows_of(panel))
    if not rows:
        return ""
    names = [name for name in rows[0] if any(row[name] is not None for row in rows)]

    def cell(name: str, value: Any) -> str:
        if value is None:
            return "<td></td>"
        if isinstance(value, str):
            return f"<td>{escape(value)}</td>"
        text = _text(board, panel, name, value)
        colour = COLOURS[colour_of(panel, name, value)]
        is_word = word_of(panel, name, value) is not None
        style = f"background:{colour};color:#111" if is_word else f"color:{colour}"
        return f'<td style="{style}">{text}</td>'

    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(cell(name, row[name]) for name in names)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


class _Plane:
    """Where times and values stand in a drawing."""

    def __init__(self, board: Evaluated, width: int, height: int, left: int = 50) -> None:
        self._board = board
        self.left = left
        self.right = width - 10
        self.bottom = height - 44

    def x(self, at: float) -> float:
        share = (at - self._board.begin) / (self._board.end - self._board.begin)
        return self.left + share * (self.right - self.left)

    def times(self) -> Iterator[str]:
        for part in range(5):
            at = self._board.begin + (part + 0.5) / 5 * (self._board.end - self._board.begin)
            yield _label(self.x(at), self.bottom + 14, _clock(at), "middle")

    def marks(self) -> Iterator[str]:
        colours = {one["name"]: one["iconColor"] for one in self._board.made["annotations"]["list"]}
        for name, found in self._board.marks.items():
            for one in found:
                for at, _ in one.points:
                    yield (
                        f'<line x1="{self.x(at):.1f}" x2="{self.x(at):.1f}" y1="4" '
                        f'y2="{self.bottom}" stroke="{COLOURS[colours[name]]}" '
                        'stroke-dasharray="4"/>'
                    )


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="#9a9aae" font-size="11" text-anchor="{anchor}">'
        f"{escape(text)}</text>"
    )


def _svg(width: int, height: int, parts: Sequence[str]) -> str:
    return f'<svg width="{width}" height="{height}">{"".join(parts)}</svg>'


def stacked(panel: Panel) -> list[list[tuple[float, float, float]]]:
    """The points of each series with the value at which it begins: 0, or where it is stacked, the
    sum of those below.
    """
    below: dict[float, float] = {}
    custom = panel.made["fieldConfig"]["defaults"]["custom"]
    is_stacked = custom.get("stacking", {}).get("mode") == "normal"
    found: list[list[tuple[float, float, float]]] = []
    for one in panel.series:
        line: list[tuple[float, float, float]] = []
        for at, value in one.points:
            low = below.get(at, 0.0) if is_stacked else 0.0
            below[at] = low + value
            line.append((at, low, low + value))
        found.append(line)
    return found


def _curves(board: Evaluated, panel: Panel, width: int, height: int) -> str:
    lines = stacked(panel)
    if not lines:
        return ""
    defaults = panel.made["fieldConfig"]["defaults"]
    most = defaults.get("max") or max(high for line in lines for *_, high in line) * 1.05 or 1.0
    plane = _Plane(board, width, height)

    def y(value: float) -> float:
        return 4 + (plane.bottom - 4) * (1 - max(0.0, min(1.0, value / most)))

    parts = [*plane.times()]
    parts += [
        _label(plane.left - 6, y(most * at / 4) + 4, _text(board, panel, "", most * at / 4), "end")
        for at in range(5)
    ]
    opacity = defaults["custom"].get("fillOpacity", 0) / 100
    legend: list[str] = []
    for number, (one, line) in enumerate(zip(panel.series, lines, strict=True)):
        colour = _series_colour(panel, one, number)
        for piece in _pieces(line, panel.answers[0].step):
            top = [f"{plane.x(at):.1f},{y(high):.1f}" for at, _, high in piece]
            low = [f"{plane.x(at):.1f},{y(low):.1f}" for at, low, _ in reversed(piece)]
            parts.append(
                f'<polygon points="{" ".join(top + low)}" fill="{colour}" '
                f'fill-opacity="{opacity}"/>'
                f'<polyline points="{" ".join(top)}" fill="none" stroke="{colour}"/>'
            )
        legend.append(f'<span style="color:{colour}">▬ {escape(one.name)}</span>')
    parts += plane.marks()
    return _svg(width, height - 24, parts) + f"<div class=legend>{''.join(legend)}</div>"


def _series_colour(panel: Panel, one: Series, number: int) -> str:
    for override in panel.made["fieldConfig"]["overrides"]:
        if override["matcher"]["options"] == one.name:
            return COLOURS[override["properties"][0]["value"]["fixedColor"]]
    return PALETTE[number % len(PALETTE)]


def _pieces(
    line: Sequence[tuple[float, float, float]], step: float
) -> Iterator[list[tuple[float, float, float]]]:
    """A line without its gaps."""
    piece: list[tuple[float, float, float]] = []
    for point in line:
        if piece and point[0] - piece[-1][0] > 1.5 * step:
            yield piece
            piece = []
        piece.append(point)
    yield piece


def _calendar(board: Evaluated, panel: Panel, width: int, height: int) -> str:
    if not panel.series:
        return ""
    plane = _Plane(board, width, height, left=210)
    tall = plane.bottom / len(panel.series)
    wide = max(1.0, plane.x(board.begin + panel.answers[0].step) - plane.left)
    parts = [*plane.times()]
    for row, one in enumerate(panel.series):
        parts.append(_label(plane.left - 6, (row + 0.7) * tall, one.name, "end"))
        parts += [
            f'<rect x="{plane.x(at) - wide / 2:.1f}" y="{row * tall + 1:.1f}" width="{wide:.1f}" '
            f'height="{tall - 2:.1f}" fill="{COLOURS[colour_of(panel, one.name, value)]}"/>'
            for at, value in one.points
        ]
    return _svg(width, height, parts)


def _heat(board: Evaluated, panel: Panel, width: int, height: int) -> str:
    buckets = sorted(panel.series, key=lambda one: float(one.labels["le"]))
    if not buckets:
        return ""
    plane = _Plane(board, width, height)
    tall = plane.bottom / len(buckets)
    wide = max(1.0, plane.x(board.begin + panel.answers[0].step) - plane.left)
    before: dict[float, float] = {}
    cells: list[tuple[float, int, float]] = []
    for row, one in enumerate(buckets):
        cells += [(at, row, value - before.get(at, 0.0)) for at, value in one.points]
        before = dict(one.points)
    most = max((value for *_, value in cells), default=0.0) or 1.0
    parts = [*plane.times()]
    parts += [
        f'<rect x="{plane.x(at) - wide:.1f}" y="{plane.bottom - (row + 1) * tall:.1f}" '
        f'width="{wide:.1f}" height="{tall:.1f}" fill="#8AB8FF" '
        f'fill-opacity="{(value / most) ** 0.5:.2f}"/>'
        for at, row, value in cells
        if value > 0
    ]
    parts += [
        _label(plane.left - 6, plane.bottom - row * tall - 2, one.labels["le"], "end")
        for row, one in enumerate(buckets)
        if row % 4 == 0
    ]
    return _svg(width, height, parts)
