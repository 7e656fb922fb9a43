"""Pictures of the dashboards: `python -m tests.dashboards.pictures` writes docs/images/dashboard-*.png.

The demo's fleet acts for some hours of a wound clock; what the service answers to a scrape each 100 seconds becomes Prometheus'
own blocks; every panel's questions are put to that Prometheus, and what it answers is drawn where the panel stands and
photographed in a browser. The drawing is ours, the numbers are those that Grafana would get. Single runs (exemplars) are not
drawn: blocks that were written afterwards do not hold them.
"""

from __future__ import annotations

import contextlib
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any, Final, NamedTuple

from otel_reliability.testing import traces_protobuf
from tests.dashboards import charts, drawing
from tests.dashboards.asking import ROOT, board, filled
from tests.dashboards.bookshop import Shop, stamped
from tests.dashboards.drawing import Curve, Frame
from tests.dashboards.stage import HOUR, JOB, SETTINGS, clock_at, from_scrapes, go_wrong
from tests.real.chromium.handle import Chromium
from tests.real.components import folder_of
from tests.real.prometheus.handle import Prometheuses, Promtool
from tests.real.prometheus.promql import PromQL
from tests.service.running import run_of, serving

HOURS: Final = 5
STEP: Final = 100
COLUMN, ROW, GAP, WIDTH = 58, 30, 8, 24 * 58
HEADING, LEGEND = 30, 20


class Picture(NamedTuple):
    """Of which dashboard, with what chosen, and which of its rows; all if none is named."""

    board: str
    chosen: Mapping[str, str] = {}
    rows: Sequence[str] = ()


def _of(agent: str, *rows: str) -> Picture:
    return Picture("agent", {"service": "bookshop", "agent": agent, "window": ""}, rows)


JUDGED: Final = ("Does it succeed, and every time?", "Dimensions of evaluation, where there is evidence", "Sessions")
PICTURES: Final[Mapping[str, Picture]] = {
    "fleet": Picture("fleet"),
    "agent": _of("importer"),
    "agent-changed": _of("triage", "Is it reliable?", "Why did the score fall?", "Has its behaviour changed?"),
    "agent-judged": _of("refunds", *JUDGED),
    "self": Picture("self"),
}
"""No one agent has evidence for everything."""
ABOUT: Final = (
    "Drawn from what a real Prometheus answered to this dashboard's own queries, over five hours of the demo's fleet. "
    "Grafana draws it in its own way."
)
STYLE: Final = """
body{margin:0;background:#111217;color:#ccccdc;font:13px Inter,system-ui,sans-serif}
h1{font-size:20px;margin:0;padding:14px 16px 2px}
h2{position:absolute;margin:0;font-size:15px;font-weight:500;padding:6px 4px}
p{margin:0;padding:0 16px 10px;color:#9fa7b3}
main{position:relative;margin:0 8px}
section{position:absolute;box-sizing:border-box;background:#181b1f;border:1px solid #24262b;border-radius:3px;overflow:hidden}
section>h3{font-size:13px;font-weight:500;margin:0;padding:6px 8px 2px;height:20px;white-space:nowrap;overflow:hidden}
.legend{height:18px;overflow:hidden;padding:0 8px;font-size:11px;color:#9fa7b3;white-space:nowrap}
.legend span{margin-right:12px}
.legend i{display:inline-block;width:10px;height:3px;margin-right:4px;vertical-align:middle}
table{border-collapse:collapse;width:100%;font-size:12px}
th,td{padding:5px 8px;border-bottom:1px solid #24262b;white-space:nowrap}
th{color:#6e9fff;font-weight:500;text-align:left}
.none{color:#9fa7b3;text-align:center;padding-top:18px}
svg{display:block;font-family:Inter,system-ui,sans-serif}
"""


class Shown(NamedTuple):
    """Which Prometheus, from when to when, and with which variables."""

    ask: PromQL
    start: float
    end: float
    chosen: Mapping[str, str]

    def answer(self, expr: str, *, instant: bool, legend: str) -> list[Curve]:
        """What Prometheus says, with names as the panel makes them."""
        told = filled(expr, f"{4 * STEP}s", f"{HOURS}h", **self.chosen)
        if instant:
            found = [[sample] for sample in self.ask.query(told, at=self.end)]
        else:
            found = [list(samples) for samples in self.ask.span(told, self.start, self.end, STEP)]
        return [
            Curve(named(samples[0].labels, legend), [(one.at, one.value) for one in samples], samples[0].labels)
            for samples in found
        ]


