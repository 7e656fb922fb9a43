"""A dashboard: its variables, its rows, and where each panel stands."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as parts

from dashboards.panels import SOURCE, Placed
from dashboards.promql import NAMED, WHO, begun, sample_of
from otel_reliability.model.run import FINGERPRINTS
from otel_reliability.telemetry import names

TAG: Final = "otel-reliability"
UID: Final = "otel-reliability-"
COLUMNS: Final = 24
EVERY: Final = ".*"
SCHEMA_VERSION: Final = 39
"""What Grafana 10 wrote. Later ones bring it up to their own when they load it."""
FINGERPRINTED: Final = f"{WHO}, {', '.join(FINGERPRINTS)}"
NEWER: Final = ("allowCustomValue", "auto", "auto_count", "auto_min")
"""What the SDK writes of a variable, and Grafana's schemas do not know, or not all of them."""


class Section(NamedTuple):
    """A row with its panels, in reading order."""

    title: str
    panels: Sequence[Placed]
    folded: bool = False
    """What is often empty or seldom needed opens by a click."""


class Board(NamedTuple):
    """All that makes a dashboard."""

    name: str
    title: str
    about: str
    sections: Sequence[Section]
    variables: Sequence[Any] = ()
    annotations: Sequence[Mapping[str, Any]] = ()
    links: Sequence[Any] = ()
    span: str = "now-6h"


def json_of(board: Board) -> str:
    """The file that Grafana loads."""
    made = (
        dashboard.Dashboard(board.title).uid(UID + board.name).description(board.about).tags([TAG])
    )
    made.editable().time(board.span, "now").refresh("30s").timezone("browser")
    made.tooltip(parts.DashboardCursorSync.CROSSHAIR)
    for variable in (source(), *board.variables):
        made.with_variable(variable)
    for link in board.links:
        made.link(link)
    built = json.loads(JSONEncoder(sort_keys=True).encode(made.build()))
    built["schemaVersion"] = SCHEMA_VERSION
    for variable in built["templating"]["list"]:
        for newer in NEWER:
            variable.pop(newer, None)
    built["annotations"] = {"list": list(board.annotations)}
    built["panels"] = list(_laid_out(board.sections))
    return json.dumps(built, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _laid_out(sections: Iterable[Section]) -> Iterator[dict[str, Any]]:
    """Every panel as JSON, where it stands, with a number of its own; those of a folded row stand
    within it.
    """
    at = 0
    number = 0
    for section in sections:
        number += 1
        heading = _heading(section.title, number, at)
        ground = [at + 1] * COLUMNS
        below: list[dict[str, Any]] = []
        for placed in section.panels:
            number += 1
            built = json.loads(JSONEncoder(sort_keys=True).encode(placed.panel.build()))
            built["options"].pop(
                "footer", None
            )  # a table's, and empty: Grafana 12 does not know it any more
            below.append({**built, "id": number, "gridPos": _place(placed, ground)})
        if section.folded:
            yield {**heading, "collapsed": True, "panels": below}
            at += 1
        else:
            yield heading
            yield from below
            at = max(ground)


def _heading(title: str, number: int, at: int) -> dict[str, Any]:
    place = {"x": 0, "y": at, "w": COLUMNS, "h": 1}
    return {
        "type": "row",
        "id": number,
        "title": title,
        "collapsed": False,
        "panels": [],
        "gridPos": place,
    }


def _place(placed: Placed, ground: list[int]) -> dict[str, int]:
    """The highest place with room, and of these the leftmost; `ground` tells how far down each
    column is taken.
    """
    width = placed.width
    height = placed.height
    top, left = min((max(ground[x : x + width]), x) for x in range(COLUMNS - width + 1))
    ground[left : left + width] = [top + height] * width
    return {"x": left, "y": top, "w": width, "h": height}


def source() -> dashboard.DatasourceVariable:
    """Which Prometheus to ask."""
    made = dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus")
    return made.current(parts.VariableOption(selected=True, text="prometheus", value="prometheus"))


def choice(
    name: str, label: str, query: str, about: str, *, several: bool = True
) -> dashboard.QueryVariable:
    """A variable whose choices are the values of a label."""
    made = dashboard.QueryVariable(name).label(label).description(about).datasource(SOURCE)
    made.query(query).refresh(parts.VariableRefresh.ON_TIME_RANGE_CHANGED)
    made.sort(parts.VariableSort.ALPHABETICAL_ASC)
    if several:
        made.multi(True).include_all(True).all_value(EVERY)
        made.current(parts.VariableOption(selected=True, text=["All"], value=["$__all"]))
    return made


def way(title: str, to: str) -> dashboard.DashboardLink:
    """A link to another of our dashboards, at the top, with the data source that is chosen."""
    made = (
        dashboard.DashboardLink(title)
        .type(parts.DashboardLinkType.LINK)
        .url(f"/d/{UID}{to}?var-datasource=${{datasource}}")
        .icon("dashboard")
    )
    return made.keep_time(True).include_vars(False)


def mark(title: str, expression: str, text: str, colour: str = "purple") -> dict[str, Any]:
    """Vertical lines where a question has an answer. The SDK does not know what Prometheus'
    annotations have of their own.
    """
    made = (
        dashboard.AnnotationQuery()
        .name(title)
        .datasource(SOURCE)
        .enable(True)
        .icon_color(colour)
        .expr(expression)
    )
    built: dict[str, Any] = json.loads(JSONEncoder().encode(made.build()))
    return {**built, "titleFormat": title, "textFormat": text, "step": "60s"}


def marks(selector: str, of: str) -> list[dict[str, Any]]:
    """Since when: changes of behaviour, new versions, and alerts that began to fire. `of` names the
    agent in their text.
    """
    info = f"max by ({FINGERPRINTED}) ({sample_of(names.INFO)}{{{selector}}})"
    before = f"max by ({FINGERPRINTED}) ({sample_of(names.INFO)}{{{selector}}} offset 1m)"
    known = f"max by ({NAMED}) ({sample_of(names.INFO)}{{{selector}}} offset 1m)"
    of_agents = f'ALERTS{{alertstate="firing",alertname=~"Agent.*",{selector}}}'
    of_service = 'ALERTS{alertstate="firing",alertname=~"Reliability.*"}'
    fired = f"count by (alertname, {WHO}) ({of_agents} or {of_service})"
    return [
        mark(
            "Behaviour changed",
            begun(sample_of(names.CHANGES), f"{WHO}, signal", selector),
            f"{of}{{{{signal}}}}",
        ),
        mark(
            "New version",
            f"({info} unless {before}) and on ({NAMED}) {known}",
            f"{of}{{{{service_version}}}} {{{{version}}}} {{{{model}}}}",
            "blue",
        ),
        mark(
            "Alert",
            f"{fired} unless {fired.replace('}', '} offset 1m')}",
            f"{of}{{{{alertname}}}}",
            "red",
        ),
    ]
