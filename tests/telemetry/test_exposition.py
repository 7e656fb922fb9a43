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
from otel_reliability.testing import KEY, run
from otel_reliability.windows.agents import AgentRegistry


def points_of(*runs: Run, settings: Settings | None = None) -> list[Point]:
    """The points of agents with these runs."""
    engine = Engine(settings or Settings(metrics=MetricSettings(min_runs=2)), clock=lambda: 0.0, wall=None)
    engine.receive_events(RunEvent(RunChange.CLOSED, one) for one in runs)
    return list(agent_points(engine, engine.agents))


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
