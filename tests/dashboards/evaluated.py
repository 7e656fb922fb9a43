"""Dashboards evaluated against a Prometheus, as Grafana's data source does it: variables filled in,
steps aligned, legends made of labels, the queries of a table joined.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from dashboards.promql import IDENTITY
from tests.dashboards.asking import board, panels
from tests.real.prometheus.handle import Prometheus
from tests.real.web import ask

STEPS: Final = (15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200)
POINTS: Final = 120
"""Points of a curve, about."""
PLAIN: Final = {"steps": [{"value": None, "color": "text"}]}
EVERY: Final = ".*"
_LABEL: Final = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_VARIABLE: Final = re.compile(r"\$\{?(\w+)\}?")

Choice = Mapping[str, str]


class Series(NamedTuple):
    """One answer: its name in the legend, its labels, and its points."""

    name: str
    labels: Mapping[str, str]
    points: Sequence[tuple[float, float]]

    @property
    def last(self) -> float:
        return self.points[-1][1]


class Answer(NamedTuple):
    """What one query of a panel gets."""

    ref: str
    expr: str
    series: Sequence[Series]
    step: float
    seconds: float


class Panel(NamedTuple):
    """A panel with the answers to its queries."""

    made: Mapping[str, Any]
    answers: Sequence[Answer]

    @property
    def title(self) -> str:
        return str(self.made["title"])

    @property
    def kind(self) -> str:
        return str(self.made["type"])

    @property
    def series(self) -> Sequence[Series]:
        return [one for answer in self.answers for one in answer.series]


class Evaluated(NamedTuple):
    """A dashboard over a time."""

    made: Mapping[str, Any]
    chosen: Choice
    begin: float
    end: float
    panels: Sequence[Panel]
    marks: Mapping[str, Sequence[Series]]

    def panel(self, title: str) -> Panel:
        (found,) = [one for one in self.panels if one.title == title]
        return found


def evaluated(
    server: Prometheus, name: str, chosen: Choice, begin: float, end: float, scrape: float
) -> Evaluated:
    """Evaluate a dashboard of which these values of variables are chosen; of others: every one."""
    step = next(step for step in STEPS if (end - begin) / step <= POINTS)
    fill = _Fill(chosen, end - begin, max(step, scrape), scrape)
    made = board(name)
    answered = [
        Panel(panel, [_answer(server, fill, target, begin, end) for target in panel["targets"]])
        for panel in panels(name)
    ]
    marks = {
        one["name"]: _range(server, fill(one["expr"]), one["textFormat"], begin, end, 60.0)
        for one in made["annotations"]["list"]
    }
    return Evaluated(made, chosen, begin, end, answered, marks)


class _Fill(NamedTuple):
    chosen: Choice
    span: float
    step: float
    scrape: float

    def __call__(self, expr: str) -> str:
        known = {
            "__rate_interval": f"{max(self.step + self.scrape, 4 * self.scrape):.0f}s",
            "__range": f"{self.span:.0f}s",
            **self.chosen,
        }
        return _VARIABLE.sub(lambda found: known.get(found[1], EVERY), expr)


def _answer(
    server: Prometheus, fill: _Fill, target: Mapping[str, Any], begin: float, end: float
) -> Answer:
    expr = fill(target["expr"])
    began = time.perf_counter()
    if target.get("instant"):
        found = [
            Series(
                _name(target["legendFormat"], one["metric"]), one["metric"], _points([one["value"]])
            )
            for one in _get(server, "query", query=expr, time=end)
        ]
    else:
        found = _range(server, expr, target["legendFormat"], begin, end, fill.step)
    return Answer(target["refId"], expr, found, fill.step, time.perf_counter() - began)


def _range(
    server: Prometheus, expr: str, legend: str, begin: float, end: float, step: float
) -> list[Series]:
    first = math.floor(begin / step) * step
    last = math.floor(end / step) * step
    return [
        Series(_name(legend, one["metric"]), one["metric"], _points(one["values"]))
        for one in _get(server, "query_range", query=expr, start=first, end=last, step=step)
    ]


def _get(server: Prometheus, what: str, **parameters: str | float) -> list[dict[str, Any]]:
    body = urlencode(parameters).encode()
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    said = json.loads(ask(f"{server.url}/api/v1/{what}", body=body, headers=form).body)
    assert said["status"] == "success", (parameters["query"], said)
    found: list[dict[str, Any]] = said["data"]["result"]
    return found


def _points(given: Sequence[tuple[float, str]]) -> list[tuple[float, float]]:
    return [(at, float(value)) for at, value in given]


def _name(legend: str, labels: Mapping[str, str]) -> str:
    if legend == "__auto":
        shown = ", ".join(f"{key}={value}" for key, value in labels.items() if key != "__name__")
        return shown or "Value"
    return _LABEL.sub(lambda found: labels.get(found[1], ""), legend).strip()


def rows_of(panel: Panel) -> Iterator[dict[str, Any]]:
    """The rows of a table by heading, sorted: its queries joined as `merge` does, then renamed."""
    joined: dict[tuple[str, ...], dict[str, Any]] = {}
    for answer in panel.answers:
        for one in answer.series:
            key = tuple(one.labels.get(label, "") for label in IDENTITY)
            row = joined.setdefault(key, {})
            row.update(one.labels)
            row[f"Value #{answer.ref}"] = one.last
    (organize,) = [
        change["options"] for change in panel.made["transformations"] if change["id"] == "organize"
    ]
    fields = sorted(organize["indexByName"], key=organize["indexByName"].__getitem__)
    headings = {field: organize["renameByName"][field] for field in fields}
    shown = [{new: row.get(old) for old, new in headings.items()} for row in joined.values()]
    order = [one["displayName"] for one in panel.made["options"]["sortBy"]]

    def rank(row: Mapping[str, Any]) -> list[float]:
        return [-math.inf if row[name] is None else row[name] for name in order]

    yield from sorted(shown, key=rank)


def colour_of(panel: Panel, name: str, value: float | None) -> str:
    """The colour in which a value of this name stands: its fixed colour, its word's, or that of the
    threshold it reaches; of no value the first.
    """
    settings = _settings(panel.made, name)
    fixed = settings.get("color", {}).get("fixedColor")
    for mapping in settings.get("mappings", ()):
        word = None if value is None else mapping["options"].get(f"{value:g}")
        if word is not None:
            return str(word["color"])
    if fixed and value is not None:
        return str(fixed)
    reached = [
        step["color"]
        for step in settings.get("thresholds", PLAIN)["steps"]
        if step["value"] is None or (value is not None and value >= step["value"])
    ]
    return str(reached[-1])


def word_of(panel: Panel, name: str, value: float) -> str | None:
    """The word that stands for a value, if there is one."""
    for mapping in _settings(panel.made, name).get("mappings", ()):
        word = mapping["options"].get(f"{value:g}")
        if word is not None:
            return str(word["text"])
    return None


def unit_of(panel: Panel, name: str) -> tuple[str, int | None]:
    """The unit and the decimals of a value of this name."""
    settings = _settings(panel.made, name)
    return settings.get("unit", "none"), settings.get("decimals")


def _settings(made: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = dict(made["fieldConfig"]["defaults"])
    for one in made["fieldConfig"]["overrides"]:
        how = one["matcher"]["id"]
        options = one["matcher"]["options"]
        is_meant = (how == "byName" and options == name) or (
            how == "byRegexp" and re.search(options.strip("/"), name) is not None
        )
        if is_meant:
            found |= {each["id"]: each["value"] for each in one["properties"]}
    return found
