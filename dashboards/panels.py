"""Panels in one style: every one has a description, a text for no data, and the data source that
the reader chose.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from grafana_foundation_sdk.builders import (
    bargauge,
    common,
    dashboard,
    gauge,
    heatmap,
    prometheus,
    stat,
    statushistory,
    table,
    timeseries,
)
from grafana_foundation_sdk.models import common as shapes
from grafana_foundation_sdk.models import dashboard as parts
from grafana_foundation_sdk.models import heatmap as heat
from grafana_foundation_sdk.models import prometheus as asked

from dashboards.about import About
from otel_reliability.metrics.stability.score import PENALTIES

SOURCE: Final = parts.DataSourceRef(type_val="prometheus", uid="${datasource}")
"""The variable: whoever has several data sources chooses one at the top of the dashboard."""

Builder: TypeAlias = Any
"""The SDK has one class a kind of panel, with the same methods and no base of their own."""
Steps: TypeAlias = Sequence[tuple[float | None, str]]

LOW_IS_GOOD: Final[Steps] = ((None, "text"), (0, "green"), (0.3, "yellow"), (0.6, "red"))
"""The first colour is that of no data, which is not good."""
HIGH_IS_GOOD: Final[Steps] = ((None, "red"), (0.5, "orange"), (0.7, "yellow"), (0.9, "green"))
SUCCESS: Final[Steps] = ((None, "red"), (0.395, "orange"), (0.595, "yellow"), (0.795, "green"))
"""A success rate on the scale of the tiers."""
ERRORS: Final[Steps] = ((None, "text"), (0, "green"), (0.05, "yellow"), (0.1, "red"))
TIERS: Final[Steps] = ((None, "red"), (39.5, "orange"), (59.5, "yellow"), (79.5, "green"))
"""A score from which on each tier begins, rounded as people see it."""
TIER_COLOURS: Final = {
    "STABLE": "green",
    "VARIABLE": "yellow",
    "UNSTABLE": "orange",
    "CRITICAL": "red",
}
GRADES: Final[Mapping[int, tuple[str, str]]] = {
    0: ("failing", "red"),
    1: ("critical", "red"),
    2: ("unstable", "orange"),
    3: ("variable", "yellow"),
    4: ("stable", "green"),
}
"""The word and the colour of each value of the metric `grade`."""
UNDECIDED: Final = 9
"""Stands for the grade of an agent that has none, so that it is sorted last."""
PART_COLOURS: Final = dict(
    zip(
        (part.replace("_", " ") for part in PENALTIES),
        ("blue", "purple", "red", "orange", "yellow"),
        strict=True,
    )
)
"""The colour of each part of the score, on both dashboards."""
OUTCOMES: Final = {
    "success": "green",
    "failure": "red",
    "completed": "blue",
    "paused": "yellow",
    "cancelled": "orange",
    "unknown": "gray",
}
"""The colour of each outcome of a run."""
PLAIN: Final[Steps] = ((None, "blue"),)


class Query(NamedTuple):
    """One question, and the name of what it answers."""

    expr: str
    legend: str = "__auto"
    form: asked.PromQueryFormat = asked.PromQueryFormat.TIME_SERIES
    instant: bool = False
    exemplar: bool = False


class Placed(NamedTuple):
    """A panel and the room it takes, in the grid of 24 columns."""

    panel: Builder
    width: int
    height: int


def _begun(panel: Builder, title: str, about: About, queries: Iterable[Query]) -> Builder:
    panel.title(title).description(about.text).no_value(about.empty).datasource(SOURCE)
    for ref, query in zip("ABCDEFGHIJKLMNOP", queries, strict=False):
        panel.with_target(_target(ref, query))
    return panel


def _target(ref: str, query: Query) -> prometheus.Dataquery:
    made = (
        prometheus.Dataquery()
        .expr(query.expr)
        .legend_format(query.legend)
        .ref_id(ref)
        .datasource(SOURCE)
    )
    made.editor_mode(asked.QueryEditorMode.CODE).format(query.form)
    made = made.instant() if query.instant else made.range()
    return made.exemplar(True) if query.exemplar else made


def steps(given: Steps) -> dashboard.ThresholdsConfig:
    """Colours by value."""
    made = [parts.Threshold(value, colour) for value, colour in given]
    return dashboard.ThresholdsConfig().mode(parts.ThresholdsMode.ABSOLUTE).steps(made)


def number(
    title: str,
    about: About,
    *queries: Query,
    unit: str = "short",
    colours: Steps = PLAIN,
    decimals: int | None = None,
    size: tuple[int, int] = (4, 4),
    text: Literal["auto", "name", "value", "value_and_name"] = "auto",
    named: Mapping[str, str] | None = None,
    mapped: Mapping[int, tuple[str, str]] | None = None,
) -> Placed:
    """One number, or one a series: as it is now."""
    now = [query._replace(instant=True) for query in queries]
    panel = _begun(stat.Panel(), title, about, now).unit(unit).thresholds(steps(colours))
    panel.graph_mode(shapes.BigValueGraphMode.NONE)
    panel.color_mode(shapes.BigValueColorMode.VALUE).text_mode(shapes.BigValueTextMode(text))
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    _decimals(panel, decimals)
    for series, colour in (named or {}).items():
        panel.override_by_regexp(f"/^{series}/", [fixed(colour)])  # a version may follow
    if mapped:
        panel.mappings([_value_map(mapped)])
    return Placed(panel, *size)


def _value_map(mapped: Mapping[int, tuple[str, str]]) -> parts.ValueMap:
    shown = {
        str(value): parts.ValueMappingResult(text=word, color=colour, index=at)
        for at, (value, (word, colour)) in enumerate(mapped.items())
    }
    return parts.ValueMap(options=shown)


def dial(
    title: str, about: About, query: Query, colours: Steps, size: tuple[int, int] = (4, 6)
) -> Placed:
    """A share from 0 to 1 as a dial."""
    panel = (
        _begun(gauge.Panel(), title, about, [query._replace(instant=True)])
        .unit("percentunit")
        .min(0)
        .max(1)
        .thresholds(steps(colours))
    )
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"])).decimals(0)
    return Placed(panel, *size)


def bars_across(
    title: str,
    about: About,
    *queries: Query,
    unit: str = "short",
    colours: Steps = PLAIN,
    most: float | None = None,
    named: Mapping[str, str] | None = None,
    size: tuple[int, int] = (8, 8),
) -> Placed:
    """One bar a series, the value now."""
    panel = (
        _begun(bargauge.Panel(), title, about, queries).unit(unit).min(0).thresholds(steps(colours))
    )
    panel.orientation(shapes.VizOrientation.HORIZONTAL).display_mode(
        shapes.BarGaugeDisplayMode.BASIC
    )
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    if most is not None:
        panel.max(most)
    for series, colour in (named or {}).items():
        panel.override_by_name(series, [fixed(colour)])
    return Placed(panel, *size)


def over_time(
    title: str,
    about: About,
    *queries: Query,
    unit: str = "short",
    limits: tuple[float | None, float | None] = (0, None),
    lines: Steps | None = None,
    stacked: bool = False,
    colours: Mapping[str, str] | None = None,
    size: tuple[int, int] = (12, 8),
) -> Placed:
    """Curves over time: with dashed lines at thresholds, or stacked."""
    panel = _begun(timeseries.Panel(), title, about, queries).unit(unit)
    panel.line_width(1).show_points(shapes.VisibilityMode.NEVER).span_nulls(False)
    panel.fill_opacity(60 if stacked else 8)
    panel.tooltip(
        common.VizTooltipOptions()
        .mode(shapes.TooltipDisplayMode.MULTI)
        .sort(shapes.SortOrder.DESCENDING)
    )
    panel.legend(_legend())
    if stacked:
        panel.stacking(common.StackingConfig().mode(shapes.StackingMode.NORMAL).group("A"))
    if lines is not None:
        panel.thresholds(steps(lines)).thresholds_style(
            common.GraphThresholdsStyleConfig().mode(shapes.GraphThresholdsStyleMode.DASHED)
        )
    _limits(panel, limits)
    for series, colour in (colours or {}).items():
        panel.override_by_name(series, [fixed(colour)])
    return Placed(panel, *size)


def _legend() -> common.VizLegendOptions:
    made = common.VizLegendOptions().display_mode(shapes.LegendDisplayMode.LIST)
    return made.placement(shapes.LegendPlacement.BOTTOM).show_legend(True)


def _limits(panel: Builder, limits: tuple[float | None, float | None]) -> None:
    low, high = limits
    if low is not None:
        panel.min(low)
    if high is not None:
        panel.max(high)


def _decimals(panel: Builder, decimals: int | None) -> None:
    if decimals is not None:
        panel.decimals(decimals)


def heat_map(
    title: str, about: About, query: Query, unit: str, colours: str, size: tuple[int, int] = (12, 9)
) -> Placed:
    """How a histogram fills over time; exemplars are points that lead to their trace."""
    panel = _begun(heatmap.Panel(), title, about, [query]).calculate(False)
    panel.color(
        heatmap.HeatmapColorOptions()
        .mode(heat.HeatmapColorMode.SCHEME)
        .scheme(colours)
        .steps(64)
        .exponent(0.5)
    )
    panel.y_axis(heatmap.YAxisConfig().unit(unit).axis_placement(shapes.AxisPlacement.LEFT))
    panel.rows_frame(heatmap.RowsHeatmapOptions().layout(shapes.HeatmapCellLayout.AUTO))
    panel.exemplars_color("rgba(255,0,255,0.7)").cell_gap(1).show_color_scale(True).show_legend()
    return Placed(panel, *size)


def calendar(
    title: str, about: About, query: Query, colours: Steps, size: tuple[int, int] = (24, 8)
) -> Placed:
    """One row a series, coloured by its value: a heat map that one can read a name off."""
    panel = (
        _begun(statushistory.Panel(), title, about, [query])
        .thresholds(steps(colours))
        .unit("short")
        .decimals(0)
    )
    panel.color_scheme(dashboard.FieldColor().mode(parts.FieldColorModeId.THRESHOLDS))
    panel.show_value(shapes.VisibilityMode.NEVER).row_height(0.85).col_width(0.95).legend(
        _legend()
    ).max_data_points(120)
    return Placed(panel, *size)


class Column(NamedTuple):
    """A column of a table: the field, its heading, and how it is shown."""

    field: str
    heading: str
    properties: Sequence[parts.DynamicConfigValue] = ()


def listing(
    title: str,
    about: About,
    queries: Sequence[Query],
    columns: Sequence[Column],
    sort: Sequence[tuple[str, bool]],
    size: tuple[int, int] = (24, 10),
) -> Placed:
    """A table: the answers joined by the labels that they share, with these columns
    and no others.
    """
    asked_at_once = [q._replace(form=asked.PromQueryFormat.TABLE, instant=True) for q in queries]
    panel = _begun(table.Panel(), title, about, asked_at_once)
    fields = [column.field for column in columns]
    panel.with_transformation(parts.DataTransformerConfig("merge", options={}))
    only = {"include": {"names": fields}}  # there are other labels
    panel.with_transformation(parts.DataTransformerConfig("filterFieldsByName", options=only))
    panel.with_transformation(
        parts.DataTransformerConfig(
            "organize",
            options={
                "excludeByName": {},
                "indexByName": {field: at for at, field in enumerate(fields)},
                "renameByName": {column.field: column.heading for column in columns},
            },
        )
    )
    for column in columns:
        if column.properties:
            panel.override_by_name(column.heading, list(column.properties))
    order = [common.TableSortByFieldState().display_name(name).desc(desc) for name, desc in sort]
    panel.sort_by(order).filterable(True)
    return Placed(panel, *size)


def unit_of(unit: str, decimals: int | None = None) -> list[parts.DynamicConfigValue]:
    """How a column's numbers are written."""
    made = [parts.DynamicConfigValue("unit", unit)]
    return made if decimals is None else [*made, parts.DynamicConfigValue("decimals", decimals)]


