from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.resources import Resource

from otel_reliability import price_table
from otel_reliability.config import AssemblySettings, Settings
from otel_reliability.model.run import CloseReason
from otel_reliability.read_view import ReadView
from otel_reliability.telemetry import live as live_module
from otel_reliability.telemetry.guard import Guard
from otel_reliability.telemetry.live import Live, SpanSource, live_of
from otel_reliability.testing import agent, tool
from tests.telemetry.meters import live_with_clock
from tests.telemetry.spans import held


class Hand(SpanSource):
    """A door opened by hand: what it drains is what a test puts there."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self.queue = [tool(2, 1, "search"), agent(1, end=5)]
        live.attach(self)

    @property
    def queued(self) -> tuple[int, int]:
        return len(self.queue), 10

    def drain(self, wait: float) -> bool:
        if not self._live.engine.receive(self.queue, wait=wait):
            return False
        self.queue = []
        return True

    def restart(self) -> None:
        self.queue = []


def test_settings_of_a_second_door_are_told_to_be_in_vain(caplog: pytest.LogCaptureFixture) -> None:
    live, meters, _ = live_with_clock(Settings(assembly=AssemblySettings(linger=5)))
    live_of(meters.provider, Settings(assembly=AssemblySettings(linger=5)))
    live_of(meters.provider, None)
    assert not caplog.records

    live_of(meters.provider, Settings())
    assert "settings of the first one stay" in caplog.text
    assert live.settings.assembly.linger == 5


def test_the_last_door_to_close_closes_the_runs() -> None:
    live, meters, _ = live_with_clock()
    first = Hand(live)
    second = Hand(live)
    second.queue = []
    live.detach(first)
    live.detach(first)
    assert live.engine.open_runs == 1

    live.detach(second)
    look = meters.look()
    assert (live.engine.open_runs, look.value("agent.reliability.runs")) == (0, 1)
    assert look.value("runs.closed", reason="shutdown") == 1


def test_a_hook_leaves_the_deadlines_until_the_price_table_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded = [False]
    began: list[bool] = []
    monkeypatch.setattr(price_table, "is_loaded", lambda: loaded[0])
    monkeypatch.setattr(price_table, "load_beside", lambda: began.append(True))
    live, _, _ = live_with_clock()
    assert not began

    live.begin(Resource.create())
    assert began
    assert not live.due()
    loaded[0] = True
    assert live.due()


def test_a_busy_engine_is_left_alone() -> None:
    live, meters, _ = live_with_clock()
    Hand(live)
    meters.provider.get_meter("host").create_counter("host.requests").add(1)
    with held(live.engine), pytest.MonkeyPatch.context() as patch:
        assert not live.pump(0)
        assert not live.tick(0)
        assert not live.flush(CloseReason.FLUSH, 0)
        patch.setattr(live_module, "WAIT_TIMEOUT_S", 0.01)
        assert set(meters.metrics()) == {"host.requests"}
    assert "otel_reliability.spans" in meters.metrics()


def test_numbers_of_one_collection_are_of_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    live, meters, _ = live_with_clock()
    Hand(live)
    asked = list[object]()
    read = live.engine.read

    def counted(ask: Callable[[ReadView], Any], **options: Any) -> Any:
        asked.append(ask)
        return read(ask, **options)

    monkeypatch.setattr(live.engine, "read", counted)
    for number in (1, 2):
        assert meters.look().value("runs.open") == 1
        assert asked.count(live._snapshot) == number


def test_an_error_of_ours_leaves_the_collection_of_the_host_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    live, meters, _ = live_with_clock()
    Hand(live)
    meters.provider.get_meter("host").create_counter("host.requests").add(5)
    monkeypatch.setattr(Guard, "loud", False)
    before = Guard.faults["a collection"]
    with monkeypatch.context() as planted:
        planted.setattr(live.engine, "read", None)
        assert set(meters.metrics()) == {"host.requests"}

    assert Guard.faults["a collection"] > before
    assert "otel_reliability.spans" in meters.metrics()


def test_an_engine_lives_as_long_as_its_provider() -> None:
    """A provider that is gone takes its engine with it, so test suites and reloading hosts do not
    pile them up.
    """
    live, meters, _ = live_with_clock()
    reference = weakref.ref(live)
    del live
    gc.collect()
    assert reference() is not None

    provider = weakref.ref[MeterProvider](meters.provider)
    del meters
    gc.collect()
    assert (reference(), provider()) == (None, None)
