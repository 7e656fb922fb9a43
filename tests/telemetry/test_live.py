from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest
from opentelemetry.sdk.metrics import MeterProvider

from otel_reliability.config import AssemblySettings, Settings
from otel_reliability.engine import Engine
from otel_reliability.model.run import CloseReason
from otel_reliability.telemetry import live as live_module
from otel_reliability.telemetry.live import Live, SpanSource, live_of
from otel_reliability.testing import FakeClock, agent, tool
from tests.telemetry.meters import Meters
from tests.telemetry.spans import held


class Hand(SpanSource):
    """A door opened by hand: what it drains is what a test puts there."""

    def __init__(self, live: Live) -> None:
        self._live, self.restarted = live, 0
        self.queue = [tool(2, 1, "search"), agent(1, end=5)]
        live.attach(self)

    @property
    def queued(self) -> tuple[int, int]:
        """Length and capacity of its queue."""
        return len(self.queue), 10

    def drain(self, wait: float) -> bool:
        """Hand over what is there."""
        if not self._live.engine.receive(self.queue, wait=wait):
            return False
        self.queue = []
        return True

    def restart(self) -> None:
        """Count it."""
        self.restarted += 1


def on(clock: FakeClock) -> Callable[[Settings], Engine]:
    """Engines on this clock."""
    return lambda settings: Engine(settings, clock=clock, wall=clock.wall)


def made(settings: Settings | None = None) -> tuple[Live, Meters, FakeClock]:
    """An engine with instruments on a provider of its own, and a clock to wind."""
    meters, clock = Meters(), FakeClock()
    return live_of(meters.provider, settings, on(clock)), meters, clock


def test_a_collection_drains_the_doors_and_meets_the_deadlines() -> None:
    """Nobody else need do anything: gauges, counters and histograms come with the collections."""
    live, meters, clock = made()
    Hand(live)

    assert meters.look().value("runs.open") == 1
    clock.advance(3)
    look = meters.look()
    assert (look.value("window.runs"), look.value("runs")) == (1, None)
    clock.advance(60)
    look = meters.look()
    assert (look.value("window.runs"), look.value("agent.reliability.runs")) == (1, 1)
    assert meters.look().value("agent.reliability.runs") == 1


def test_doors_of_one_provider_share_one_engine() -> None:
    """A span that comes by two doors counts once when its run closes; another provider has an engine of its own."""
    live, meters, clock = made()
    first, second = Hand(live), Hand(live_of(meters.provider, None))
    live.pump(0)
    clock.advance(3)
    live.tick(0)
    look = meters.look()

    assert second._live is live is first._live
    assert live_of(Meters().provider, None) is not live
    assert look.value("spans", disposition="received") == 4
    assert look.value("spans", disposition="duplicate") == 2


def test_settings_of_a_second_door_are_told_to_be_in_vain(caplog: pytest.LogCaptureFixture) -> None:
    """The first door's settings stand, and a door that brings others is warned."""
    live, meters, _ = made(Settings(assembly=AssemblySettings(linger=5)))
    live_of(meters.provider, Settings(assembly=AssemblySettings(linger=5)))
    live_of(meters.provider, None)
    assert not caplog.records

    live_of(meters.provider, Settings())
    assert "settings of the first one stay" in caplog.text
    assert live.settings.assembly.linger == 5


def test_the_last_door_to_close_closes_the_runs() -> None:
    """While one door is open spans may still come; after the last one none will."""
    live, meters, _ = made()
    first, second = Hand(live), Hand(live)
    second.queue = []
    live.detach(first)
    live.detach(first)
    assert live.engine.open_runs == 1

    live.detach(second)
    look = meters.look()
    assert (live.engine.open_runs, look.value("agent.reliability.runs")) == (0, 1)
    assert look.value("runs.closed", reason="shutdown") == 1


def test_a_busy_engine_is_left_alone() -> None:
    """A collection that cannot get at the engine in time has no points of ours, and the host's are unharmed."""
    live, meters, _ = made()
    Hand(live)
    meters.provider.get_meter("host").create_counter("host.requests").add(1)
    with held(live.engine), pytest.MonkeyPatch.context() as patch:
        assert not live.pump(0)
        assert not live.tick(0)
        assert not live.flush(CloseReason.FLUSH, 0)
        patch.setattr(live_module, "WAIT_TIMEOUT_S", 0.01)
        assert set(meters.metrics()) == {"host.requests"}
    assert "otel_reliability.spans" in meters.metrics()


def test_a_forked_child_begins_with_nothing() -> None:
    """Engine, doors and snapshot; the instruments are the SDK's, and stay."""
    live, meters, _ = made()
    door = Hand(live)
    live.flush(CloseReason.FLUSH, 0)
    assert meters.look().value("window.runs") == 1
    live_module._after_fork()
    look = meters.look()

    assert door.restarted == 1
    assert (look.value("window.runs"), look.value("spans", disposition="received")) == (None, None)
    assert look.value("agent.reliability.runs") == 1


def test_an_engine_lives_as_long_as_its_provider() -> None:
    """A provider that is gone takes its engine with it, so test suites and reloading hosts do not pile them up."""
    live, meters, _ = made()
    reference = weakref.ref(live)
    del live
    gc.collect()
    assert reference() is not None

    provider = weakref.ref[MeterProvider](meters.provider)
    del meters
    gc.collect()
    assert (reference(), provider()) == (None, None)
