"""Whether the live metrics say what the recording says: the same numbers by two doors."""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from otel_reliability.demo.live import Numbers
from otel_reliability.model.run import Run
from otel_reliability.report.recording import Recording
from otel_reliability.telemetry import names, points
from otel_reliability.telemetry.attributes import of_agent

COUNTERS: Final = (names.RUNS.name, names.TOOL_CALLS.name, names.RETRIES.name)


class Agreement(NamedTuple):
    """How many numbers were compared, and those that differ: (name, live, recorded)."""

    compared: int
    differing: list[tuple[str, float | None, float | None]]


def agreement(live: Numbers, recording: Recording, runs: list[Run]) -> Agreement:
    """Compare every gauge of every agent, and what was counted of its runs."""
    recorded = _gauges(recording) | _counted(runs)
    told = {key: value for key, value in live.items() if key[0].startswith(names.PREFIX) and _is_compared(key[0])}
    differing = [
        (key[0], told.get(key), recorded.get(key))
        for key in sorted(told.keys() | recorded.keys(), key=str)
        if told.get(key) != recorded.get(key)
    ]
    return Agreement(len(told.keys() | recorded.keys()), differing)


def _is_compared(name: str) -> bool:
    return name in COUNTERS or name not in {counter.name for counter in names.COUNTERS}


def _gauges(recording: Recording) -> Numbers:
    return {
        (name, frozenset(attributes.items())): value
        for name, value, attributes in points.of_fleet(recording.engine.fleet)
    }


def _counted(runs: list[Run]) -> Numbers:
    found: Counter[tuple[str, frozenset[tuple[str, object]]]] = Counter()
    for run in runs:
        whose = of_agent(run.key)
        found[names.RUNS.name, frozenset({**whose, names.OUTCOME: run.outcome.value}.items())] += 1
        for call in run.tool_calls or ():
            tool: dict[str, object] = {**whose, names.TOOL: call.name}
            found[names.TOOL_CALLS.name, frozenset({**tool, names.OK: call.ok}.items())] += 1
            if call.retry:
                found[names.RETRIES.name, frozenset(tool.items())] += 1
    return {key: float(number) for key, number in found.items()}
