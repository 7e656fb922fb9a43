from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from otel_reliability import engine as engine_module
from otel_reliability.config import AssemblySettings, Settings
from otel_reliability.engine import Engine
from otel_reliability.model.run import CloseReason
from otel_reliability.model.span import AgentSpan
from otel_reliability.testing import EPOCH_NS, FakeClock, agent, at, tool
from otel_reliability.windows.agents import AHEAD_NS


def made(clock: FakeClock, settings: Settings | None = None) -> Engine:
    return Engine(settings, clock=clock, wall=clock.wall)


def run_of(trace: int = 1, tools: str = "search", start: float = 0.0) -> list[AgentSpan]:
    names = tools.split()
    calls = [tool(n, 1, name, trace=trace, start=start + n) for n, name in enumerate(names, 2)]
    return [*calls, agent(1, trace=trace, start=start, end=start + len(names) + 3)]


def window_runs(engine: Engine) -> int:
    states = (engine.agents.agent(key) for key in engine.agents.keys())  # noqa: SIM118  a agents is no mapping
    return sum(state.windows["recent"].runs for state in states if state is not None)


def test_a_run_closes_after_its_linger_and_becomes_final_after_its_reopen() -> None:
    clock = FakeClock()
    engine = made(clock)
    engine.receive(run_of())

    engine.tick()
    assert (engine.open_runs, window_runs(engine)) == (1, 0)

    clock.advance(2.1)
    engine.tick()
    assert (engine.open_runs, window_runs(engine), engine.take_final()) == (0, 1, [])

    clock.advance(60.1)
    engine.tick()
    assert [run.path for run in engine.take_final()] == [("search",)]
    assert engine.take_final() == []
    assert engine.recorded.total() == 1


def test_what_was_read_before_an_exception_is_kept_and_counted() -> None:
    """A signal handler may raise while spans are handed over one by one; those that came before are
    not lost.
    """
    engine = made(FakeClock())

    def handed_over() -> Iterator[AgentSpan]:
        yield from run_of()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.receive(handed_over())
    engine.flush(CloseReason.SHUTDOWN)

    assert [run.path for run in engine.take_final()] == [("search",)]
    assert engine.accounts["received", ""] == engine.accounts["used", ""] == 2


def test_a_late_span_revises_a_run_in_its_window() -> None:
    clock = FakeClock()
    engine = made(clock)
    late, *punctual = run_of(tools="search read")
    engine.receive(punctual)
    clock.advance(3)
    engine.tick()
    engine.receive([late])
    clock.advance(3)
    engine.tick()

    assert window_runs(engine) == 1
    assert [run.path for run in engine.take_revised()] == [("search", "read")]
    assert (engine.revised, engine.take_revised()) == (1, [])


def test_a_stamp_from_the_future_is_clamped_in_live_doors_only() -> None:
    """One clock that leapt ahead does not push every other run out of a window by time; a recording
    is taken as it is.
    """
    ahead = run_of(start=10_000)
    live = made(FakeClock())
    recording = Engine(clock=FakeClock(), wall=None)
    ends: list[int] = []
    for engine in (live, recording):
        engine.receive(ahead)
        engine.flush(CloseReason.END_OF_INPUT)
        state = engine.agents.agent(engine.agents.keys()[0])
        assert state is not None
        ends.append(state.last_run_ns or 0)

    assert ends == [EPOCH_NS + AHEAD_NS, at(10_004)]


def test_event_lag_is_the_age_of_the_span_last_received() -> None:
    clock = FakeClock(100.0)
    engine = made(clock)
    engine.receive([agent(1, start=1, end=40)])
    assert engine.event_lag == 60.0

    engine.receive([agent(2, start=1, end=400)])
    assert engine.event_lag == 0.0


def test_a_thread_that_comes_back_in_is_turned_away() -> None:
    """A signal handler or a finaliser that calls while its own thread is at work is told False; it
    never hangs.
    """
    engine = made(FakeClock())
    answers: list[object] = []

    def spans() -> Iterator[AgentSpan]:
        yield run_of()[-1]
        with pytest.raises(RuntimeError, match="in a turn"):
            engine.totals()
        answers.extend(
            [
                engine.receive(run_of(2)),
                engine.tick(),
                engine.flush(CloseReason.SHUTDOWN),
                engine.opened([]),
                engine.lost([]),
                engine.receive_evaluations([]),
                engine.read(len),
            ]
        )

    engine.receive(spans())
    assert answers == [False, False, False, False, False, False, None]


def test_a_busy_engine_takes_nothing_from_whoever_does_not_wait() -> None:
    engine = made(FakeClock())
    inside = threading.Event()
    leave = threading.Event()

    def slow() -> Iterator[AgentSpan]:
        inside.set()
        leave.wait(60)
        yield from run_of()

    worker = threading.Thread(target=engine.receive, args=(slow(),))
    worker.start()
    inside.wait(60)
    queue = iter(run_of(2))
    assert not engine.receive(queue, wait=0)
    assert not engine.receive(queue, wait=0.01)
    assert len(list(queue)) == 2
    leave.set()
    worker.join()
    assert engine.receive(run_of(2), wait=1)


def test_runs_that_nobody_takes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "MAX_UNREAD", 3)
    engine = made(FakeClock())
    for number in range(1, 6):
        engine.receive(run_of(number))
    engine.flush(CloseReason.FLUSH)

    assert len(engine.take_final()) == 3
    assert engine.unread == 2
    assert {limit.name: limit.hits for limit in engine.limits()}["unread_runs"] == 2


def test_an_adopted_span_waits_for_a_host_that_was_reopened() -> None:
    """Work that a run adopted becomes final with that run, also when the run was reopened just
    before.
    """
    clock = FakeClock()
    engine = made(clock, Settings(assembly=AssemblySettings(idle_timeout=1)))
    orphan = tool(9, 8, "orphan", start=1, end=1.5)
    engine.receive([*run_of(), orphan])
    for seconds in (1.0, 1.1):
        clock.advance(seconds)
        engine.tick()
    clock.advance(58)
    engine.receive([tool(3, 1, "late", start=1.6, end=1.8)])
    clock.advance(1)
    engine.tick()
    assert engine.take_final() == []

    clock.advance(100)
    engine.tick()
    clock.advance(100)
    engine.tick()
    assert [run.path for run in engine.take_final()] == [("orphan", "late", "search")]
