"""What was told of an agent is told again after a restart, without its runs being measured anew."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from otel_reliability.config import MetricSettings, Settings
from otel_reliability.model.event import RunChange, RunEvent
from otel_reliability.testing import KEY, run
from otel_reliability.windows.fleet import Fleet
from otel_reliability.windows.told import Told, measure_of, read_told, write_told

SETTINGS = Settings(metrics=MetricSettings(min_runs=2))


def lived(runs: int) -> Fleet:
    """A fleet of one agent."""
    fleet = Fleet(SETTINGS)
    for number in range(1, runs + 1):
        fleet.apply(RunEvent(RunChange.CLOSED, run(["search", "book"][: 1 + number % 2], number)), 0.0)
    return fleet


def told_by(fleet: Fleet) -> Told:
    """What it tells of its agent."""
    told = fleet.told(KEY)
    assert told is not None
    return told


def asleep(fleet: Fleet) -> Fleet:
    """The same after a restart, with what it has told."""
    other, state = Fleet(SETTINGS), fleet.agent(KEY)
    assert state is not None
    own, plain = state.to_state(), write_told(state.told())
    other.restore(fleet.to_state(), {KEY: lambda: own}, {KEY: partial(read_told, plain)})
    return other


def test_what_is_told_is_known_until_something_changes() -> None:
    """Whoever writes it down need not measure for it."""
    fleet = lived(2)
    state = fleet.agent(KEY)
    assert state is not None
    assert not state.is_told
    fleet.told(KEY)
    assert state.is_told
    fleet.apply(RunEvent(RunChange.CLOSED, run(["pay"], 3)), 0.0)
    assert not state.is_told


def test_other_settings_tell_other_numbers() -> None:
    """Then what was told is not told again. The key of the hashes makes no difference."""
    assert measure_of(SETTINGS) == measure_of(replace(SETTINGS, hash_key="00" * 16))
    assert measure_of(SETTINGS) != measure_of(Settings())
