"""Comparison of the numbers of a running service with those of the recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from opentelemetry.sdk.metrics.export import NumberDataPoint

from otel_reliability.config import Settings
from otel_reliability.model.run import Run
from otel_reliability.report.recording import Recording
from otel_reliability.telemetry import names
from otel_reliability.telemetry.exposition import GAUGES, agent_points, of_agent
from otel_reliability.telemetry.names import Instrument
from otel_reliability.telemetry.prometheus import family_of, labels_of
from otel_reliability.telemetry.recorder import own_calls
from tests.telemetry.meters import Meters
from tests.telemetry.numbers import Labels, Numbers, prometheus_numbers

SPECS: Final[Mapping[str, Instrument]] = {**GAUGES, **{spec.name: spec for spec in names.COUNTERS}}
"""The instruments whose values are one number a series, by name."""
APART: Final = frozenset({names.CHANGE_EVIDENCE.name, names.CHANGES.name, names.INFO.name, names.REVISIONS.name})
"""Metrics that a recording lacks: change detection reads it as a whole, and in it nothing is late."""

Point: TypeAlias = tuple[str, float, Mapping[str, str | bool]]


class Agreement(NamedTuple):
    """How many numbers were compared, and those that differ: (name, live, recorded)."""

    compared: int
    differing: list[tuple[str, float | None, float | None]]


def agreement(live: Numbers, recorded: Numbers) -> Agreement:
    """Compare every gauge of every agent, its sessions among them, and what was counted of its runs."""
    told = {series: value for series, value in live.items() if series[0] in _COMPARED}
    differing = [
        (_shown(series), told.get(series), recorded.get(series))
        for series in sorted(told.keys() | recorded.keys(), key=_shown)
        if told.get(series) != recorded.get(series)
    ]
    return Agreement(len(told.keys() | recorded.keys()), differing)


def recorded(recording: Recording, runs: list[Run]) -> Numbers:
    """What a closed recording tells of its agents, and of those runs, under the names of Prometheus."""
    engine = recording.engine
    told = (*agent_points(engine, engine.agents), *_counted(runs, recording.settings))
    return {series_of(SPECS[name], attributes): value for name, value, attributes in told}


def collected(meters: Meters) -> Numbers:
    """Return the gauges and counters of one collection under the names of Prometheus."""
    return {
        series_of(SPECS[name], point.attributes or {}): float(point.value)
        for name, metric in meters.metrics().items()
        if name in SPECS
        for point in metric.data.data_points
        if isinstance(point, NumberDataPoint)
    }


def series_of(spec: Instrument, attributes: Mapping[str, Any]) -> tuple[str, Labels]:
    """Return the name and the labels under which an instrument's value with these attributes stands.

    >>> name, labels = series_of(names.RETRIES, {"gen_ai.tool.name": "search"})
    >>> name, sorted(labels)
    ('agent_reliability_retries_total', [('gen_ai_tool_name', 'search')])
    """
    name = family_of(spec) + ("_total" if spec.kind == "counter" else "")
    [series] = prometheus_numbers(f"{name}{{{labels_of(attributes.items())}}} 1\n")
    return series


def _counted(runs: list[Run], settings: Settings) -> Iterator[Point]:
    found: Counter[tuple[str, frozenset[tuple[str, str | bool]]]] = Counter()
    for run, calls in own_calls(runs):
        whose = of_agent(run.key)
        found[names.RUNS.name, frozenset({**whose, names.OUTCOME: run.outcome.value}.items())] += 1
        for call in calls:
            tool = {**whose, names.TOOL: call.name}
            found[names.TOOL_CALLS.name, frozenset({**tool, names.OK: call.ok}.items())] += 1
            found[names.RETRIES.name, frozenset(tool.items())] += call.retry
        exploded = any(call.chain >= settings.metrics.retry_threshold for call in calls)
        found[names.RETRY_EXPLOSIONS.name, frozenset(whose.items())] += exploded
    return ((name, float(number), dict(attributes)) for (name, attributes), number in found.items() if number)


def _shown(series: tuple[str, frozenset[tuple[str, str]]]) -> str:
    name, labels = series
    return name + "{" + ", ".join(f"{key}={value}" for key, value in sorted(labels)) + "}"


_COMPARED: Final = frozenset(series_of(spec, {})[0] for name, spec in SPECS.items() if name not in APART)
