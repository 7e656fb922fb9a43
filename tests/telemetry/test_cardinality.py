from __future__ import annotations

from typing import Any

import pytest

from otel_reliability.config import MetricSettings, Settings, TelemetrySettings, WindowSettings
from otel_reliability.engine import Engine
from otel_reliability.model.run import Outcome, RunChange, RunEvent
from otel_reliability.telemetry.ledger import BUDGET
from otel_reliability.telemetry.live import Live, live_of
from otel_reliability.testing import KEY, FakeClock, call, run
from tests.telemetry.meters import Meters

ONE = Settings(metrics=MetricSettings(min_runs=2), telemetry=TelemetrySettings(standard_metrics=True))
TWO = Settings(
    windows=(WindowSettings("recent", last=100), WindowSettings("day", period=86_400.0)),
    metrics=MetricSettings(min_runs=2),
)


def feed(live: Live, agents: int, tools: int, *, first: int = 0) -> None:
    """Runs of so many agents, with so many tools each and every outcome, closed and final."""
    events: list[RunEvent] = []
    for agent in range(first, first + agents):
        name = f"agent-{agent}"
        for number, outcome in enumerate(Outcome, 1):
            made = run(
                ["tool"],
                4 * agent + number,
                key=KEY._replace(agent=name),
                outcome=outcome,
                token_pressure=0.9,
                tool_calls=tuple(
                    call(f"tool-{tool}", tool, ok=bool(number % 2), retry=True, chain=3, agent=name)
                    for tool in range(tools)
                ),
            )
            events += [
                RunEvent(RunChange.CLOSED, made),
                RunEvent(RunChange.FINAL, made),
                RunEvent(RunChange.REVISED, made),
            ]
    live.engine.receive_events(events)
    live.tick(1)


def live_with(settings: Settings) -> tuple[Live, Meters]:
    """An engine on a provider of its own."""
    meters, clock = Meters(), FakeClock()
    return live_of(meters.provider, settings, lambda found: Engine(found, clock=clock, wall=clock.wall)), meters


@pytest.mark.parametrize(("settings", "agents"), [(ONE, 236), (TWO, 236)], ids=["one window", "two windows"])
def test_no_instrument_passes_its_budget(settings: Settings, agents: int) -> None:
    """More agents than there is room for, with more tools than there is room for, and all of it over and over.

    No instrument gets more attribute sets than its budget over the life of the process, and what found no place is counted as
    `__other__`.
    """
    live, meters = live_with(settings)
    seen: dict[str, set[Any]] = {}
    for first in range(0, 480, 120):
        feed(live, 120, 4, first=first)
        for name, metric in meters.metrics().items():
            sets = {
                tuple(sorted((key, str(value)) for key, value in dict(point.attributes or {}).items()))
                for point in metric.data.data_points
            }
            seen.setdefault(name, set()).update(sets)

    assert max(map(len, seen.values())) <= BUDGET
    assert not [name for name, sets in seen.items() if any("otel.metric.overflow" in str(found) for found in sets)]
    named = {
        value for found in seen["agent.reliability.window.runs"] for key, value in found if key == "gen_ai.agent.name"
    }
    assert len(named) == agents
    assert "__other__" not in named
    look = meters.look()
    assert sum(look.values("limit.hits", "limit")[name] > 0 for name in ("agents", "tools")) == 2
    total = sum(point.value for point in look.points("agent.reliability.runs"))
    assert total == 480 * len(Outcome)
    assert sum(point.value for point in look.points("tool_calls")) == 480 * len(Outcome) * 4