def named(labels: Mapping[str, str], legend: str) -> str:
    """A series' name by its panel's template.

    >>> named({"k": "2"}, "pass^{{k}} {{service_version}}")
    'pass^2'
    """
    if legend == "__auto":
        return " ".join(value for label, value in labels.items() if label != "__name__")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], ""), legend).strip()


def page(name: str, shown: Shown, rows: Sequence[str] = ()) -> str:
    """A dashboard as one page, or some rows of it."""
    made = board(name)
    marks = [
        curve.samples[0][0]
        for annotation in made["annotations"]["list"]
        for curve in shown.answer(annotation["expr"], instant=False, legend="")
    ]
    told = ", ".join(f"{variable}: {value}" for variable, value in shown.chosen.items() if value)
    panels = list(_kept(made["panels"], rows))
    parts = [_panel(panel, shown, marks) for panel in panels]
    tall = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels) * (ROW + GAP)
    return (
        f"<!doctype html><meta charset=utf-8><title>{escape(made['title'])}</title><style>{STYLE}</style>"
        f"<h1>{escape(made['title'])}{' — ' + escape(told) if told else ''}</h1><p>{ABOUT}</p>"
        f'<main style="height:{tall}px;width:{WIDTH}px">{"".join(parts)}</main>'
    )


def _kept(panels: Sequence[Mapping[str, Any]], rows: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """The panels below these headings, moved up over those that are left out."""
    up, above, keep = 0, 0, True
    for panel in panels:
        place = panel["gridPos"]
        if panel["type"] == "row":
            up += 0 if keep else place["y"] - above
            above, keep = place["y"], not rows or panel["title"] in rows
        if keep:
            yield {**panel, "gridPos": {**place, "y": place["y"] - up}}


def _panel(panel: Mapping[str, Any], shown: Shown, marks: Sequence[float]) -> str:
    place = panel["gridPos"]
    x, y = place["x"] * COLUMN, place["y"] * (ROW + GAP)
    wide, tall = place["w"] * COLUMN - GAP, place["h"] * (ROW + GAP) - GAP
    if panel["type"] == "row":
        return f'<h2 style="left:{x}px;top:{y}px">⌄ {escape(panel["title"])}</h2>'
    inner = _drawn(panel, shown, marks, Frame(wide - 2, tall - HEADING - 2, shown.start, shown.end))
    box = f"left:{x}px;top:{y}px;width:{wide}px;height:{tall}px"
    return f'<section style="{box}"><h3>{escape(panel["title"])}</h3>{inner}</section>'


def _drawn(panel: Mapping[str, Any], shown: Shown, marks: Sequence[float], frame: Frame) -> str:
    answers = [
        shown.answer(target["expr"], instant=target.get("instant", False), legend=target["legendFormat"])
        for target in panel["targets"]
    ]
    if panel["type"] == "table":
        return _table(panel, answers, shown.end)
    found = [curve for answer in answers for curve in answer]
    latest = [curve for curve in found if curve.samples[-1][0] >= shown.end - 5 * STEP]
    lower = frame._replace(height=frame.height - LEGEND)
    if not found or (panel["type"] in {"stat", "gauge", "bargauge"} and not latest):
        return f'<div class="none">{escape(panel["fieldConfig"]["defaults"]["noValue"])}</div>'
    match panel["type"]:
        case "timeseries":
            return f'{charts.curves(lower, panel, found, marks)}<div class="legend">{charts.legend(panel, found)}</div>'
        case "heatmap":
            return charts.heat(frame, panel, found)
        case "status-history":
            return charts.calendar(frame, panel, found)
        case "gauge":
            return charts.dial(frame, panel, latest)
        case "bargauge":
            return charts.across(frame, panel, latest)
        case _:
            return charts.numbers(frame, panel, latest, lambda value, unit: _written(value, unit, panel, shown.end))


def _written(value: float, unit: str, panel: Mapping[str, Any], now: float) -> str:
    if unit == "dateTimeFromNow":
        return f"{(now - value / 1000) / 60:.0f} min ago"
    return drawing.shown(value, unit, panel["fieldConfig"]["defaults"].get("decimals"))


def _table(panel: Mapping[str, Any], answers: Sequence[Sequence[Curve]], now: float) -> str:
    """The answers joined by the labels that they share, as the panel's transformations do it."""
    rows = _joined(panel, answers)
    (order,) = (one["options"] for one in panel["transformations"] if one["id"] == "organize")
    headings = order["renameByName"]
    fields = [field for field in sorted(headings, key=order["indexByName"].get) if any(field in row for row in rows)]
    (sort,) = panel["options"]["sortBy"]
    by = next(field for field, heading in headings.items() if heading == sort["displayName"])
    rows.sort(key=lambda row: float(row.get(by, "inf")), reverse=sort["desc"])
    head = "".join(f"<th>{escape(headings[field])}</th>" for field in fields)
    body = "".join(
        "<tr>" + "".join(_cell(panel, headings[field], row.get(field), now) for field in fields) + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _joined(panel: Mapping[str, Any], answers: Sequence[Sequence[Curve]]) -> list[dict[str, str | float]]:
    key = ("ceiling", "gen_ai_agent_name", "service_name", "window")
    rows: dict[tuple[str, ...], dict[str, str | float]] = {}
    for target, answer in zip(panel["targets"], answers, strict=True):
        for curve in answer:
            row = rows.setdefault(tuple(curve.labels.get(label, "") for label in key), {})
            row.update(curve.labels)
            row[f"Value #{target['refId']}"] = curve.samples[-1][1]
    return list(rows.values())


def _cell(panel: Mapping[str, Any], heading: str, value: str | float | None, now: float) -> str:
    settings = {
        one["id"]: one["value"]
        for override in panel["fieldConfig"]["overrides"]
        if override["matcher"]["options"] == heading
        for one in override["properties"]
    }
    if value is None:
        return "<td></td>"
    if isinstance(value, str):
        colour = settings["mappings"][0]["options"].get(value, {}).get("color") if "mappings" in settings else None
        style = f' style="background:{drawing.COLOURS[colour]};color:#111;font-weight:600"' if colour else ""
        linked = ' style="color:#6e9fff"' if "links" in settings else style
        return f"<td{linked}>{escape(value)}</td>"
    words = (
        f"{(now - value / 1000) / 60:.0f} min ago"
        if settings.get("unit") == "dateTimeFromNow"
        else drawing.shown(value, settings.get("unit", "short"), settings.get("decimals"))
    )
    if "thresholds" not in settings:
        return f"<td>{words}</td>"
    colour = drawing.colour_at(value, settings["thresholds"]["steps"])
    filled_in = settings["custom.cellOptions"]["type"] == "color-background"
    return f'<td style="{"color:#111;background" if filled_in else "color"}:{colour}">{words}</td>'


def history(folder: Path) -> tuple[list[list[str]], float]:
    """Scrapes of two services, of which the fleet sends to the first."""
    end = datetime.now(tz=UTC).timestamp() - 60
    scrapes: list[list[str]] = []
    with contextlib.ExitStack() as stack:
        main = stack.enter_context(
            serving(SETTINGS, clock=clock_at(end - HOURS * HOUR), state=str(folder / "state"), instance="main")
        )
        edge = stack.enter_context(serving(SETTINGS, clock=clock_at(end - HOURS * HOUR), instance="edge"))
        shop = Shop(main)
        for number in range(round(HOURS * HOUR / STEP)):
            for running, instance in ((main, "main:9464"), (edge, "edge:9464")):
                scrapes.append(list(stamped(running, {"job": JOB, "instance": instance})))
            shop.round(STEP)
            if number % 40 == 25:
                go_wrong(main)
            if number % 6 == 0:
                start = edge.clock()
                edge.post("traces", traces_protobuf(run_of(number + 1, ("search", "reply"), "newsletter", start)))
            edge.clock.advance(STEP)
            edge.writer_came_round()
        return scrapes, main.clock.wall() / 1e9 - STEP


def photographed(chromium: Chromium, html: str, to: Path) -> None:
    """The whole page, as tall as it is."""
    found = re.search(r"<main style=\"height:(\d+)px", html)
    assert found
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder, "page.html")
        written.write_text(html, encoding="utf-8")
        chromium.screenshot(written.as_uri(), to, width=WIDTH + 16, height=int(found[1]) + 80)


def take(to: Path) -> Iterator[Path]:
    """Write a picture of each dashboard."""
    programs, browser = folder_of("prometheus") / "bin", folder_of("chromium") / "bin"
    with tempfile.TemporaryDirectory() as made, contextlib.ExitStack() as running:
        folder = Path(made)
        scrapes, end = history(folder)
        servers = Prometheuses(programs / "prometheus", folder, running)
        server = from_scrapes(servers, Promtool(programs / "promtool"), folder, scrapes)
        for name, picture in PICTURES.items():
            shown = Shown(server.ask, end - HOURS * HOUR, end, picture.chosen)
            path = to / f"dashboard-{name}.png"
            html = page(picture.board, shown, picture.rows)
            photographed(Chromium(browser / "chromium", browser / "chromedriver"), html, path)
            yield path


if __name__ == "__main__":
    for picture in take(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"):
        print(picture)
