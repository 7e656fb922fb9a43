"""The same numbers in every deployment mode: a service, the span processor in the agents' process,
and a recording.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from opentelemetry.sdk.metrics.export import NumberDataPoint

from otel_reliability.config import Settings
from otel_reliability.metrics.sessions import SPECS as SESSIONS
from otel_reliability.model.run import Run
from otel_reliability.processor import ReliabilitySpanProcessor
from otel_reliability.recording import Recording, for_report
from otel_reliability.telemetry import names
from otel_reliability.telemetry.exposition import FULL_NAMES, GAUGES, agent_points, of_agent
from otel_reliability.telemetry.names import Instrument
from otel_reliability.telemetry.prometheus import family_of, labels_of
from otel_reliability.telemetry.recorder import own_calls
from tests.demo.bookshop import Bookshop, write
from tests.service.running import JSON, serving
from tests.telemetry.meters import Meters
from tests.telemetry.numbers import Labels, Numbers, prometheus_numbers

OF_SESSIONS = frozenset(family_of(GAUGES[FULL_NAMES[spec.name]]) for spec in SESSIONS)
"""The span processor receives no evaluations: they are sent to the service."""


def without_sessions(numbers: Numbers) -> Numbers:
    return {series: value for series, value in numbers.items() if series[0] not in OF_SESSIONS}


SPECS: Final[Mapping[str, Instrument]] = {**GAUGES, **{spec.name: spec for spec in names.COUNTERS}}
"""The instruments whose values are one number a series, by name."""
APART: Final = frozenset(
    {names.CHANGE_EVIDENCE.name, names.CHANGES.name, names.INFO.name, names.REVISIONS.name}
)
"""Metrics that a recording lacks: change detection reads it as a whole, and in it nothing is late.
"""

Point: TypeAlias = tuple[str, float, Mapping[str, str | bool]]


def compared(live: Numbers) -> Numbers:
    """Return every gauge of every agent, its sessions among them, and what was counted
    of its runs; counters that only began are as good as none.
    """
    return {
        series: value
        for series, value in live.items()
        if series[0] in _COMPARED and (value or not series[0].endswith("_total"))
    }


def recorded(recording: Recording, runs: list[Run]) -> Numbers:
    engine = recording.engine
    told = (*agent_points(engine.view), *_counted(runs, recording.settings))
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
    """Return the name and the labels under which an instrument's value with these attributes
    stands.

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
    return (
        (name, float(number), dict(attributes))
        for (name, attributes), number in found.items()
        if number
    )


_COMPARED: Final = frozenset(
    series_of(spec, {})[0] for name, spec in SPECS.items() if name not in APART
)


def test_every_deployment_mode_reports_the_same_numbers(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    with serving() as running:
        settings = running.service.engine.settings
        meters = Meters()
        inside = ReliabilitySpanProcessor(settings, meter_provider=meters.provider)
        write(Bookshop(7, [inside], wall=running.clock.wall, clock=running.clock), path)
        for line in path.read_bytes().splitlines():
            signal = "logs" if b"resourceLogs" in line else "traces"
            assert running.post(signal, line, JSON).status == 200
        for _ in range(2):  # conversations are idle for half an hour before they close
            running.finalize()
        live = prometheus_numbers(running.metrics())
    runs: list[Run] = []
    recording = Recording(for_report(settings, settings.windows[0]), final=runs.extend)
    recording.read(path)
    expected = recorded(recording.close(), runs)
    inside.force_flush()
    within = collected(meters)

    assert len(expected) > 400
    assert compared(live) == expected
    assert without_sessions(compared(within)) == without_sessions(expected)
