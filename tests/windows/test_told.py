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


def test_an_agent_that_sleeps_tells_what_it_told() -> None:
    """Number by number; it is the same object each time, so that writers know that nothing has changed."""
    fleet = lived(5)
    other = asleep(fleet)

    assert told_by(other) == told_by(fleet)
    assert told_by(other) is told_by(other)
    assert other.asleep == 1


def test_an_agent_that_wakes_tells_what_it_measures() -> None:
    """What was written down is forgotten with the first change, and is what would be measured."""
    fleet = lived(5)
    other, woken = asleep(fleet), asleep(fleet)
    woken.wake()
    assert told_by(woken) == told_by(other)

    for one in (fleet, other):
        one.apply(RunEvent(RunChange.CLOSED, run(["pay"], 6)), 0.0)
    assert told_by(other) == told_by(fleet) != told_by(woken)


def test_nothing_is_told_of_an_agent_that_has_expired_asleep() -> None:
    """Nor of one that nobody knows."""
    other = asleep(lived(2))
    assert other.told(KEY._replace(agent="nobody")) is None
    other.advance(2 * SETTINGS.limits.agent_idle)
    assert other.told(KEY) is None


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
