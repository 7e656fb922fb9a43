"""Comparison of the numbers of a running service with those of the recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.config import Settings
from otel_reliability.model.run import Run
from otel_reliability.report.recording import Recording
from otel_reliability.telemetry import names
from otel_reliability.telemetry.exposition import agent_points, of_agent
from otel_reliability.telemetry.recorder import own_calls
from tests.demo.scrape import SPECS, Samples, series_of

APART: Final = frozenset({names.CHANGE_EVIDENCE.name, names.CHANGES.name, names.INFO.name, names.REVISIONS.name})
"""Metrics that a recording lacks: change detection reads it as a whole, and in it nothing is late."""

Point: TypeAlias = tuple[str, float, Mapping[str, str | bool]]


class Agreement(NamedTuple):
    """How many numbers were compared, and those that differ: (name, live, recorded)."""

    compared: int
    differing: list[tuple[str, float | None, float | None]]


def agreement(live: Samples, recorded: Samples) -> Agreement:
    """Compare every gauge of every agent, its sessions among them, and what was counted of its runs."""
    told = {series: value for series, value in live.items() if series[0] in _COMPARED}
    differing = [
        (_shown(series), told.get(series), recorded.get(series))
        for series in sorted(told.keys() | recorded.keys(), key=_shown)
        if told.get(series) != recorded.get(series)
    ]
    return Agreement(len(told.keys() | recorded.keys()), differing)


def recorded(recording: Recording, runs: list[Run]) -> Samples:
    """What a closed recording tells of its agents, and of those runs, under the names of Prometheus."""
    engine = recording.engine
    told = (*agent_points(engine, engine.agents), *_counted(runs, recording.settings))
    return {series_of(SPECS[name], attributes): value for name, value, attributes in told}


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
