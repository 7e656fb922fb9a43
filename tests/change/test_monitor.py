from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from otel_reliability.change import monitor as monitor_module
from otel_reliability.change.alarm import Alarm
from otel_reliability.change.monitor import FORGET_AFTER, Change, Monitor
from otel_reliability.config import ChangeSettings, LimitSettings, Settings
from otel_reliability.engine import Engine
from otel_reliability.model.observation import observation_of
from otel_reliability.model.record import pack, unpack
from otel_reliability.model.run import AgentKey, CloseReason, Run, RunChange, RunEvent
from otel_reliability.testing import FakeClock, run

SETTINGS = Settings(change=ChangeSettings(runs_per_false_alarm=200))
IDLE = SETTINGS.sessions.idle
KEY = run().key


def closed(one: Run) -> RunEvent:
    return RunEvent(RunChange.CLOSED, one)


def short(n: int, **facts: object) -> Run:
    return run(["search"] * (1 + n * n % 3), n, **facts)


def long(n: int) -> Run:
    return run(["search", "book"] * 4, n)


def fed(monitor: Monitor, events: Iterable[RunEvent], start: float = 0.0) -> list[Change]:
    for second, event in enumerate(events):
        monitor.apply(event, start + second)
    return monitor.take_changes()


def observations(monitor: Monitor, key: AgentKey = KEY) -> int:
    detector = monitor.detector(key)
    return 0 if detector is None else detector.evidence().observations


def test_an_agents_change_is_told_once() -> None:
    monitor = Monitor(SETTINGS)
    (change,) = fed(monitor, map(closed, [*map(short, range(100)), *map(long, range(100, 120))]))
    assert isinstance(change.found, Alarm)
    assert (change.key, change.found.observation > 100) == (KEY, True)
    assert monitor.take_changes() == []


def test_agents_do_not_mix() -> None:
    monitor = Monitor(SETTINGS)
    other = AgentKey("", "", "", "other")
    events = [
        closed(replace(one, key=key))
        for n in range(200)
        for one, key in ((short(n), KEY), (long(n), other))
    ]
    assert not fed(monitor, events)
    assert (observations(monitor), observations(monitor, other)) == (200, 200)


def test_an_observation_enters_once_as_it_first_closed() -> None:
    plain = Monitor(SETTINGS)
    revised = Monitor(SETTINGS)
    fed(plain, (closed(short(n)) for n in range(100)))
    for n in range(100):
        one = short(n)
        fed(
            revised,
            [
                closed(one),
                RunEvent(RunChange.REVISED, long(n), one),
                RunEvent(RunChange.FINAL, long(n)),
            ],
        )
    fed(revised, [RunEvent(RunChange.WITHDRAWN, long(3))])
    assert states(revised) == states(plain)


def states(monitor: Monitor) -> object:
    return [
        detector.to_data()
        for detector in map(monitor.detector, monitor.keys())
        if detector is not None
    ]


@pytest.mark.parametrize("before", [short(1, incomplete=True), short(1, session_id="s")])
def test_a_run_that_late_spans_complete_or_cut_from_its_session_enters_once(before: Run) -> None:
    engine, monitor = engine_and_monitor(FakeClock())
    engine.receive_events([closed(before)])
    assert observations(monitor) == 0
    engine.receive_events(
        [
            RunEvent(RunChange.REVISED, short(1), before),
            RunEvent(RunChange.REVISED, short(2), short(1)),
        ]
    )
    assert observations(monitor) == 1


def test_a_run_that_leaves_a_session_after_it_has_entered_enters_once() -> None:
    """The session was an observation, or the run was one before it joined the session."""
    clock = FakeClock()
    engine, monitor = engine_and_monitor(clock)
    alone = short(1)
    joined = short(1, session_id="s")
    engine.receive_events([closed(joined)])
    clock.advance(IDLE)
    engine.tick()
    engine.receive_events([RunEvent(RunChange.REVISED, alone, joined)])
    assert observations(monitor) == 1

    engine.receive_events(
        [RunEvent(RunChange.REVISED, joined, alone), RunEvent(RunChange.REVISED, alone, joined)]
    )
    assert observations(monitor) == 1


