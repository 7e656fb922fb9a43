from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from otel_reliability.change import monitor as monitor_module
from otel_reliability.change.monitor import FORGET_AFTER, Change, Monitor
from otel_reliability.change.observation import observation_of
from otel_reliability.change.sessions import MAX_RUNS, digest
from otel_reliability.config import ChangeSettings, LimitSettings, SessionSettings, Settings
from otel_reliability.model.record import pack, unpack
from otel_reliability.model.run import AgentKey, Run, RunChange, RunEvent
from otel_reliability.testing import run

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
    """Apply events a second apart and take what was noticed."""
    for second, event in enumerate(events):
        monitor.apply(event, start + second)
    return monitor.take_changes()


def units(monitor: Monitor, key: AgentKey = KEY) -> int:
    detector = monitor.detector(key)
    return 0 if detector is None else detector.evidence().observations


def test_an_agents_change_is_told_once() -> None:
    monitor = Monitor(SETTINGS)
    (change,) = fed(monitor, map(closed, [*map(short, range(100)), *map(long, range(100, 120))]))
    assert (change.key, change.alarm.observation > 100) == (KEY, True)
    assert monitor.take_changes() == []


def test_agents_do_not_mix() -> None:
    monitor, other = Monitor(SETTINGS), AgentKey("", "", "", "other")
    events = [closed(one._replace(key=key)) for n in range(200) for one, key in ((short(n), KEY), (long(n), other))]
    assert not fed(monitor, events)
    assert (units(monitor), units(monitor, other)) == (200, 200)


def test_a_unit_enters_once_as_it_first_closed() -> None:
    plain, revised = Monitor(SETTINGS), Monitor(SETTINGS)
    fed(plain, (closed(short(n)) for n in range(100)))
    for n in range(100):
        one = short(n)
        fed(revised, [closed(one), RunEvent(RunChange.REVISED, long(n), one), RunEvent(RunChange.FINAL, long(n))])
    fed(revised, [RunEvent(RunChange.WITHDRAWN, long(3))])
    assert states(revised) == states(plain)


def states(monitor: Monitor) -> object:
    return [detector.to_data() for detector in map(monitor.detector, monitor.keys()) if detector is not None]


def test_a_run_that_late_spans_make_whole_enters_then() -> None:
    monitor = Monitor(SETTINGS)
    part = short(1, incomplete=True)
    fed(monitor, [closed(part), RunEvent(RunChange.REVISED, short(1), part)])
    assert units(monitor) == 1


def test_a_session_is_a_unit_when_it_closes() -> None:
    monitor = Monitor(SETTINGS)
    monitor.apply(closed(short(1, session_id="s")), 0)
    monitor.apply(closed(short(2, session_id="s")), IDLE - 1)
    monitor.advance(2 * IDLE - 2)
    assert units(monitor) == 0
    monitor.advance(2 * IDLE - 1)
    assert units(monitor) == 1


def test_an_open_session_follows_its_runs() -> None:
    monitor = Monitor(SETTINGS)
    one, two = short(1, session_id="s"), short(2, session_id="t")
    fed(monitor, [closed(one), RunEvent(RunChange.REVISED, one._replace(session_id="u"), one)])
    fed(monitor, [closed(two), RunEvent(RunChange.WITHDRAWN, two)])
    monitor.advance(2 * IDLE)
    assert units(monitor) == 1
    assert len(monitor._sessions) == 0


def test_a_session_enters_once() -> None:
    monitor = Monitor(SETTINGS)
    one = short(1, session_id="s")
    monitor.apply(closed(one), 0)
    monitor.advance(IDLE)
    monitor.apply(closed(short(2, session_id="s")), IDLE + 1)
    monitor.apply(RunEvent(RunChange.REVISED, long(1)._replace(session_id="s"), one), IDLE + 2)
    monitor.advance(3 * IDLE)
    assert units(monitor) == 1
    assert monitor.accounts == {("session_runs", "late"): 1}


def test_sessions_have_limits() -> None:
    monitor = Monitor(Settings(limits=LimitSettings(sessions=3)))
    fed(monitor, (closed(short(n, session_id=str(n))) for n in range(5)))
    fed(monitor, (closed(short(n, session_id="4")) for n in range(5, MAX_RUNS + 10)))
    assert monitor.accounts == {("sessions", "limit"): 2, ("session_runs", "limit"): 6}
    monitor.advance(3 * IDLE)
    assert units(monitor) == 3


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
    assert units(monitor) == 1
    monitor.advance(FORGET_AFTER)
    assert (len(monitor), monitor.accounts) == (0, {("agents", "idle"): 1})


