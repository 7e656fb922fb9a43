"""The agents of a partition: what is kept of them, and what becomes of it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from otel_reliability.config import LimitSettings, Settings
from otel_reliability.kafka import agents as keeping
from otel_reliability.kafka.agents import Agents
from otel_reliability.kafka.exposition import Expositions
from otel_reliability.kafka.log import PAGE
from otel_reliability.kafka.messages import Outgoing, write
from otel_reliability.kafka.shelf import MemoryShelf
from otel_reliability.model.event import RunChange
from otel_reliability.model.record import BadRecord, RunRecord
from otel_reliability.model.run import AgentKey
from otel_reliability.telemetry.prometheus import Prometheus
from otel_reliability.testing import run
from tests.kafka.expected import numbers_of
from tests.kafka.streams import BEGIN

SETTINGS = Settings(hash_key="00" * 16)


def told(number: int, change: RunChange, agent: str = "support") -> Outgoing:
    """A record of a run."""
    made = run(["search", "book"][: 1 + number % 2], number)._replace(key=AgentKey("", "shop", "", agent))
    return write(RunRecord(change, made, 10 * number + list(RunChange).index(change)))


def take(agents: Agents, *some: Outgoing, now: float = BEGIN) -> None:
    """Take in records."""
    for one in some:
        agents.take(one.key, one.value, now)


def numbers(agents: Agents) -> dict[str, float]:
    """What is told of them, once all are awake."""
    agents.wake(math.inf)
    exposition = Expositions(agents.all, tuple)
    return numbers_of("".join(Prometheus(exposition, {}).text()))


@pytest.mark.parametrize("least", [4, 1_000])
def test_a_take_over_changes_no_number(least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gauges, counters and histograms go on, from snapshots and from records; snapshots take the place of records."""
    monkeypatch.setattr(keeping, "LEAST", least)
    shelf = MemoryShelf()
    undisturbed, agents = Agents(SETTINGS, MemoryShelf(), {}), Agents(SETTINGS, shelf, {})
    for number in range(1, 60):
        some = [told(number, change, f"agent {number % 2}") for change in (RunChange.CLOSED, RunChange.SETTLED)]
        for one in (undisturbed, agents):
            take(one, *some, now=BEGIN + number)
            one.tick(BEGIN + number)
        if number % 7 == 0:
            agents = Agents(SETTINGS, shelf, {})

    assert numbers(agents) == pytest.approx(numbers(undisturbed))
    assert sum(numbers(agents)[series] for series in numbers(agents) if "runs_total" in series) == 59
    records = sum(len(kept) for place, kept in shelf.items() if place.startswith(b"log1"))
    assert (records < 1.2 * PAGE) is (least == 4)


def test_agents_sleep_until_they_are_needed() -> None:
    """A take-over reads none of them back; a record wakes its own agent, and time wakes the others, as they were."""
    shelf = MemoryShelf()
    undisturbed, before = Agents(SETTINGS, MemoryShelf(), {}), Agents(SETTINGS, shelf, {})
    names = [f"agent {number}" for number in range(5)]
    for number in range(1, 40):
        some = [told(number, change, names[number % 5]) for change in (RunChange.CLOSED, RunChange.SETTLED)]
        for agents in (undisturbed, before):
            take(agents, *some, now=BEGIN + number)
    after = Agents(SETTINGS, shelf, {})
    asleep = [after.asleep]
    for agents in (undisturbed, after):
        take(agents, told(41, RunChange.CLOSED, names[1]), now=BEGIN + 50)
    asleep.append(after.asleep)
    after.wake(0.0)
    asleep.append(after.asleep)
    while after.asleep:
        after.wake(0.0)
    for agents in (undisturbed, after):
        agents.tick(BEGIN + 60)

    assert asleep == [5, 4, 3]
    assert len(after.all()) == len(after) == 5
    assert after.time.now == BEGIN + 60
    assert numbers(after) == pytest.approx(numbers(undisturbed))


def test_large_snapshots_are_kept_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message of the changelog holds a megabyte."""
    monkeypatch.setattr(keeping, "PIECE", 1_000)
    monkeypatch.setattr(keeping, "LEAST", 8)
    shelf = MemoryShelf()
    agents = Agents(SETTINGS, shelf, {})
    for number in range(1, 9):
        take(agents, told(number, RunChange.CLOSED))
    kept = [value for place, value in shelf.items() if place.startswith(b"snap1")]

    assert len(kept) > 2
    assert max(map(len, kept)) <= 1_000
    assert numbers(Agents(SETTINGS, shelf, {})) == numbers(agents)


def test_an_agent_of_whom_nothing_comes_for_a_day_is_let_go() -> None:
    """With its state, and its series are told to have ended."""
    shelf = MemoryShelf()
    agents = Agents(SETTINGS, shelf, {})
    take(agents, told(1, RunChange.CLOSED), told(1, RunChange.SETTLED))
    agents.tick(BEGIN + 90_000)
    agents.tick(BEGIN + 180_000)

    assert (len(agents), shelf.kept) == (0, {})
    assert len(Agents(SETTINGS, shelf, {})) == 0


def test_agents_beyond_the_ceiling_are_counted() -> None:
    """Their records are not kept; those before them go on."""
    agents = Agents(replace(SETTINGS, limits=LimitSettings(agents=1)), MemoryShelf(), {})
    take(agents, told(1, RunChange.CLOSED), told(2, RunChange.CLOSED, "another"), told(3, RunChange.CLOSED))

    assert (len(agents), agents.refused["agents"]) == (1, 1)


def test_damaged_state_costs_one_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins anew, and is counted; what is no record is refused with nothing taken."""
    monkeypatch.setattr(keeping, "LEAST", 64)
    shelf = MemoryShelf()
    agents = Agents(SETTINGS, shelf, {})
    for number in range(1, 70):
        take(agents, told(number, RunChange.CLOSED), told(number, RunChange.CLOSED, "another"))
    place = next(place for place in shelf.kept if place.startswith(b"snap1") and b"support" in place)
    shelf.put(place, b"\x01" + shelf.kept[place][1:-3])
    after = Agents(SETTINGS, shelf, {})
    with pytest.raises(BadRecord):
        after.take(b"key", b"{}", BEGIN)

    after.wake(math.inf)
    assert after.refused["damaged"] == 1
    assert {agent.rows for agent in after.all()} == {5, 69}
