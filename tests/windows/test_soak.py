"""Windows after very many runs: what was kept up to date all along is what a new window finds in
the same rows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from otel_reliability.config import LimitSettings, Settings, WindowSettings
from otel_reliability.model.run import Outcome, Run, RunChange, RunEvent
from otel_reliability.testing import call, run
from otel_reliability.windows.agents import AgentRegistry, AgentState
from otel_reliability.windows.window import AgentWindow

SETTINGS = Settings(
    windows=(
        WindowSettings("few", last=7),
        WindowSettings("recent", last=30),
        WindowSettings("while", period=12.0),
    ),
    limits=LimitSettings(paths=9, recent_runs=5),
)


def told(dice: random.Random, number: int) -> Run:
    """One of many runs: few tools, few tasks, all kinds of evidence, and times that do not always
    go on.
    """
    steps = [dice.choice("abcd") for _ in range(dice.randrange(6))]
    return run(
        dice.choice((steps, steps, steps, None)),
        number,
        end_ns=1_700_000_000_000_000_000 + (number + dice.randrange(-9, 9)) * 10**9,
        start_ns=1_600_000_000_000_000_000,
        tool_calls=tuple(
            call(name, retry=dice.random() < 0.2, chain=dice.randrange(4)) for name in steps
        ),
        task_id=dice.choice((None, "x", "y")),
        condition=dice.choice(("baseline", "baseline", "baseline", "fault")),
        outcome=dice.choice(tuple(Outcome)),
        confidence=dice.choice((None, 0.1, 0.5, 0.9)),
        cost=dice.choice((None, 0.1, 1e-9, 3.0)),
        token_pressure=dice.choice((None, 0.1, 0.7, 1.0)),
        violations=dice.choice((None, (), (("a", "high"),))),
    )


def changes(dice: random.Random, number: int) -> Iterator[RunEvent]:
    open_runs: list[Run] = []
    for at in range(number):
        chance = dice.random()
        if open_runs and chance < 0.1:
            yield RunEvent(RunChange.WITHDRAWN, open_runs.pop(dice.randrange(len(open_runs))))
        elif open_runs and chance < 0.25:
            which = dice.randrange(len(open_runs))
            before = open_runs[which]
            open_runs[which] = replace(told(dice, at), run_id=before.run_id)
            yield RunEvent(RunChange.REVISED, open_runs[which], before)
        else:
            open_runs.append(told(dice, at))
            yield RunEvent(RunChange.CLOSED, open_runs[-1])
        while len(open_runs) > 12:
            yield RunEvent(RunChange.FINAL, open_runs.pop(0))


def anew(state: AgentState, window: AgentWindow) -> AgentWindow:
    rule = next(rule for rule in SETTINGS.windows if rule.name == window.name)
    fresh = AgentWindow(rule, SETTINGS)
    for row in window.rows():
        fresh.insert(row)
    return fresh


def compare(number: int, looks: int) -> None:
    dice = random.Random(number)
    agents = AgentRegistry(SETTINGS)
    seen = 0
    for at, event in enumerate(changes(dice, number)):
        agents.apply(event, 0.0)
        if at % (number // looks):
            continue
        state = agents.agent(event.run.key)
        for window in () if state is None else state.windows.values():
            assert state is not None
            assert window.readings() == anew(state, window).readings(), (at, window.name)
            seen += 1
    assert seen >= looks


def test_thousands_of_runs_leave_nothing_behind() -> None:
    compare(3_000, 30)


@pytest.mark.soak
def test_a_hundred_thousand_runs_leave_nothing_behind() -> None:
    compare(100_000, 500)