def test_a_wanted_change_is_learnt() -> None:
    monitor, other = Monitor(SETTINGS), AgentKey("", "", "", "other")
    fed(monitor, [closed(short(n, key=key)) for n in range(100) for key in (KEY, other)])
    monitor.reset(KEY)
    assert blind(monitor) == [60, 0]
    monitor.reset()
    assert blind(monitor) == [60, 60]
    assert not fed(monitor, (closed(long(n)) for n in range(100, 130)))


def blind(monitor: Monitor) -> list[int]:
    return [d.evidence().blind for d in map(monitor.detector, (KEY, AgentKey("", "", "", "other"))) if d is not None]


def test_a_pinned_recording_is_for_its_agent() -> None:
    detectors = Monitor(SETTINGS, {KEY: [observation_of(short(n)) for n in range(80)]})
    fed(detectors, [closed(short(1)), closed(short(2, key=AgentKey("", "", "", "other")))])
    assert blind(detectors) == [0, 59]


@given(st.integers(0, 129))
def test_a_restart_changes_nothing(cut: int) -> None:
    runs = [*map(short, range(100)), *map(long, range(100, 130))]
    events = [closed(one._replace(session_id=f"s{n // 2}" if n % 3 else None)) for n, one in enumerate(runs)]
    monitor, now, changes, stored = Monitor(SETTINGS), 0.0, list[Change](), dict[bytes, Any]()
    for n, event in enumerate(events):
        if n == cut:
            monitor = Monitor(SETTINGS)
            monitor.restore([(unpack(key), unpack(body)) for key, body in stored.items()])
        now += 100.0 * (n % 7)
        monitor.apply(event, now)
        changes += monitor.take_changes()
        for key, body in monitor.changes():
            stored.pop(pack(key), None)
            stored.update({} if body is None else {pack(key): pack(body)})
    monitor.advance(now + IDLE)
    changes += monitor.take_changes()
    assert [change.alarm for change in changes] == expected_alarms(events)


def expected_alarms(events: list[RunEvent]) -> list[object]:
    monitor, now = Monitor(SETTINGS), 0.0
    for n, event in enumerate(events):
        now += 100.0 * (n % 7)
        monitor.apply(event, now)
    monitor.advance(now + IDLE)
    return [change.alarm for change in monitor.take_changes()]


def test_changes_that_nobody_takes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor_module, "MAX_PENDING_CHANGES", 1)
    monitor = Monitor(SETTINGS)
    for n in range(400):
        monitor.apply(closed(long(n) if n // 100 % 2 else short(n)), n)
    assert monitor.accounts["changes", "limit"] >= 1
    assert len(monitor.take_changes()) == 1


class Looking(Monitor):
    """Looks whether anything is due at every event, and not only where something may be."""

    def apply(self, event: RunEvent, now: float) -> None:
        self.advance(now)
        super().apply(event, now)


happening = st.tuples(
    st.sampled_from([0.0, 0.1, 0.3, 1.0, IDLE - 0.1, IDLE, FORGET_AFTER]), st.integers(0, 5), st.sampled_from(RunChange),
    st.sampled_from([None, "s", "t"]), st.sampled_from([KEY, KEY._replace(agent="other")]),
)  # fmt: skip


@given(st.lists(happening, max_size=30), st.sampled_from([IDLE, 0.3, 0.0]))
def test_nothing_is_missed_between_two_looks(
    told: list[tuple[float, int, RunChange, str | None, AgentKey]], idle: float
) -> None:
    settings = replace(SETTINGS, sessions=SessionSettings(idle=idle))
    quick, slow, now, last = Monitor(settings), Looking(settings), 7.1, dict[int, Run]()
    for wait, number, change, session, key in told:
        now += wait
        one, before = short(number, session_id=session, key=key), last.get(number)
        event = RunEvent(change, one, before if change is RunChange.REVISED else None)
        last[number] = one
        for monitor in (quick, slow):
            monitor.apply(event, now)
        assert (quick.accounts, quick.keys()) == (slow.accounts, slow.keys())
        assert states(quick) == states(slow)


@given(st.text(), st.text(), st.lists(st.tuples(st.text(), st.text()), max_size=2))
def test_a_closed_session_is_known_by_the_same_digest_as_ever(
    agent: str, session: str, extra: list[tuple[str, str]]
) -> None:
    key = AgentKey("", "shop", "", agent, tuple(extra))
    plain = repr((tuple(key), session)).encode("utf-8", "surrogatepass")
    assert digest((key, session)) == hashlib.blake2b(plain, digest_size=8).digest()
