from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from otel_reliability.config import MetricSettings, Settings, WindowSettings
from otel_reliability.engine import Engine
from otel_reliability.model.run import Run, RunChange, RunEvent
from otel_reliability.telemetry.exposition import agent_points, agent_slices
from otel_reliability.telemetry.instruments import Point
from otel_reliability.testing import EPOCH_NS, KEY, run
from otel_reliability.windows.agents import AgentRegistry


def points_of(*runs: Run, settings: Settings | None = None) -> list[Point]:
    """The points of a agents with these runs."""
    engine = engine_with(*(RunEvent(RunChange.CLOSED, one) for one in runs), settings=settings)
    return list(agent_points(engine, engine.agents))


def engine_with(*events: RunEvent, settings: Settings | None = None) -> Engine:
    """An engine after these events."""
    engine = Engine(settings or Settings(metrics=MetricSettings(min_runs=2)), clock=lambda: 0.0, wall=None)
    engine.receive_events(events)
    return engine


def test_every_reading_is_a_point_of_its_agent() -> None:
    """A value with the agent's attributes, under the metric's name; the tier as 0 and 1 per tier."""
    found = points_of(*(run(["search", "read"], number) for number in range(1, 4)))
    by_name = {name: (value, attributes) for name, value, attributes in found}

    assert by_name["agent.reliability.path_entropy"] == (
        0.0,
        {"service.name": "shop", "deployment.environment.name": "test", "gen_ai.agent.name": "agent"},
    )
    assert by_name["agent.reliability.last_run.timestamp"][0] == (EPOCH_NS + 303 * 10**9) / 1e9
    tiers = {attributes["tier"]: value for name, value, attributes in found if name == "agent.reliability.tier"}
    assert tiers == {"STABLE": 1.0, "VARIABLE": 0.0, "UNSTABLE": 0.0, "CRITICAL": 0.0}


def test_no_evidence_makes_no_point() -> None:
    """Runs whose tools nobody saw, or that are alone, have no entropy, no score and no tier: absent, not 0."""
    names = {name for name, _, _ in points_of(run(None, 1), run(None, 2))}

    assert "agent.reliability.window.runs" in names
    assert not names & {"agent.reliability.path_entropy", "agent.reliability.score", "agent.reliability.tier"}


def test_windows_are_told_apart_where_there_are_several() -> None:
    """One window needs no name on its series; two do."""
    runs = [run(["search"], number) for number in range(1, 4)]
    two = Settings(windows=(WindowSettings("few", last=2), WindowSettings("many", last=9)))
    sizes = {a.get("window"): v for name, v, a in points_of(*runs, settings=two) if name.endswith("window.runs")}

    assert sizes == {"few": 2.0, "many": 3.0}
    assert all("window" not in attributes for _, _, attributes in points_of(*runs))


def test_an_agent_without_runs_has_no_points() -> None:
    """A withdrawn agent was none."""
    engine = engine_with(RunEvent(RunChange.CLOSED, run()), RunEvent(RunChange.WITHDRAWN, run()))

    assert list(agent_points(engine, engine.agents)) == []
    assert {a["gen_ai.agent.name"] for _, _, a in points_of(run(), run(number=2, key=KEY._replace(agent="b")))} == {
        "agent",
        "b",
    }


def test_agents_are_loaded_one_in_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a restart all are told, and what comes in meanwhile waits for no more than one of them."""
    second = Engine(clock=lambda: 0.0, wall=None)
    keys = [KEY._replace(agent=f"agent {number}") for number in range(1, 6)]
    runs = {key: (0.0, partial(list[Run], [run(["search"])._replace(key=key)])) for key in keys}
    second.agents.restore_runs(runs)
    read, loaded = second.read, list[int]()

    def watched(ask: Callable[[AgentRegistry], Any]) -> Any:
        before = second.agents.unloaded
        found = read(ask)
        loaded.append(before - second.agents.unloaded)
        return found

    monkeypatch.setattr(second, "read", watched)
    assert [shown.key for some in agent_slices(second) for shown in some] == keys
    assert (sum(loaded), max(loaded)) == (5, 1)
