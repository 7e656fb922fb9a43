from __future__ import annotations

from otel_reliability.config import LimitSettings, MetricSettings, Settings
from otel_reliability.model.event import RunChange, RunEvent
from otel_reliability.model.run import Run
from otel_reliability.telemetry.standing import Standing, standing_of
from otel_reliability.testing import KEY, run
from otel_reliability.windows.fleet import OTHER_AGENT, Fleet


def fleet_of(*runs: Run, settings: Settings | None = None) -> Fleet:
    """A fleet with these runs."""
    fleet = Fleet(settings or Settings(metrics=MetricSettings(min_runs=2)))
    for one in runs:
        fleet.apply(RunEvent(RunChange.CLOSED, one), 0.0)
    return fleet


def test_a_run_stands_by_its_agents_score_and_its_distance_to_the_others() -> None:
    """The odd run is as far from the others as their paths are; the score is the agent's own now."""
    usual = [run(["search", "reply"], number) for number in range(1, 5)]
    odd = run(["guess"], 5)
    fleet = fleet_of(*usual, odd)
    state = fleet.agent(KEY)
    assert state is not None
    score = state.windows["recent"].reading("score").value
    assert score is not None

    assert standing_of(odd, fleet) == Standing(KEY, score, 1.0)
    assert standing_of(usual[0], fleet) == Standing(KEY, score, 0.25)


def test_a_lonely_run_has_no_distance() -> None:
    """Without another run of its group there is no evidence, and without enough runs no score."""
    only = run(["search"])
    assert standing_of(only, fleet_of(only)) == Standing(KEY, None, None)


def test_a_run_that_left_its_window_has_no_distance() -> None:
    """Nor has one whose agent nobody knows any more."""
    gone = run(["search"], 9)
    assert standing_of(gone, fleet_of(run(["search"], 1), run(["read"], 2))).path_distance is None
    assert standing_of(gone, fleet_of()) == Standing(OTHER_AGENT)


def test_a_run_beyond_the_ceiling_counts_as_other() -> None:
    """The second agent has no place where there is one place."""
    first, second = run(number=1), run(number=2, key=KEY._replace(agent="another"))
    fleet = fleet_of(first, second, settings=Settings(limits=LimitSettings(agents=1)))

    assert standing_of(first, fleet).counted_as == KEY
    assert standing_of(second, fleet).counted_as == OTHER_AGENT
