"""Windows against the plainest model of them: all runs that were told, sorted, and the plain
formulas over the last of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from otel_reliability.config import LimitSettings, MetricSettings, Settings, WindowSettings
from otel_reliability.model.reading import Reading
from otel_reliability.model.run import AgentKey, Run, RunChange, RunEvent
from otel_reliability.windows.agents import OTHER_AGENT, AgentRegistry
from otel_reliability.windows.rows import PathTable, row_of
from otel_reliability.windows.window import AgentWindow
from tests.metrics import laws
from tests.metrics.reference import NAIVE
from tests.windows.runs import KEY, closed, final, histories, revised, run, state_of, withdrawn

WINDOWS = (
    WindowSettings("last", last=3),
    WindowSettings("one", last=1),
    WindowSettings("period", period=10e-9),
    WindowSettings("both", last=4, period=20e-9),
    WindowSettings("all", last=1_000),
)
UNSHRUNK = settings(phases=[Phase.generate], max_examples=2_000, database=None)
"""To know that there is a counterexample is enough; to make it small takes minutes."""
SETTINGS = Settings(windows=WINDOWS, metrics=MetricSettings(min_runs=2))
FEW_PATHS = Settings(
    windows=WINDOWS, metrics=MetricSettings(min_runs=2), limits=LimitSettings(paths=2)
)


def told(events: Sequence[RunEvent]) -> dict[str, Run]:
    there: dict[str, Run] = {}
    for event in events:
        if event.change is RunChange.WITHDRAWN:
            del there[event.run.run_id]
        else:
            there[event.run.run_id] = event.run
    return there


def inside(runs: Sequence[Run], window: WindowSettings) -> list[Run]:
    """The runs of a window: the last of all, and of these only those that ended less than a period
    before the last.
    """
    ordered = sorted(runs, key=lambda one: (one.end_ns, one.run_id))
    if window.period is not None and ordered:
        ordered = [
            one for one in ordered if one.end_ns > ordered[-1].end_ns - round(window.period * 1e9)
        ]
    return ordered[-window.last :] if window.last is not None else ordered


def apply(events: Sequence[RunEvent]) -> AgentRegistry:
    agents = AgentRegistry(SETTINGS)
    for event in events:
        agents.apply(event, 0.0)
    return agents


@given(histories())
def test_windows_hold_what_they_say_at_every_step(events: list[RunEvent]) -> None:
    assert right_at_every_step(events)


@given(histories(most=10, inputs=False))
def test_readings_are_the_plain_formulas_at_every_step(events: list[RunEvent]) -> None:
    agents = AgentRegistry(SETTINGS)
    paths = PathTable()
    for at, event in enumerate(events):
        agents.apply(event, 0.0)
        there = [one for one in told(events[: at + 1]).values() if one.key == event.run.key]
        state = agents.agent(event.run.key)
        for window in WINDOWS if state is not None else ():
            rows = [row_of(one, paths) for one in inside(there, window)]
            for name, formula in NAIVE.items():
                found = state and state.windows[window.name].reading(name).value
                assert laws.close(formula(rows, SETTINGS), found), (window.name, name)


@given(histories(), st.randoms(use_true_random=False))
def test_readings_do_not_depend_on_the_order_of_closing(
    events: list[RunEvent], dice: Random
) -> None:
    there = list(told(events).values())
    dice.shuffle(there)
    left = apply(events)
    right = apply([closed(one) for one in there])
    assert set(left.keys()) == set(right.keys())
    for key in set(left.keys()):
        one = state_of(left, key)
        other = state_of(right, key)
        for name, window in one.windows.items():
            assert window.readings() == other.windows[name].readings()
            assert [(spec.name, tags, value) for spec, tags, value in window.series()] == [
                (spec.name, tags, value) for spec, tags, value in other.windows[name].series()
            ]


@given(histories(most=6), st.randoms(use_true_random=False))
def test_readings_do_not_depend_on_when_others_were_read(
    events: list[RunEvent], dice: Random
) -> None:
    often = AgentRegistry(FEW_PATHS)
    once = AgentRegistry(FEW_PATHS)
    for event in events:
        often.apply(event, 0.0)
        once.apply(event, 0.0)
        state = often.agent(event.run.key)
        for window in state.windows.values() if state and dice.random() < 0.3 else ():
            window.series()
    for key in set(once.keys()):
        assert readings_of(often, key) == readings_of(once, key)


def readings_of(agents: AgentRegistry, key: AgentKey = KEY) -> dict[str, dict[str, Reading]]:
    windows = state_of(agents, key).windows
    return {name: window.readings() for name, window in windows.items()}


def right_at_every_step(events: Sequence[RunEvent]) -> bool:
    """Whether, after each event, the agents are those of the runs, and every window holds the runs
    that its rule names.
    """
    agents = AgentRegistry(SETTINGS)
    for at, event in enumerate(events):
        agents.apply(event, 0.0)
        there = told(events[: at + 1]).values()
        if set(agents.keys()) != {one.key for one in there}:
            return False
        for key in {one.key for one in there}:
            mine = [one for one in there if one.key == key]
            if any(
                ids(agents, window.name, key) != [one.run_id for one in inside(mine, window)]
                for window in WINDOWS
            ):
                return False
    return True


def spent_at_once(window: AgentWindow) -> int:
    """No spares are kept."""
    return window.spares


def spent_too_soon(window: AgentWindow) -> int:
    """One spare is kept."""
    return max(window.spares - 1, 0)


def begins_early(window: AgentWindow) -> int:
    """The window is one run too long."""
    return max(window.runs + window.spares - window._last - 1, 0)


def does_nothing(*_: object) -> None:
    """What should happen does not."""


@pytest.mark.parametrize(
    ("place", "bug"),
    [
        ("window.AgentWindow._spent", spent_at_once),
        ("window.AgentWindow._spent", spent_too_soon),
        ("window.AgentWindow._begin", begins_early),
        ("window.AgentWindow.remove", does_nothing),
        ("agents.AgentRegistry._forget_if_empty", does_nothing),
    ],
)
@pytest.mark.filterwarnings(
    "ignore:Generating overly large repr"
)  # it is printed unshrunk, to nobody
def test_the_model_catches_a_planted_bug(
    place: str, bug: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"otel_reliability.windows.{place}", bug)
    assert find(histories(), lambda events: not right_at_every_step(events), settings=UNSHRUNK)


def ids(agents: AgentRegistry, window: str = "recent", key: AgentKey = KEY) -> list[str]:
    state = agents.agent(key)
    return [row.run_id for row in state.windows[window].rows()] if state is not None else []


def small(last: int | None = 2, period: float | None = None, **limits: int) -> AgentRegistry:
    window = WindowSettings(last=last, period=period)
    return AgentRegistry(Settings(windows=(window,), limits=LimitSettings(**limits)))


def finish(agents: AgentRegistry, *runs: Run) -> None:
    for one in runs:
        agents.apply(closed(one), 0.0)
        agents.apply(final(one), 0.0)


def test_spares_are_kept_while_runs_may_be_withdrawn_and_no_longer() -> None:
    """Below a window of final runs nothing is kept; below one that may shrink, as many final runs
    as it may lose.
    """
    agents = small(last=2)
    runs = [run(f"{at:02}", at) for at in range(10)]
    for one in runs:
        agents.apply(closed(one), 0.0)
    state = state_of(agents)
    assert state.windows["recent"].spares == 8
    for one in runs[:9]:
        agents.apply(final(one), 0.0)
    assert state.windows["recent"].spares == 1
    agents.apply(final(runs[9]), 0.0)
    assert state.windows["recent"].spares == 0
    assert [one.run_id for one in runs if state.row(one.run_id)] == ["08", "09"]


def test_a_run_below_a_final_window_is_refused_and_counted() -> None:
    agents = small(last=2)
    finish(agents, run("run-5", 5), run("run-6", 6))
    agents.apply(closed(run("late", 1)), 0.0)
    assert ids(agents) == ["run-5", "run-6"]
    assert agents.accounts["refused", "recent"] == 1
    state = state_of(agents)
    assert state.row("late") is None
    assert state.windows["recent"].left_out == 1


def test_a_period_ends_where_the_latest_run_ended() -> None:
    """(T − p, T]: a run that ended exactly a period ago is out, and time stands
    still between runs.
    """
    agents = small(last=None, period=10e-9)
    for end in (0, 1, 10):
        agents.apply(closed(run(f"run-{end:02}", end)), float(end))
    agents.advance(5_000.0)
    assert ids(agents) == ["run-01", "run-10"]


def test_no_window_holds_more_than_the_limit() -> None:
    agents = small(last=None, period=1e9, rows=3)
    for end in range(5):
        agents.apply(closed(run(f"run-{end}", end)), 0.0)
    assert ids(agents) == ["run-2", "run-3", "run-4"]
    state = state_of(agents)
    assert state.windows["recent"].left_out == 2
    agents.apply(withdrawn(run("run-4", 4)), 0.0)
    assert ids(agents) == ["run-1", "run-2", "run-3"]
    assert state.windows["recent"].left_out == 1


def test_a_run_told_twice_counts_once() -> None:
    agents = small()
    agents.apply(closed(run("a", 1, "x")), 0.0)
    agents.apply(closed(run("a", 2, "y")), 0.0)
    state = state_of(agents)
    assert [row.end_ns for row in state.windows["recent"].rows()] == [2]
    assert [one.path for one in state.recent] == [("y",)]


def test_events_of_unknown_agents_or_runs_change_nothing() -> None:
    agents = small()
    for event in (withdrawn(run("a")), final(run("a")), revised(run("b"), run("a"))):
        agents.apply(event, 0.0)
    assert ids(agents) == ["b"]
    agents.apply(final(run("c")), 0.0)
    agents.apply(withdrawn(run("c")), 0.0)
    assert ids(agents) == ["b"]


def test_ends_far_in_the_future_are_clamped_in_live_doors() -> None:
    agents = small(last=None, period=1_000.0)
    now = 10**18
    ahead = 300 * 10**9
    agents.apply(closed(run("leapt", now + 10**15)), 0.0, now)
    agents.apply(closed(run("sane", now)), 0.0, now)
    assert ids(agents) == ["sane", "leapt"]
    state = state_of(agents)
    assert state.last_run_ns == now + ahead
    assert agents.accounts["clamped", "future_end"] == 1
    agents.apply(withdrawn(run("leapt", now + 10**15)), 0.0, now)
    assert ids(agents) == ["sane"]
    assert [one.run_id for one in state.recent] == ["sane"]


def test_idle_agents_expire_and_return_anew() -> None:
    agents = AgentRegistry(Settings(limits=LimitSettings(agent_idle=60.0)))
    other = KEY._replace(agent="busy")
    agents.apply(closed(run("a", 1)), 0.0)
    agents.apply(closed(run("b", 1, key=other)), 0.0)
    agents.apply(closed(run("c", 2, key=other)), 50.0)
    assert agents.advance(59.0) == []
    assert agents.advance(60.0) == [KEY]
    assert agents.keys() == [other]
    assert agents.accounts["expired", "idle"] == 1
    agents.apply(closed(run("d", 3)), 70.0)
    assert ids(agents) == ["d"]
    assert len(agents) == 2


@pytest.mark.parametrize("places_return", [False, True])
def test_agents_beyond_the_limit_have_counters_only(*, places_return: bool) -> None:
    agents = AgentRegistry(
        Settings(limits=LimitSettings(agents=1, agent_idle=60.0)), places_return=places_return
    )
    other = KEY._replace(agent="second")
    agents.apply(closed(run("a", 1)), 0.0)
    agents.apply(closed(run("b", 1, key=other)), 0.0)
    assert agents.agent(other) is None
    assert agents.counted_as(KEY) == KEY
    assert agents.counted_as(other) == OTHER_AGENT
    assert agents.accounts["agents", "limit"] == 1
    agents.advance(60.0)
    agents.apply(closed(run("c", 2, key=other)), 60.0)
    assert (agents.agent(other) is not None) is places_return
    agents.apply(closed(run("d", 3)), 60.0)
    assert (agents.agent(KEY) is not None) is not places_return


def test_tasks_beyond_the_limit_are_no_group() -> None:
    agents = small(last=3, tasks=1)
    finish(
        agents,
        *(run(f"run-{end}", end, "a", task_id=task) for end, task in enumerate(["x", "y", "y"])),
    )
    state = state_of(agents)
    window = state.windows["recent"]
    assert window.reading("path_entropy").value is None
    assert window.reading("window.runs").value == 3
    assert agents.accounts["tasks", "limit"] == 2
    finish(agents, *(run(f"run-{end}", end, "a", task_id="z") for end in (3, 4, 5)))
    assert window.reading("path_entropy").runs == 2
