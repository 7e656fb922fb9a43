from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, use_span

from otel_reliability.config import MetricSettings, Settings, TelemetrySettings
from otel_reliability.engine import Engine
from otel_reliability.model.run import (
    AgentKey,
    ModelCall,
    Outcome,
    Run,
    RunChange,
    RunEvent,
    ToolCall,
)
from otel_reliability.read_view import ReadView
from otel_reliability.telemetry import names
from otel_reliability.telemetry.instruments import Recorded
from otel_reliability.telemetry.ledger import ToolLedger
from otel_reliability.telemetry.recorder import Recorder, RunReadings, own_calls, readings_of
from otel_reliability.testing import KEY, at, call, run, trace_id
from otel_reliability.windows.agents import OTHER_AGENT
from tests.telemetry.meters import Collected, Meters


def sink_of(meters: Meters) -> Recorded:
    return Recorded(
        meters.provider.get_meter("test"), (*names.COUNTERS, *names.HISTOGRAMS, *names.STANDARD)
    )


def recorded(*runs: Run, readings: RunReadings | None = None, standard: bool = False) -> Collected:
    meters = Meters()
    settings = Settings(telemetry=TelemetrySettings(standard))
    recorder = Recorder(sink_of(meters), settings, ToolLedger(settings))
    recorder.record(runs, {one.run_id: readings or RunReadings(one.key) for one in runs})
    return meters.look()


def test_runs_are_counted_by_outcome() -> None:
    found = recorded(
        *(
            run(number=number, outcome=outcome)
            for number, outcome in enumerate([*Outcome, Outcome.FAILURE])
        )
    )

    assert found.values("runs", "outcome") == {
        "success": 1,
        "failure": 2,
        "completed": 1,
        "unknown": 1,
        "paused": 1,
        "cancelled": 1,
    }
    assert (
        found.value("runs", outcome="failure", gen_ai__agent__name="agent", service__name="shop")
        == 2
    )


def test_a_sampled_run_counts_with_its_weight() -> None:
    """Under head sampling a run stands for several in every counter; histograms hold it once."""
    calls = (call("search", 1, ok=False), call("search", 2, retry=True, chain=3))
    found = recorded(run(tool_calls=calls, weight=5), readings=RunReadings(KEY, score=80.0))

    assert found.value("runs", outcome="completed") == 5
    assert found.value("tool_calls", ok=False) == 5
    assert found.value("retries") == 5
    assert found.value("retry_explosions") == 5
    assert found.value("run.score") == 1


def test_outcomes_that_rates_are_made_of_begin_at_zero() -> None:
    """The first failure is a rise of its series, and not the beginning of one."""
    assert recorded(run()).values("runs", "outcome") == {"completed": 1, "success": 0, "failure": 0}
    assert recorded(run(outcome=Outcome.FAILURE)).values("runs", "outcome") == {
        "success": 0,
        "failure": 1,
    }


@pytest.mark.parametrize(
    ("objectives", "ended_in_error", "counted"),
    [
        ([{"errors": 0.1}], True, 1),
        ([{"errors": 0.1}], False, 0),
        ([{"errors": 0.1}], None, 0),
        ([{"success": 0.9}], True, None),
        ([{"agent": "another", "errors": 0.1}], True, None),
        ([], True, None),
    ],
)
def test_errors_are_counted_where_an_objective_is_about_them(
    objectives: list[dict[str, Any]], ended_in_error: bool | None, counted: int | None
) -> None:
    meters = Meters()
    settings = Settings.load({"objectives": objectives})
    recorder = Recorder(sink_of(meters), settings, ToolLedger(settings))
    recorder.record([run(ended_in_error=ended_in_error)], {"run-1": RunReadings(KEY)})

    assert meters.look().value("run.errors") == counted


def test_tool_calls_are_told_by_tool_and_success() -> None:
    calls = (call("search", 1, ok=False), call("search", 2, retry=True, chain=1), call("read", 3))
    found = recorded(run(tool_calls=calls))

    assert found.value("tool_calls", gen_ai__tool__name="search", ok=False) == 1
    assert found.value("tool_calls", gen_ai__tool__name="search", ok=True) == 1
    assert found.value("tool_calls", gen_ai__tool__name="read", ok=True) == 1
    assert found.value("retries", gen_ai__tool__name="search") == 1
    assert found.value("retry_explosions") is None


def test_the_fourth_attempt_explodes() -> None:
    calls = tuple(call("search", n, ok=False, retry=n > 0, chain=n) for n in range(6))

    assert recorded(run(tool_calls=calls)).value("retry_explosions") == 1
    assert recorded(run(tool_calls=calls[:3])).value("retry_explosions") is None


def test_absent_evidence_is_not_recorded() -> None:
    found = recorded(run(None))

    assert set(found.metrics) == {"agent.reliability.runs", "agent.reliability.run.duration"}


def test_histograms_hold_the_run_with_its_trace() -> None:
    """Every histogram's exemplar is the run's own trace, not whatever span of the host is current
    on this thread.
    """
    host = NonRecordingSpan(SpanContext(99, 99, False, TraceFlags(TraceFlags.SAMPLED)))
    readings = RunReadings(KEY, score=87.5, path_distance=0.25)
    with use_span(host):
        found = recorded(run(["search"], 7, token_pressure=0.4), readings=readings)

    sums = {
        name: point.sum
        for name in ("run.score", "run.path_distance", "run.token_pressure", "run.retries")
        for point in found.points(name)
    }
    assert sums == {
        "run.score": 87.5,
        "run.path_distance": 0.25,
        "run.token_pressure": 0.4,
        "run.retries": 0,
    }
    for metric in found.metrics:
        traces = {
            exemplar.trace_id for point in found.points(metric) for exemplar in point.exemplars
        }
        assert traces == {7}, metric


