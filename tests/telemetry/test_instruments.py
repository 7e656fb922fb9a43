from __future__ import annotations

import pytest
from opentelemetry.metrics import get_meter_provider

from otel_reliability.telemetry.guard import Guard
from otel_reliability.telemetry.instruments import Observed, Point, Snapshot, snapshot
from otel_reliability.telemetry.names import Instrument
from tests.telemetry.meters import Meters

SPECS = [Instrument(f"test.{kind}", kind, "{run}", "For a test.") for kind in ("gauge", "counter")]
SPECS.append(Instrument("test.sum", "up_down_counter", "{run}", "For a test."))


class Source:
    """Points to be observed, and how often somebody took them."""

    def __init__(self, *points: Point) -> None:
        self.points, self.taken = points, 0

    def take(self) -> Snapshot:
        """The points as they are."""
        self.taken += 1
        return snapshot(self.points)


def idle() -> None:
    """Nobody cares when instruments are made."""


def test_it_is_told_when_the_sdk_makes_the_instruments() -> None:
    """At once with a real provider; with a stand-in not before the provider is there."""
    told: list[str] = []
    made = Observed(Meters().provider.get_meter("test"), SPECS, Source().take, lambda: told.append("made"))
    assert made is not None
    assert set(told) == {"made"}

    told.clear()
    proxy = Observed(get_meter_provider().get_meter("test"), SPECS, Source().take, lambda: told.append("made"))
    assert proxy is not None
    assert told == []


def test_one_collection_takes_one_snapshot() -> None:
    """However many instruments are asked, the numbers of one collection are of one moment, and worked out once."""
    meters, source = Meters(), Source(("test.gauge", 1.5, {"a": "b"}), ("test.counter", 2, {}), ("test.sum", 3, {}))
    observed = Observed(meters.provider.get_meter("test"), SPECS, source.take, idle)
    first = meters.look()
    meters.look()

    assert observed is not None
    assert source.taken == 2
    assert [first.value(spec.name) for spec in SPECS] == [1.5, 2, 3]
    assert first.value("test.gauge", a="b") == 1.5


def test_a_collection_that_broke_off_leaves_nothing_stale() -> None:
    """An instrument that is asked twice marks a new collection, though others were not asked in the last one."""
    meters, source = Meters(), Source(("test.gauge", 1, {}), ("test.counter", 1, {}))
    observed = Observed(meters.provider.get_meter("test"), SPECS, source.take, idle)
    observed._answer("test.gauge", None)  # pyright: ignore[reportArgumentType]  the SDK's options are not looked at
    source.points = (("test.gauge", 2, {}), ("test.counter", 2, {}))

    assert meters.look().value("test.gauge") == 2
    assert meters.look().value("test.counter") == 2


def test_an_error_while_observing_leaves_the_collection_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host's own metrics are collected although ours failed; the next collection is tried anew."""

    def broken() -> Snapshot:
        raise RuntimeError("planted")

    monkeypatch.setattr(Guard, "loud", False)
    meters = Meters()
    meter = meters.provider.get_meter("test")
    meter.create_counter("host.requests").add(5)
    observed = Observed(meter, SPECS, broken, idle)
    before = Guard.faults["a collection"]

    assert meters.look().value("host.requests") == 5
    assert Guard.faults["a collection"] > before
    source = Source(("test.gauge", 1, {}))
    observed._read = source.take
    assert meters.look().value("test.gauge") == 1
