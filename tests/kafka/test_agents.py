from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from otel_reliability.config import LimitSettings, Settings
from otel_reliability.kafka import partition_values
from otel_reliability.kafka.partition_agents import PartitionAgents
from otel_reliability.kafka.stage import KafkaMessage, Outgoing, write
from otel_reliability.model.record import BadRecord, RunRecord
from otel_reliability.model.run import AgentKey, RunChange
from otel_reliability.telemetry.exposition import Exposition
from otel_reliability.telemetry.prometheus import Prometheus
from otel_reliability.testing import run
from tests.kafka.expected import numbers_of
from tests.kafka.streams import BEGIN, MemoryValues

SETTINGS = Settings(hash_key="00" * 16)


def told(number: int, change: RunChange, agent: str = "support") -> Outgoing:
    made = replace(
        run(["search", "book"][: 1 + number % 2], number), key=AgentKey("", "shop", "", agent)
    )
    return write(RunRecord(change, made, 10 * number + list(RunChange).index(change)))


def take(readings: PartitionAgents, *some: Outgoing, now: float = BEGIN) -> None:
    for one in some:
        readings.take(KafkaMessage("runs", one.key, one.value, 0), now)
    readings.save()


def numbers(readings: PartitionAgents) -> dict[str, float]:
    """Return everything that is shown, once all agents are loaded."""
    readings.engine.load_agents(math.inf)
    sources = [(readings.engine, readings.recording.registry)]
    return numbers_of("".join(Prometheus(Exposition(lambda: sources, tuple), {}).text()))


@pytest.mark.parametrize("seconds", [2.0, 0.25])
def test_a_take_over_changes_no_number(seconds: float) -> None:
    store = MemoryValues()
    undisturbed = PartitionAgents(SETTINGS, MemoryValues(), {})
    readings = PartitionAgents(SETTINGS, store, {})
    for number in range(1, 60):
        some = [
            told(number, change, f"agent {number % 2}")
            for change in (RunChange.CLOSED, RunChange.FINAL)
        ]
        late = told(number + 100, RunChange.CLOSED, f"agent {number % 2}")
        for one in (undisturbed, readings):
            take(one, *some, late, now=BEGIN + seconds * number)
        if number % 7 == 0:
            readings = PartitionAgents(SETTINGS, store, {})

    assert numbers(readings) == pytest.approx(numbers(undisturbed))
    assert (
        sum(number for series, number in numbers(readings).items() if "runs_total" in series) == 59
    )


def test_agents_are_loaded_when_they_are_needed() -> None:
    store = MemoryValues()
    undisturbed = PartitionAgents(SETTINGS, MemoryValues(), {})
    before = PartitionAgents(SETTINGS, store, {})
    names = [f"agent {number}" for number in range(5)]
    for number in range(1, 40):
        some = [
            told(number, change, names[number % 5])
            for change in (RunChange.CLOSED, RunChange.FINAL)
        ]
        for readings in (undisturbed, before):
            take(readings, *some, now=BEGIN + number)
    after = PartitionAgents(SETTINGS, store, {})
    unloaded = [after.engine.agents.unloaded]
    for readings in (undisturbed, after):
        take(readings, told(41, RunChange.CLOSED, names[1]), now=BEGIN + 50)
    unloaded.append(after.engine.agents.unloaded)
    after.engine.load_agents(0.0)
    unloaded.append(after.engine.agents.unloaded)

    assert unloaded == [5, 5, 4]
    assert numbers(after) == pytest.approx(numbers(undisturbed))


def test_large_values_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message of the changelog holds a megabyte."""
    monkeypatch.setattr(partition_values, "PIECE_BYTES", 1_000)
    store = MemoryValues()
    readings = PartitionAgents(SETTINGS, store, {})
    for number in range(1, 9):
        take(
            readings,
            told(number, RunChange.CLOSED),
            told(number, RunChange.FINAL),
            now=BEGIN + 2 * number,
        )

    assert max(map(len, store.kept.values())) <= 1_000
    assert numbers(PartitionAgents(SETTINGS, store, {})) == numbers(readings)


def test_runs_that_no_window_needs_are_deleted() -> None:
    store = MemoryValues()
    readings = PartitionAgents(SETTINGS, store, {})
    for number in range(1, 600):
        take(
            readings,
            told(number, RunChange.CLOSED),
            told(number, RunChange.FINAL),
            now=BEGIN + number,
        )

    assert sum(place.startswith(b"run") for place in store.kept) <= 250


def test_an_agent_without_runs_for_a_day_is_let_go() -> None:
    store = MemoryValues()
    readings = PartitionAgents(SETTINGS, store, {})
    take(readings, told(1, RunChange.CLOSED), told(1, RunChange.FINAL))
    for day in (1, 2):
        readings.tick(BEGIN + day * 90_000)
        readings.save()

    assert len(readings.engine.agents) == 0
    assert not any(place.startswith((b"run", b"agent")) for place in store.kept)
    assert not any("runs_total" in series for series in numbers(readings))


def test_agents_beyond_the_limit_are_counted_together() -> None:
    readings = PartitionAgents(
        replace(SETTINGS, limits=LimitSettings(agents=1)), MemoryValues(), {}
    )
    take(
        readings,
        told(1, RunChange.CLOSED),
        told(2, RunChange.CLOSED, "another"),
        told(3, RunChange.CLOSED),
    )

    assert len(readings.engine.agents) == 1


def test_a_damaged_run_costs_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryValues()
    readings = PartitionAgents(SETTINGS, store, {})
    for number in range(1, 10):
        take(
            readings,
            told(number, RunChange.CLOSED),
            told(number, RunChange.FINAL),
            now=BEGIN + number,
        )
    place = next(place for place in store.kept if place.startswith(b"run"))
    store.kept[place] = store.kept[place][:-3] + b"xyz"
    after = PartitionAgents(SETTINGS, store, {})
    with pytest.raises(BadRecord):
        after.take(KafkaMessage("runs", None, b"{}", 0), BEGIN)

    after.engine.load_agents(math.inf)
    (key,) = after.engine.agents.keys()
    agent = after.engine.agents.agent(key)
    assert agent is not None
    assert agent.first_window.runs == 8


def test_records_may_come_twice_late_and_in_any_order() -> None:
    """Of one run the record with the greatest revision stands; after a run is final nothing changes
    it.
    """
    readings = PartitionAgents(SETTINGS, MemoryValues(), {})
    closed = told(1, RunChange.CLOSED)
    final = told(1, RunChange.FINAL)
    take(readings, closed, closed, final, final, closed)

    assert readings.accounts == {"taken": 2, "duplicate": 2, "late": 1, "final_early": 0}
