"""Windows → data points: every number that has evidence, for every agent, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from otel_reliability.telemetry import names
from otel_reliability.telemetry.attributes import of_agent
from otel_reliability.telemetry.instruments import Point
from otel_reliability.windows.agent import AgentState
from otel_reliability.windows.fleet import Fleet


def of_fleet(fleet: Fleet) -> Iterator[Point]:
    """The points of all agents, in the order in which these were first seen."""
    for key in fleet.keys():  # noqa: SIM118  a fleet is no mapping
        state = fleet.agent(key)
        if state is not None:
            yield from of_state(state)


def of_state(state: AgentState) -> Iterator[Point]:
    """The points of one agent. `window` is an attribute only where there are several."""
    series = of_agent(state.key)
    if state.last_run_ns is not None:
        yield names.LAST_RUN.name, state.last_run_ns / 1e9, series
    for window in state.windows.values():
        labels = {**series, names.WINDOW: window.name} if len(state.windows) > 1 else series
        for spec, attributes, reading in window.series():
            if reading.value is not None:
                yield names.PREFIX + spec.name, reading.value, {**labels, **dict(attributes)} if attributes else labels
