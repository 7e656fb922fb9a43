from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from otel_reliability.config import LimitSettings, MetricSettings, Settings, WindowSettings
from otel_reliability.engine import Engine
from otel_reliability.model.run import AgentKey, RunChange, RunEvent
from otel_reliability.report.history import (
    FEW_POINTS,
    MAX_AGE_NS,
    MAX_POINTS,
    MIN_RUNS,
    History,
    recorded_history,
)
from otel_reliability.report.view import ScorePoint
from otel_reliability.testing import FakeClock, rows_of, run
from otel_reliability.ui.charts import HEIGHT, WIDTH, curve
from otel_reliability.ui.live import BURST_S, CPU_SHARE, Histories
from otel_reliability.windows.window import measure

SETTINGS = Settings(metrics=MetricSettings(min_runs=2), windows=(WindowSettings(last=50),))


def key_of(agent: str) -> AgentKey:
    return AgentKey("", "shop", "", agent)


def closed(engine: Engine, number: int, agent: str = "support", path: str = "a b") -> None:
    happened = run(
        path.split(), number, key=key_of(agent), run_id=f"{agent}-{number}", token_pressure=0.1
    )
    engine.receive_events([RunEvent(RunChange.CLOSED, happened, None)])


class ProcessorClock:
    """Processor time of which each point takes `POINT_S`: it is asked before and after."""

    POINT_S = 0.002

    def __init__(self) -> None:
        self._asked = 0

    def __call__(self) -> float:
        self._asked += 1
        return self.seconds

    @property
    def seconds(self) -> float:
        return self._asked // 2 * self.POINT_S


@given(st.lists(st.integers(min_value=-MAX_AGE_NS // 50, max_value=MAX_AGE_NS // 20), max_size=400))
def test_a_history_is_short_in_order_and_ends_now(steps: list[int]) -> None:
    history = History()
    now = 10 * MAX_AGE_NS
    for number, step in enumerate(steps):
        now += step
        history.add(ScorePoint(now, float(number % 100)))

    times = [point.ns for point in history.points]
    assert len(times) <= MAX_POINTS
    assert times == sorted(set(times))
    assert not steps or history.points[-1].score == float((len(steps) - 1) % 100)


def test_what_is_a_week_old_goes_and_details_come_back() -> None:
    history = History()
    for number in range(2_000):
        if history.is_due():
            history.add(ScorePoint(number, 80.0))
    for number in range(200):
        if history.is_due():
            history.add(ScorePoint(MAX_AGE_NS // 20 * (number + 1), 70.0))

    assert history.points[0].ns == 180 * (MAX_AGE_NS // 20)
    assert len(history.points) == 21
    assert history.points[-1].ns == 200 * (MAX_AGE_NS // 20)


def test_histories_follow_the_score_of_each_agent() -> None:
    engine = Engine(SETTINGS, clock=lambda: 0.0, wall=None)
    histories = Histories(engine)
    for number in range(1, 31):
        closed(engine, number, path="a b" if number < 20 else "b a c")
    points = histories.of(key_of("support"))
    state = engine.agents.agent(key_of("support"))

    assert state is not None
    assert len(points) == 30 - MIN_RUNS + 1
    assert points[0].score > points[-1].score == state.windows["recent"].reading("score").value
    assert points[-1].ns == state.last_run_ns
    assert histories.of(key_of("nobody")) == ()


def test_a_flood_of_runs_is_not_slowed_by_curves() -> None:
    """Beyond a burst only so much processor time a second; whose turn passed gets the next."""
    clock = FakeClock()
    engine = Engine(SETTINGS, clock=clock, wall=None)
    histories = Histories(engine, spent := ProcessorClock())
    for number in range(1, 2_000):
        closed(engine, 1 + number // 20, f"agent-{number % 20}")
    flooded = spent.seconds
    clock.advance(1.0)
    for number in range(100):
        closed(engine, 500 + number, "agent-7")
    clock.advance(60.0)
    closed(engine, 900, "agent-7")

    assert flooded <= BURST_S + spent.POINT_S
    assert spent.seconds - flooded <= CPU_SHARE + 3 * spent.POINT_S
    assert histories.of(key_of("agent-7"))[-1].ns == run(["a", "b"], 900).end_ns


def test_a_new_agent_has_a_curve_at_once_while_others_wait() -> None:
    engine = Engine(SETTINGS, clock=(clock := FakeClock()), wall=None)
    histories = Histories(engine, ProcessorClock())
    for number in range(1, 2_000):
        clock.advance(1.0 if number < 40 * 20 else 0.0)
        closed(engine, 1 + number // 20, f"agent-{number % 20}")
    for number in range(1, 31):
        closed(engine, number, "new")

    assert len(histories.of(key_of("new"))) == FEW_POINTS


def test_an_agent_that_expires_loses_its_history() -> None:
    clock = FakeClock()
    settings = replace(SETTINGS, limits=LimitSettings(agents=3, agent_idle=10.0))
    engine = Engine(settings, clock=clock, wall=None, places_return=True)
    histories = Histories(engine)
    for number in range(12):
        for run_number in range(MIN_RUNS):
            closed(engine, run_number, f"agent-{number}")
        assert histories.of(key_of(f"agent-{number}"))
        clock.advance(4.0)
        engine.tick()

    assert sum(bool(histories.of(key_of(f"agent-{number}"))) for number in range(12)) <= 3


def test_a_recording_tells_what_a_service_would_have_told() -> None:
    rows = rows_of(*["a b", "a b", "a c", "b a", "a b c"] * 10)
    rows = [
        replace(row, pressure=0.2, end_ns=10**9 * (number + 1)) for number, row in enumerate(rows)
    ]
    history = recorded_history(rows, SETTINGS, trailing=20)

    assert [point.ns for point in history] == [row.end_ns for row in rows[MIN_RUNS - 1 :]]
    for at, point in enumerate(history, start=MIN_RUNS):
        window = measure([], SETTINGS)
        for row in rows[max(0, at - 20) : at]:
            window.insert(row)
        assert point.score == pytest.approx(window.reading("score").value)


@given(
    st.lists(
        st.tuples(st.integers(1, 10**18), st.floats(0, 100)),
        min_size=2,
        max_size=60,
        unique_by=lambda one: one[0],
    )
)
def test_a_curve_stays_in_its_picture(points: list[tuple[int, float]]) -> None:
    found = curve([ScorePoint(*one) for one in sorted(points)])

    assert found is not None
    places = [tuple(map(float, place.split())) for place in found.line[1:].split("L")]
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in places)
    assert places == sorted(places, key=lambda place: place[0])
    assert found.end == places[-1]