def engine_and_monitor(clock: FakeClock) -> tuple[Engine, Monitor]:
    engine = Engine(SETTINGS, clock=clock)
    assert engine.monitor is not None
    return engine, engine.monitor


def test_a_session_is_an_observation_when_it_closes_but_not_at_shutdown() -> None:
    clock = FakeClock()
    engine = Engine(SETTINGS, clock=clock)
    runs = [short(n, session_id=str(n // 2)) for n in range(4)]
    assert engine.monitor is not None
    engine.receive_events(map(closed, runs[:2]))
    clock.advance(IDLE - 1)
    engine.tick()
    assert observations(engine.monitor) == 0
    engine.receive_events(map(closed, runs[2:]))
    clock.advance(1)
    engine.tick()
    assert observations(engine.monitor) == 1
    engine.flush(CloseReason.SHUTDOWN)
    assert (observations(engine.monitor), engine.sessions.number_open) == (1, 0)


def test_agents_have_a_limit() -> None:
    settings = Settings(limits=LimitSettings(agents=2, agent_idle=100))
    monitor = Monitor(settings)
    keys = [AgentKey("", "", "", name) for name in "abc"]
    fed(monitor, (closed(short(1, key=key)) for key in keys))
    assert monitor.keys() == keys[:2]
    fed(monitor, [closed(short(2, key=keys[2]))], start=101)
    assert monitor.keys() == keys[1:]
    assert monitor.accounts == {("agents", "limit"): 2}


def test_an_idle_agent_is_remembered_for_90_days() -> None:
    """Much longer than windows keep it: a weekly agent changes too."""
    monitor = Monitor(SETTINGS)
    monitor.apply(closed(short(1)), 0)
    monitor.advance(FORGET_AFTER - 1)
    assert observations(monitor) == 1
    monitor.advance(FORGET_AFTER)
    assert (len(monitor), monitor.accounts) == (0, {("agents", "idle"): 1})


def blind(monitor: Monitor) -> list[int]:
    return [
        d.evidence().blind
        for d in map(monitor.detector, (KEY, AgentKey("", "", "", "other")))
        if d is not None
    ]


def test_a_pinned_recording_is_for_its_agent() -> None:
    detectors = Monitor(SETTINGS, {KEY: [observation_of(short(n)) for n in range(80)]})
    fed(detectors, [closed(short(1)), closed(short(2, key=AgentKey("", "", "", "other")))])
    assert blind(detectors) == [0, 59]


@given(st.integers(0, 129))
def test_a_restart_changes_nothing(cut: int) -> None:
    runs = [*map(short, range(100)), *map(long, range(100, 130))]
    events = [closed(one) for one in runs]
    monitor = Monitor(SETTINGS)
    changes = list[Change]()
    stored = dict[bytes, Any]()
    assert list(monitor.changes()) == []
    for n, event in enumerate(events):
        if n == cut:
            monitor = Monitor(SETTINGS)
            monitor.restore([(unpack(key), unpack(body)) for key, body in stored.items()])
            assert list(monitor.changes()) == []
        monitor.apply(event, n)
        changes += monitor.take_changes()
        for key, body in monitor.changes():
            stored.pop(pack(key), None)
            stored.update({} if body is None else {pack(key): pack(body)})
    undisturbed = Monitor(SETTINGS)
    assert changes == fed(undisturbed, events)
    assert states(monitor) == states(undisturbed)


def test_changes_that_nobody_takes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor_module, "MAX_PENDING_CHANGES", 1)
    monitor = Monitor(SETTINGS)
    for n in range(400):
        monitor.apply(closed(long(n) if n // 100 % 2 else short(n)), n)
    assert monitor.accounts["changes", "limit"] >= 1
    assert len(monitor.take_changes()) == 1
