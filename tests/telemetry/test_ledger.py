from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability import metrics
from otel_reliability.change.signals import SIGNALS
from otel_reliability.config import (
    LimitSettings,
    MetricSettings,
    Settings,
    TelemetrySettings,
    WindowSettings,
)
from otel_reliability.model.run import AgentKey, Outcome, RunChange, RunEvent
from otel_reliability.telemetry import names
from otel_reliability.telemetry.ledger import BUDGET, WIDEST, ToolLedger, fitting
from otel_reliability.telemetry.live import Live
from otel_reliability.testing import KEY, call, row, run
from tests.telemetry.meters import live_with_clock
from tests.windows.runs import window_over


def key(number: int) -> AgentKey:
    return AgentKey("", "shop", "", f"agent-{number}")


def windows(number: int) -> tuple[WindowSettings, ...]:
    return tuple(WindowSettings(f"window-{at}", last=10) for at in range(number))


@given(st.integers(1, 2_000), st.integers(1, 40))
def test_no_gauge_can_pass_the_budget(agents: int, number: int) -> None:
    fitted = fitting(Settings(windows=windows(number), limits=LimitSettings(agents=agents)))

    assert 1 <= fitted.limits.agents <= agents
    assert (fitted.limits.agents + 1) * number * WIDEST <= BUDGET
    assert (fitted.limits.agents + 1) * len(SIGNALS) <= BUDGET
    assert (fitted.limits.agents + 1) * len(Outcome) <= BUDGET


def test_the_widest_instrument_is_as_wide_as_is_said() -> None:
    full = window_over(
        [
            row(["search", "read"], number, task="task", outcome=Outcome.SUCCESS)
            for number in range(1, 40)
        ]
    )
    emitted = [spec.name for spec, _, _ in full.series()]

    assert max(emitted.count(name) for name in set(emitted)) <= WIDEST
    assert sum(spec.emitted for spec in metrics.ALL_SPECS.values()) == len(names.gauges()) - 4


@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), max_size=400),
    st.integers(1, 20),
    st.integers(1, 400),
)
def test_tools_keep_the_first_places_and_the_rest_is_other(
    asked: list[tuple[int, int]], tools: int, agents: int
) -> None:
    settings = fitting(Settings(limits=LimitSettings(agents=agents, tools=tools)))
    ledger = ToolLedger(settings)
    named: dict[tuple[int, int], str] = {}
    for agent, tool in asked:
        name = ledger.name(key(agent), f"tool-{tool}")
        assert named.setdefault((agent, tool), name) == name
        assert name in {f"tool-{tool}", names.OTHER}

    own = [pair for pair, name in named.items() if name != names.OTHER]
    assert 2 * len(own) + 2 * (settings.limits.agents + 1) <= BUDGET
    assert all(sum(agent == other for other, _ in own) <= tools for agent, _ in own)
    (limit,) = ledger.limits()
    assert limit.used == len(own) <= limit.limit
    assert limit.hits == sum(named[pair] == names.OTHER for pair in asked)


ALL = Settings(
    windows=(WindowSettings("recent", last=100), WindowSettings("day", period=86_400.0)),
    metrics=MetricSettings(min_runs=2),
    telemetry=TelemetrySettings(standard_metrics=True),
)
"""Two windows, and every instrument that there is."""


def feed(live: Live, agents: int, tools: int, *, first: int = 0) -> None:
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
                RunEvent(change, made)
                for change in (RunChange.CLOSED, RunChange.FINAL, RunChange.REVISED)
            ]
    live.engine.receive_events(events)
    live.tick(1)


def test_no_instrument_passes_its_budget() -> None:
    """More agents than there is room for, with more tools than there is room for, and all of it
    over and over.

    No instrument gets more attribute sets than its budget over the life of the process, and what
    found no place is counted as `__other__`.
    """
    live, meters, _ = live_with_clock(ALL)
    seen: dict[str, set[Any]] = {}
    for first in (0, 240):
        feed(live, 240, 4, first=first)
        for name, metric in meters.metrics().items():
            sets = {
                tuple(
                    sorted((key, str(value)) for key, value in dict(point.attributes or {}).items())
                )
                for point in metric.data.data_points
            }
            seen.setdefault(name, set()).update(sets)

    assert max(map(len, seen.values())) <= BUDGET
    assert not [
        name
        for name, sets in seen.items()
        if any("otel.metric.overflow" in str(found) for found in sets)
    ]
    named = {
        value
        for found in seen["agent.reliability.window.runs"]
        for key, value in found
        if key == "gen_ai.agent.name"
    }
    assert len(named) == fitting(ALL).limits.agents
    assert "__other__" not in named
    look = meters.look()
    assert sum(look.values("limit.hits", "limit")[name] > 0 for name in ("agents", "tools")) == 2
    total = sum(point.value for point in look.points("agent.reliability.runs"))
    assert total == 480 * len(Outcome)
    assert sum(point.value for point in look.points("tool_calls")) == 480 * len(Outcome) * 4
