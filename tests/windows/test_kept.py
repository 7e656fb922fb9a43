"""Windows that were written down and read back go on as if nothing had been."""

from __future__ import annotations

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.config import LimitSettings, Settings, WindowSettings
from otel_reliability.model.event import RunChange, RunEvent
from otel_reliability.model.run import Outcome, Run
from otel_reliability.testing import at, run
from otel_reliability.windows.fleet import Fleet

SETTINGS = Settings(
    windows=(WindowSettings("recent", last=4), WindowSettings("while", last=9, period=6.0)),
    limits=LimitSettings(tasks=2),
)
STEPS = st.lists(st.tuples(st.sampled_from(RunChange), st.integers(0, 14)), max_size=40)


def one(number: int) -> Run:
    """A run of its number; late ones end early."""
    made = run(["search", "book", "search"][: 1 + number % 3])
    end = (number * 7) % 13
    return made._replace(
        run_id=str(number),
        start_ns=at(end - 1),
        end_ns=at(end),
        task_id=f"task {number % 3}" if number % 4 else None,
        outcome=Outcome.SUCCESS if number % 2 else Outcome.FAILURE,
        cost=number / 7,
    )


def step(fleet: Fleet, change: RunChange, number: int) -> None:
    """One change of one run."""
    made = one(number)
    previous = made if change is RunChange.REVISED else None
    fleet.apply(RunEvent(change, made._replace(cost=0.5) if previous else made, previous), float(number))


def restored(fleet: Fleet) -> Fleet:
    """Another fleet with what the first wrote."""
    other = Fleet(SETTINGS)
    states = {key: found.to_state() for key in fleet.keys() if (found := fleet.agent(key)) is not None}  # noqa: SIM118
    other.restore(fleet.to_state(), {key: partial(states.__getitem__, key) for key in states})
    return other


def look(fleet: Fleet) -> object:
    """All that is told."""
    agents = [fleet.agent(key) for key in fleet.keys()]  # noqa: SIM118 (no dictionary)
    return fleet.accounts, [
        (
            window.name,
            [(row.end_ns, row.run_id) for row in window.rows()],
            window.readings(),
            window.spares,
            window.turnover,
            window.refused,
        )
        for found in agents
        if found is not None
        for window in found.windows.values()
    ]


@given(before=STEPS, after=STEPS)
def test_windows_go_on_as_if_nothing_had_been(
    before: list[tuple[RunChange, int]], after: list[tuple[RunChange, int]]
) -> None:
    """Rows, spares, readings and what was refused, at once and after whatever follows."""
    fleet = Fleet(SETTINGS)
    for change, number in before:
        step(fleet, change, number)
    other = restored(fleet)
    assert look(other) == look(fleet)

    for change, number in after:
        step(fleet, change, number)
        step(other, change, number)
    assert look(other) == look(fleet)


def test_an_agent_sleeps_until_it_is_asked_for() -> None:
    """Its own state is read once, when something happens to it or somebody wants its numbers; it is listed meanwhile."""
    fleet = Fleet(SETTINGS)
    step(fleet, RunChange.CLOSED, 1)
    key, state = one(1).key, restored(fleet)
    assert (state.asleep, len(state), state.keys()) == (1, 1, [key])

    state.wake()
    assert state.asleep == 0
    state.wake()
    assert look(state) == look(fleet)


def test_an_agent_that_expires_asleep_is_gone() -> None:
    """Nobody reads what it was, and it can come anew."""
    fleet = Fleet(SETTINGS)
    step(fleet, RunChange.CLOSED, 1)
    state = restored(fleet)
    assert state.advance(2 * SETTINGS.limits.agent_idle) == [one(1).key]
    assert (state.asleep, len(state)) == (0, 0)

    step(state, RunChange.CLOSED, 2)
    found = state.agent(one(2).key)
    assert found is not None
    assert [row.run_id for row in found.windows["recent"].rows()] == ["2"]