def fixed(colour: str) -> parts.DynamicConfigValue:
    """One colour, whatever the value."""
    return parts.DynamicConfigValue("color", {"mode": "fixed", "fixedColor": colour})


def coloured(given: Steps, how: str = "color-text") -> list[parts.DynamicConfigValue]:
    """A column's cells coloured by value."""
    made = [{"value": value, "color": colour} for value, colour in given]
    return [
        parts.DynamicConfigValue("custom.cellOptions", {"type": how}),
        parts.DynamicConfigValue("color", {"mode": "thresholds"}),
        parts.DynamicConfigValue("thresholds", {"mode": "absolute", "steps": made}),
    ]


def words(mapped: Mapping[int, tuple[str, str]]) -> list[parts.DynamicConfigValue]:
    """Words in place of a column's values, each on its colour."""
    options = {
        str(value): {"text": word, "color": colour, "index": at}
        for at, (value, (word, colour)) in enumerate(mapped.items())
    }
    return [
        parts.DynamicConfigValue(
            "custom.cellOptions", {"type": "color-background", "mode": "basic"}
        ),
        parts.DynamicConfigValue("mappings", [{"type": "value", "options": options}]),
    ]


def link(title: str, url: str) -> parts.DynamicConfigValue:
    """Where a click on a cell leads."""
    return parts.DynamicConfigValue("links", [{"title": title, "url": url, "targetBlank": False}])


def width(pixels: int) -> parts.DynamicConfigValue:
    """The width of a column."""
    return parts.DynamicConfigValue("custom.width", pixels)