def test_a_run_without_a_root_leaves_no_exemplar() -> None:
    """Its root never came, so there is no span to show; the host's current one is not shown
    instead.
    """
    host = NonRecordingSpan(SpanContext(99, 99, False, TraceFlags(TraceFlags.SAMPLED)))
    with use_span(host):
        found = recorded(run(["search"], root_span_id=None, implicit=True, incomplete=True))

    assert found.value("runs", outcome="completed") == 1
    assert not [
        exemplar
        for name in found.metrics
        for point in found.points(name)
        for exemplar in point.exemplars
    ]


def test_agents_beyond_the_limit_share_counters_and_have_no_histograms() -> None:
    found = recorded(run(["search"], token_pressure=0.5), readings=RunReadings(OTHER_AGENT))

    assert found.value("runs", gen_ai__agent__name="__other__", outcome="completed") == 1
    assert (
        found.value("tool_calls", gen_ai__agent__name="__other__", gen_ai__tool__name="__other__")
        == 1
    )
    assert not found.points("run.token_pressure")


def test_revisions_are_counted_by_agent() -> None:
    meters = Meters()
    settings = Settings()
    recorder = Recorder(sink_of(meters), settings, ToolLedger(settings))
    recorder.revise([run(), run(number=2)], {"run-1": RunReadings(KEY), "run-2": RunReadings(KEY)})

    assert meters.look().value("run.revisions", gen_ai__agent__name="agent") == 2


def test_the_standard_metrics_come_where_they_are_asked_for() -> None:
    models = (ModelCall("model-1", 1, 1, False, "agent", at(1), at(2)),) * 3
    one = run(["search"], model_calls=models)

    assert not [name for name in recorded(one).metrics if name.startswith("gen_ai.")]
    found = recorded(one, standard=True)
    assert {
        name: found.points(name)[0].sum for name in found.metrics if name.startswith("gen_ai.")
    } == {
        "gen_ai.invoke_agent.duration": 2.0,
        "gen_ai.invoke_agent.tool_calls": 1,
        "gen_ai.invoke_agent.inference_calls": 3,
        "gen_ai.execute_tool.duration": 1.0,
    }
    assert found.value("gen_ai.execute_tool.duration", gen_ai__tool__name="search") == 1


# --- Readings -------------------------------------------------------------------------------------


def fleet_of(*runs: Run, settings: Settings | None = None) -> ReadView:
    engine = Engine(settings or Settings(metrics=MetricSettings(min_runs=2)), wall=None)
    engine.receive_events(RunEvent(RunChange.CLOSED, one) for one in runs)
    return engine.view


def reading_of(one: Run, agents: ReadView) -> RunReadings:
    return readings_of([one], agents)[one.run_id]


def test_readings_are_the_agents_score_and_the_distance_to_its_other_runs() -> None:
    common = [run(["search", "reply"], number) for number in range(1, 5)]
    different = run(["guess"], 5)
    agents = fleet_of(*common, different)
    state = agents.agent(KEY)
    assert state is not None
    score = state.windows["recent"].reading("score").value

    assert score is not None
    assert reading_of(different, agents) == RunReadings(KEY, score, 1.0)
    assert reading_of(common[0], agents) == RunReadings(KEY, score, 0.25)


def test_readings_without_enough_data_are_none() -> None:
    only = run(["search"])
    left = run(["search"], 9)

    assert reading_of(only, fleet_of(only)) == RunReadings(KEY, None, None)
    assert reading_of(left, fleet_of(run(["search"], 1), run(["read"], 2))).path_distance is None
    assert reading_of(left, fleet_of()) == RunReadings(OTHER_AGENT)


# --- Calls of nested runs -------------------------------------------------------------------------


def of(agent: str, calls: list[ToolCall], number: int, *, nested: bool, seconds: float) -> Run:
    """A run of an agent in trace 1 with those calls, lasting that long."""
    key = AgentKey("", "shop", "test", agent)
    made = run([], number, key=key, nested=nested, trace_id=trace_id(1), tool_calls=tuple(calls))
    return replace(made, end_ns=made.start_ns + round(seconds * 1e9))


def counted(*runs: Run) -> list[tuple[str, str]]:
    return sorted(
        (found.key.agent, taken.name) for found, calls in own_calls(runs) for taken in calls
    )


def test_a_call_counts_for_the_agent_that_took_it() -> None:
    outer = call("ask", 1.0, agent="planner")
    inner = call("search", 2.0, agent="worker")
    planner = of("planner", [outer, inner], 1, nested=False, seconds=10)
    worker = of("worker", [inner], 2, nested=True, seconds=3)

    assert counted(planner, worker) == [("planner", "ask"), ("worker", "search")]


def test_three_levels_under_one_name() -> None:
    """Whether a call repeats one that failed is seen above only, where both are: it is the same
    call.
    """
    runs: list[Run] = []
    for depth, chain in enumerate((2, 1, 0)):
        calls = [
            call(name, at, retry=chain > 0, chain=chain)
            for at, name in enumerate(("ask", "dig", "search"), 1)
        ]
        runs.append(of("agent", calls[depth:], depth + 1, nested=depth > 0, seconds=10 - depth))

    assert counted(*runs) == [("agent", "ask"), ("agent", "dig"), ("agent", "search")]


def test_equal_calls_of_one_run_all_count() -> None:
    twin = call("search", 1.0)
    assert (
        counted(of("agent", [twin, twin], 1, nested=False, seconds=5)) == [("agent", "search")] * 2
    )
