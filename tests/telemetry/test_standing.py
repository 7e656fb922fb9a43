from __future__ import annotations

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.config import LimitSettings, MetricSettings, Settings, WindowSettings
from otel_reliability.model.event import RunChange, RunEvent
from otel_reliability.model.run import Run
from otel_reliability.telemetry.standing import Standing, standings_of
from otel_reliability.testing import KEY, at, run
from otel_reliability.windows.fleet import OTHER_AGENT, Fleet
from tests.telemetry.plain_recorder import standing_of

PATHS: Final[tuple[list[str] | None, ...]] = (
    None,
    [],
    ["search"],
    ["search", "reply"],
    ["search", "read", "reply"],
    ["guess"],
)
TASKS: Final = (None, "refund", "order")
CONDITIONS: Final = ("baseline", "baseline", "noisy")


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


told = st.tuples(
    st.sampled_from(PATHS), st.sampled_from(TASKS), st.sampled_from(CONDITIONS), st.booleans(), st.integers(0, 12)
)
"""Of a run its path, task and condition, whether it settles, and when it ends."""
RULES: Final = (
    (WindowSettings(last=6),),
    (WindowSettings(last=3), WindowSettings("long", last=5)),
    (WindowSettings(period=4.0),),
)


@given(st.lists(told, max_size=12), st.sampled_from([1, 2, 1_000]), st.sampled_from(RULES))
def test_many_runs_stand_as_each_of_them_does(
    told: list[tuple[list[str] | None, str | None, str, bool, int]], most: int, windows: tuple[WindowSettings, ...]
) -> None:
    """Spares, runs that left the window or came too late, perturbed ones, tasks, and where not all paths are compared."""
    runs = [
        run(path, number, task_id=task, condition=condition, end_ns=at(100.0 + end))
        for number, (path, task, condition, _, end) in enumerate(told)
    ]
    beyond = run(number=50, key=KEY._replace(agent="another"))
    settings = Settings(windows=windows, limits=LimitSettings(agents=1, paths=most))
    fleet = fleet_of(*runs, beyond, settings=settings)
    for one, (*_, settles, _) in zip(runs, told, strict=True):
        if settles:
            fleet.apply(RunEvent(RunChange.SETTLED, one), 0.0)

    everybody = [*runs, beyond, run(number=99)]
    assert standings_of(everybody, fleet, most) == {one.run_id: standing_of(one, fleet) for one in everybody}
