"""Open runs against their bounds: in an engine, in the service, and in process."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from otel_reliability.assembly.buffers import TraceBuffer
from otel_reliability.config import Settings, WatchSettings
from otel_reliability.engine import Engine
from otel_reliability.model.run import Run, RunChange, RunEvent
from otel_reliability.model.span import BY_TIME, AgentSpan, trace_of
from otel_reliability.processor import ReliabilitySpanProcessor
from otel_reliability.recording import Recording
from otel_reliability.telemetry.guard import Guard
from otel_reliability.testing import FakeClock, agent, model, tool, trace_id
from otel_reliability.watch import CPU_SHARE, INTERVAL_S, Excess, Watch
from otel_reliability.windows.agents import AgentRegistry
from tests.real.waiting import until
from tests.report.build import run_spans
from tests.service.running import body_of, run_of, serving
from tests.shared import shared
from tests.telemetry.loggers import kept_globally
from tests.telemetry.meters import Meters
from tests.telemetry.spans import agent_run, provider, run, tool_call

USUAL = 60
"""Finished runs of the agent, more than its window must have to bound an open one."""
PROMISED = 0.002
"""Share of usual runs that exceed a bound with default settings, at most (docs/runs.md)."""


def usual(number: int, calls: int = 3) -> list[AgentSpan]:
    made = [tool(2 + at, 1, f"search {at}", trace=number, start=at) for at in range(calls)]
    return [*made, agent(1, called="desk", trace=number, end=calls)]


def insisting(number: int, times: int = 20) -> list[AgentSpan]:
    """The spans of an open run that repeats one failing call; its root has not ended, so it has not
    arrived.
    """
    return [tool(2 + at, 1, "book", trace=number, start=at, failed=True) for at in range(times)]


def engine_with(*agents: str, clock: FakeClock, settings: Settings | None = None) -> Engine:
    engine = Engine(settings, clock=clock, wall=None)
    for first, name in enumerate(agents):
        for number in range(USUAL):
            spans = usual(1 + number + first * USUAL, 3 + number % 2)
            engine.receive([*spans[:-1], replace(spans[-1], facts=agent(1, called=name).facts)])
    clock.advance(1_000)
    engine.tick()
    return engine


def found(engine: Engine, clock: FakeClock, spans: Iterable[AgentSpan]) -> list[Excess]:
    engine.receive(spans)
    clock.advance(1.0)
    engine.tick()
    engine.watch()
    return engine.take_excesses()


def test_run_that_repeats_a_failing_call_is_found_while_it_is_open() -> None:
    """Its agent is unknown until its root arrives: the bounds of its service apply. It is found
    once.
    """
    clock = FakeClock()
    engine = engine_with("desk", clock=clock)
    spans = insisting(900)
    first = found(engine, clock, spans[:4])
    (excess,) = found(engine, clock, spans[4:])

    assert first == []
    assert (excess.kind, excess.value, excess.bound, excess.of) == (
        "failing_streak",
        19,
        5,
        "service",
    )
    assert excess.agent.agent == "desk"
    assert excess.run.trace_id == trace_id(900)
    assert [one.kind for one in found(engine, clock, insisting(900, 30)[20:])] == ["calls"], (
        "each kind once"
    )
    assert engine.watched.most_extreme(excess.agent)["failing_streak"] == 29 / 5
    assert [run_id for run_id, _ in engine.watched.exceeding(excess.agent)] == [excess.run.run_id]


def test_conversation_is_watched_after_its_first_prompt_is_answered() -> None:
    """Each prompt is a trace of its own, whose root arrives last; the conversation goes on."""
    clock = FakeClock()
    engine = engine_with("desk", clock=clock)
    conversation = trace_of("a conversation of two prompts"), BY_TIME
    first, second = (
        [replace(one, link=conversation) for one in spans] for spans in (usual(900), insisting(901))
    )

    assert found(engine, clock, first) == []
    assert {excess.kind for excess in found(engine, clock, second)} == {"failing_streak", "calls"}


def test_unknown_agent_of_a_service_with_several_counts_as_other() -> None:
    clock = FakeClock()
    (excess,) = found(engine_with("desk", "clerk", clock=clock), clock, insisting(900))
    assert (excess.agent.agent, excess.of) == ("__other__", "service")


def test_known_agent_without_enough_runs_is_bound_by_settings_only() -> None:
    clock = FakeClock()
    engine = Engine(Settings(watch=WatchSettings(calls=10, tokens=1_000)), clock=clock, wall=None)
    spans = [*insisting(1, 11), model(90, 1, (900, 200)), agent(1, 99, called="new", end=99)]
    excesses = found(engine, clock, spans)
    assert {(one.kind, one.value, one.bound, one.of) for one in excesses} == {
        ("calls", 11, 10, "setting"),
        ("tokens", 1_100, 1_000, "setting"),
    }


def test_trace_whose_root_has_arrived_is_not_assembled_for_it() -> None:
    """Nothing in it goes on, and it will be assembled when it closes."""
    clock = FakeClock()
    engine = engine_with("desk", clock=clock)
    assert found(engine, clock, [*insisting(900), agent(1, called="desk", trace=900, end=30)]) == []
    assert [engine.watched.most_extreme(key) for key in engine.agents.keys()] == [{}]  # noqa: SIM118  not a mapping


def test_usage_of_closed_runs_is_forgotten() -> None:
    clock = FakeClock()
    engine = engine_with("desk", clock=clock)
    (excess,) = found(engine, clock, insisting(900))
    found(engine, clock, [agent(1, called="desk", trace=900, end=30)])
    clock.advance(10)
    engine.tick()
    engine.watch()
    assert engine.watched.most_extreme(excess.agent) == {}
    assert engine.take_excesses() == []


def test_heaviest_traces_are_checked_first_within_the_budget() -> None:
    """What is left over waits for the next second, and long traces wait until they have grown by a
    hundredth.
    """
    clock = FakeClock()
    spent = 0.0

    def processor_time() -> float:
        nonlocal spent
        spent += 0.01
        return spent

    engine = Engine(Settings(watch=WatchSettings(calls=1)), clock=clock, wall=None)
    for number in range(1, 21):
        engine.receive(insisting(number, number))
    watch: Watch = engine.watched
    watch.check(1.0, processor_time)
    first = [excess.run.trace_id for excess in engine.take_excesses()]
    watch.check(1.5, processor_time)
    assert first[:9] == [trace_id(number) for number in range(20, 11, -1)]
    assert len(first) <= 10, "a tenth of a second"
    assert engine.take_excesses() == [], "not twice a second"
    assert {limit.name: limit.hits for limit in engine.limits()}["watch_milliseconds"] == 1, (
        "traces were put off"
    )
    used = spent
    seconds = 100
    for second in range(seconds):
        engine.receive(insisting(30 + second, 2))
        watch.check(3.0 + second, processor_time)
    assert (spent - used) / seconds <= CPU_SHARE + 0.02


class OneOpenRun:
    """In place of an assembler: one trace, which has grown, and whose open run is given."""

    run: Run

    @property
    def growing(self) -> list[TraceBuffer]:
        buffer = TraceBuffer(trace_id(1), 0.0, 10)
        buffer.spans.append(tool(2, 1, "search"))
        return [buffer]

    def open_runs_of(self, buffer: TraceBuffer) -> list[Run]:
        return [self.run]


@pytest.mark.parametrize("shuffles", [1, pytest.param(5, marks=pytest.mark.soak)])
def test_usual_runs_exceed_no_more_than_the_promised_share(shuffles: int) -> None:
    """Over 2,000 recorded runs, in so many orders."""
    runs = exceeded = 0
    for path in (
        "corpora/swe/sweagent_gpt4_lite_3trials.otlp.jsonl.gz",
        "corpora/taubench/gpt-4o_airline_4trials.turns.otlp.jsonl.gz",
    ):
        recorded: list[Run] = []
        recording = Recording(final=recorded.extend)
        recording.read_all([shared(path)])
        recording.close()
        for seed in range(shuffles):
            random.Random(seed).shuffle(recorded)
            registry = AgentRegistry()
            assembler = OneOpenRun()
            made: Any = assembler
            watch = Watch(WatchSettings(), made, registry)
            for number, one in enumerate(recorded):
                start = number * 10**12
                assembler.run = replace(
                    one,
                    start_ns=start,
                    end_ns=start + one.end_ns - one.start_ns,
                    run_id=f"{number}",
                )
                watch.check(20.0 * number, lambda: 0.0)
                registry.apply(RunEvent(RunChange.CLOSED, assembler.run), 20.0 * number)
                registry.apply(RunEvent(RunChange.FINAL, assembler.run), 20.0 * number)
            exceeded += len({excess.run.run_id for excess in watch.excesses})
            runs += len(recorded)
    assert runs >= 2_000 * shuffles
    assert 0 < exceeded <= PROMISED * runs


def test_service_reports_an_open_run_within_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = kept_globally(monkeypatch)
    with serving() as running:
        running.send([one for number in range(1, 1 + USUAL) for one in run_of(number, ["a", "b"])])
        running.post("traces", body_of(run_spans(900, "book " * 20, failed="book")[1:]))
        running.clock.advance(1.0)
        running.writer_came_round()
        until(
            lambda: running.sum("agent_reliability_run_excess_total", gen_ai_agent_name="support"),
            "the counter",
        )
        assert running.sum("agent_reliability_open_run_usage", kind="failing_streak") == 19 / 5
        events = [
            one.log_record
            for one in kept.emitted
            if one.log_record.event_name == "agent_reliability.run_excess"
        ]
        assert [event.attributes["agent.reliability.excess.kind"] for event in events] == [
            "failing_streak"
        ]
        assert events[0].body["message"] == (
            "an open run has 19 retries of one failing call in a row; the bound by the "
            "windows of its service is 5"
        )


@pytest.mark.parametrize("error", [OSError, SystemExit, KeyboardInterrupt])
def test_on_excess_is_called_within_two_seconds_and_its_failure_harms_nobody(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Guard, "loud", False)
    before = set(threading.enumerate())
    failed = Guard.faults["calling on_excess"]
    calls: list[tuple[Excess, float]] = []

    def called(excess: Excess) -> None:
        calls.append((excess, time.monotonic()))
        raise error

    meters = Meters()
    host = provider(ReliabilitySpanProcessor(meter_provider=meters.provider, on_excess=called))
    (watching,) = set(threading.enumerate()) - before
    tracer = host.get_tracer("test")
    for _ in range(USUAL):
        run(tracer)
    host.force_flush()
    with agent_run(tracer):
        for _ in range(20):
            insist(tracer)
        last = time.monotonic()
        until(lambda: calls, "the callback")
        (excess, at) = calls[0]
        assert INTERVAL_S <= 1.0
        assert at - last < 20.0  # however slow this machine is
        assert (excess.kind, excess.value) == ("failing_streak", 19)
        insist(tracer)
    assert meters.look().value("run.excess", kind="failing_streak") == 1
    assert len(calls) == 1
    assert Guard.faults["calling on_excess"] == failed + 1
    assert watching.is_alive()
    host.shutdown()


def insist(tracer: Any) -> None:
    tool_call(tracer, "book", **{"gen_ai.tool.call.arguments": "{}", "error.type": "timeout"})


def test_without_on_excess_there_is_no_thread_of_ours() -> None:
    before = set(threading.enumerate())
    meters = Meters()
    host = provider(ReliabilitySpanProcessor(meter_provider=meters.provider, watch={"calls": 3}))
    tracer = host.get_tracer("test")
    with agent_run(tracer):
        for _ in range(4):
            tool_call(tracer)
        assert meters.look().value("run.excess", kind="calls") == 1
    assert set(threading.enumerate()) <= before
    host.shutdown()
