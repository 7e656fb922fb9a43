from __future__ import annotations

from otel_reliability.config import MetricSettings, Settings, WindowSettings
from otel_reliability.model.event import RunChange, RunEvent
from otel_reliability.model.run import Run
from otel_reliability.telemetry.instruments import Point
from otel_reliability.telemetry.points import of_fleet
from otel_reliability.testing import EPOCH_NS, KEY, run
from otel_reliability.windows.fleet import Fleet


def points_of(*runs: Run, settings: Settings | None = None) -> list[Point]:
    """The points of a fleet with these runs."""
    fleet = Fleet(settings or Settings(metrics=MetricSettings(min_runs=2)))
    for one in runs:
        fleet.apply(RunEvent(RunChange.CLOSED, one), 0.0)
    return list(of_fleet(fleet))


def test_every_reading_is_a_point_of_its_agent() -> None:
    """A value with the agent's attributes, under the metric's name; the tier as 0 and 1 per tier."""
    found = points_of(*(run(["search", "read"], number) for number in range(1, 4)))
    by_name = {name: (value, attributes) for name, value, attributes in found}

    assert by_name["agent.reliability.path_entropy"] == (
        0.0,
        {"service.name": "shop", "deployment.environment.name": "test", "gen_ai.agent.name": "agent"},
    )
    assert by_name["agent.reliability.last_run"][0] == (EPOCH_NS + 303 * 10**9) / 1e9
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
    fleet = Fleet()
    fleet.apply(RunEvent(RunChange.CLOSED, run()), 0.0)
    fleet.apply(RunEvent(RunChange.WITHDRAWN, run()), 0.0)

    assert list(of_fleet(fleet)) == []
    assert {a["gen_ai.agent.name"] for _, _, a in points_of(run(), run(number=2, key=KEY._replace(agent="b")))} == {
        "agent",
        "b",
    }
