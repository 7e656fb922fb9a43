from __future__ import annotations

from collections.abc import Iterable
from operator import add
from typing import Any, cast

import pytest
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource

from otel_reliability.config import Settings, TelemetrySettings, WindowSettings
from otel_reliability.telemetry import names, points
from otel_reliability.telemetry.attributes import of_agent
from otel_reliability.telemetry.instruments import Observed, Point, snapshot
from otel_reliability.telemetry.ledger import ToolLedger
from otel_reliability.telemetry.otlp_cells import Temporality
from otel_reliability.telemetry.otlp_requests import Requests
from otel_reliability.telemetry.recorder import Recorder
from otel_reliability.telemetry.standing import Standing
from otel_reliability.testing import call, run
from tests.telemetry.numbers import RESOURCE, Histogram, Numbers, Told, metrics_of, otlp_numbers, points_of, told

TWO_WINDOWS = (WindowSettings("recent", last=100), WindowSettings("short", last=5))


def sent(requests: Requests, *, taken: bool = True) -> list[bytes]:
    """The bodies of one sending, of which all are taken or none."""
    found = list(requests.write())
    if taken:
        for request in found:
            requests.taken(request)
        requests.done()
    return [request.body for request in found]


def kinds_of(bodies: Iterable[bytes]) -> dict[str, tuple[str | None, str, str, Any]]:
    """Kind, unit, description and temporality of each metric."""
    found: dict[str, tuple[str | None, str, str, Any]] = {}
    for metric in metrics_of(bodies):
        kind = metric.WhichOneof("data")
        data: Any = getattr(metric, kind or "")
        monotonic = (data.is_monotonic,) if kind == "sum" else ()
        more = () if kind == "gauge" else (data.aggregation_temporality, *monotonic)
        found[metric.name] = (kind, metric.unit, metric.description, more)
    return found


def sdk_request(of: Told, settings: Settings) -> bytes:
    """What the SDK and its encoder say of the same runs and windows."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], resource=Resource(RESOURCE), shutdown_on_exit=False)
    meter = provider.get_meter(names.SCOPE)
    recorder = Recorder(meter, settings, ToolLedger(settings, 1_000))
    recorder.record(of.runs, of.standings)
    recorder.score(of.scored)
    seen = [*points.of_fleet(of.engine.fleet), *points.beside_windows(of.engine)]
    Observed(meter, names.gauges(), lambda: snapshot(seen), lambda: None)
    data = reader.get_metrics_data()
    assert data is not None
    return encode_metrics(data).SerializeToString()


@pytest.mark.parametrize(
    "settings",
    [Settings(), Settings(windows=TWO_WINDOWS, telemetry=TelemetrySettings(standard_metrics=True))],
    ids=["one window", "two windows, and the standard metrics"],
)
def test_our_bytes_say_what_the_sdk_says(settings: Settings) -> None:
    """The same metrics, kinds, units, attributes and values as through the SDK and its encoder, which is the oracle."""
    of = told("support", "refunds", 'a "quoted" näme', settings=settings)
    ours, theirs = sent(Requests(of.exposition, RESOURCE)), [sdk_request(of, settings)]

    assert otlp_numbers(ours) == otlp_numbers(theirs)
    assert kinds_of(ours) == kinds_of(theirs)
    assert len(otlp_numbers(ours)) > 150


def test_the_sender_is_on_the_resource() -> None:
    """Who tells the numbers stands on the resource, and the scope has no version: that would start every series anew."""
    (body,) = sent(Requests(told("support").exposition, RESOURCE))
    (resource,) = ExportMetricsServiceRequest.FromString(body).resource_metrics

    assert {pair.key: pair.value.string_value for pair in resource.resource.attributes} == RESOURCE
    assert [(scope.scope.name, scope.scope.version) for scope in resource.scope_metrics] == [(names.SCOPE, "")]


def test_points_carry_their_times_and_traces() -> None:
    """Counters and histograms count from their start; an exemplar is the run that was recorded last, with its trace."""
    of = told("support")
    of.clock.advance(5)
    metrics = {metric.name: metric for metric in metrics_of(sent(Requests(of.exposition, RESOURCE)))}
    (score,) = points_of(metrics["agent.reliability.run.score"])
    counts: Any = points_of(metrics["agent.reliability.runs"])
    exemplar: Any = score.exemplars[0]
    start, now = of.book.wall() - 5 * 10**9, of.book.wall()

    assert {(point.start_time_unix_nano, point.time_unix_nano) for point in (score, *counts)} == {(start, now)}
    assert exemplar.trace_id in {one.trace_id for one in of.runs}
    assert exemplar.span_id == (1).to_bytes(8)
    assert exemplar.as_double == of.standings[of.runs[-1].run_id].score
    assert all(point.exemplars for point in counts)


def test_an_exemplar_is_told_once() -> None:
    """Exemplars are of what was measured since the last sending."""
    of = told("support")
    requests = Requests(of.exposition, RESOURCE)
    of.clock.advance(1)
    first = sum(len(point.exemplars) for metric in metrics_of(sent(requests)) for point in points_of(metric))
    of.clock.advance(1)
    second = sum(len(point.exemplars) for metric in metrics_of(sent(requests)) for point in points_of(metric))

    assert first > 0
    assert second == 0


@pytest.mark.parametrize("largest", [2_000, 20_000])
def test_requests_stay_below_a_size(largest: int) -> None:
    """However many numbers there are, each request is small enough for its receiver, and together they tell all."""
    of = told("support", "refunds", "search", "orders")
    whole, pieces = sent(Requests(of.exposition, RESOURCE)), sent(Requests(of.exposition, RESOURCE, largest=largest))

    assert len(pieces) > 1
    assert max(map(len, pieces)) < largest + 1_500
    assert otlp_numbers(pieces) == otlp_numbers(whole)
    assert kinds_of(pieces) == kinds_of(whole)


def test_a_gone_agent_has_its_series_ended_once() -> None:
    """Each series of an agent that expired is told once more, without a value; other agents go on."""
    of = told("support", "refunds")
    requests = Requests(of.exposition, RESOURCE)
    before = otlp_numbers(sent(requests))
    gone = _forget(of, "refunds")
    after, later = otlp_numbers(sent(requests)), otlp_numbers(sent(requests))

    ended = {key for key, value in after.items() if value is None}
    assert ended == {key for key in before if ("gen_ai.agent.name", "refunds") in key[1]}
    assert len(ended) > 30
    assert {key: value for key, value in after.items() if value is not None} == later
    assert gone not in {value for _, labels in later for _, value in labels}


def test_an_end_is_told_until_it_is_taken() -> None:
    """A receiver that was away learns of it when it is back."""
    of = told("support", "refunds")
    requests = Requests(of.exposition, RESOURCE)
    sent(requests)
    _forget(of, "refunds")
    lost, again, later = (otlp_numbers(sent(requests, taken=taken)) for taken in (False, True, True))

    assert _ended(lost) == _ended(again) != set()
    assert _ended(later) == set()


def test_an_agent_that_came_back_is_not_ended() -> None:
    """Gone and back between two sendings: its series never ended for the receiver."""
    of = told("support", "refunds")
    requests = Requests(of.exposition, RESOURCE)
    sent(requests)
    states: Any = of.engine.fleet
    key = next(key for key in of.engine.fleet.keys() if key.agent == "refunds")  # noqa: SIM118
    state = states._agents.pop(key)
    sent(requests, taken=False)
    states._agents[key] = state

    assert _ended(otlp_numbers(sent(requests))) == set()


def test_a_number_without_evidence_any_more_is_ended() -> None:
    """A gauge that has no value any more is over, not frozen at its last one."""
    of = told("support", runs=5)
    requests = Requests(of.exposition, RESOURCE)
    before = otlp_numbers(sent(requests))
    one, *rest = of.runs
    of.engine.fleet.agent(one.key).withdraw(one)  # pyright: ignore[reportOptionalMemberAccess]
    after = otlp_numbers(sent(requests))
    score = next(key for key in before if key[0] == "agent.reliability.score")

    assert rest
    assert before[score] is not None
    assert after[score] is None
    assert score not in otlp_numbers(sent(requests))


@pytest.mark.parametrize("temporality", ["delta", "lowmemory"])
def test_deltas_add_up_to_totals(temporality: Temporality) -> None:
    """Sent as what is new, counters and histograms add up to their totals, and nothing new is nothing sent."""
    of = told("support")
    totals = Requests(of.exposition, RESOURCE)
    deltas = Requests(of.exposition, RESOURCE, temporality)
    first = sent(deltas)
    nothing = sent(deltas)
    of.clock.advance(1)
    _record(of, "search", 80.0)
    second = sent(deltas)
    total = {key: value for key, value in otlp_numbers(sent(totals)).items() if key[0] in _RECORDED}
    parts = [
        {key: value for key, value in otlp_numbers(bodies).items() if key[0] in _RECORDED} for bodies in (first, second)
    ]

    assert {kind[3][0] for name, kind in kinds_of(first).items() if name in _RECORDED} == {1}
    assert not set(kinds_of(nothing)) & _RECORDED
    assert 0 < len(parts[1]) < len(parts[0])
    assert _rounded(_added(*parts)) == _rounded(total)


def test_a_delta_that_was_not_taken_is_told_again() -> None:
    """What a receiver did not take is still new to it."""
    of = told("support")
    deltas = Requests(of.exposition, RESOURCE, "delta")
    lost, again = otlp_numbers(sent(deltas, taken=False)), otlp_numbers(sent(deltas))

    assert lost == again


def test_each_delta_begins_where_the_last_one_ended() -> None:
    """Times of deltas meet."""
    of = told("support")
    deltas = Requests(of.exposition, RESOURCE, "delta")
    of.clock.advance(3)
    (first,) = points_of(next(one for one in metrics_of(sent(deltas)) if one.name == "agent.reliability.run.score"))
    of.clock.advance(4)
    _record(of, "search", 80.0)
    (second,) = points_of(next(one for one in metrics_of(sent(deltas)) if one.name == "agent.reliability.run.score"))

    assert second.start_time_unix_nano == first.time_unix_nano
    assert second.time_unix_nano == first.time_unix_nano + 4 * 10**9


def test_own_numbers_are_told_beside_those_of_agents() -> None:
    """Self-telemetry: counters count from the start, levels are sums that may fall, ages are gauges."""
    own: list[Point] = [
        (names.SPANS.name, 7, {"disposition": "used"}),
        (names.OPEN_RUNS.name, 3, {}),
        (names.EVENT_LAG.name, 0.5, {}),
        (names.SELF_RUNS.name, 2, {"nested": True}),
    ]
    of = told("support", own=own)
    bodies = sent(Requests(of.exposition, RESOURCE))
    numbers, kinds = otlp_numbers(bodies), kinds_of(bodies)

    assert numbers["otel_reliability.spans", frozenset({("disposition", "used")})] == 7
    assert numbers["otel_reliability.runs", frozenset({("nested", True)})] == 2
    assert [
        kinds[name][::3]
        for name in ("otel_reliability.spans", "otel_reliability.runs.open", "otel_reliability.event_lag")
    ] == [
        ("sum", (2, True)),
        ("sum", (2, False)),
        ("gauge", ()),
    ]


def test_a_text_that_no_wire_can_hold_is_mended() -> None:
    """A half of a surrogate pair in a name costs its sign, not the whole sending."""
    of = told("half \ud800 pair")
    numbers = otlp_numbers(sent(Requests(of.exposition, RESOURCE)))

    assert any(("gen_ai.agent.name", "half ? pair") in labels for _, labels in numbers)


_RECORDED = frozenset(spec.name for spec in (*names.COUNTERS, *names.HISTOGRAMS))


def _ended(numbers: Numbers) -> set[Any]:
    return {key for key, value in numbers.items() if value is None}


def _forget(of: Told, agent: str) -> str:
    """An agent expires: its windows and its series go."""
    fleet: Any = of.engine.fleet
    key = next(key for key in of.engine.fleet.keys() if key.agent == agent)  # noqa: SIM118
    del fleet._agents[key]
    of.engine.sessions.forget(key)
    of.book.keep({tuple(of_agent(key).items()) for key in of.engine.fleet.keys()})  # noqa: SIM118
    return agent


def _record(of: Told, tool: str, score: float) -> None:
    """One more run of the one agent is recorded."""
    key = of.runs[0].key
    one = run(tool_calls=(call(tool, agent=key.agent),), path=[tool], key=key)
    of.recorder.record([one], {one.run_id: Standing(key, score)})


def _added(*parts: Numbers) -> Numbers:
    found: Numbers = {}
    for part in parts:
        for key, value in part.items():
            found[key] = value if key not in found else _plus(found[key], value)
    return found


def _plus(one: Any, other: Any) -> Any:
    """The sum of two values, or of two histograms as `value_of` gives them."""
    if not isinstance(one, tuple):
        return one + other
    count, total, bounds, buckets = cast("Histogram", one)
    more, extra, _, others = cast("Histogram", other)
    return count + more, total + extra, bounds, tuple(map(add, buckets, others))


def _rounded(numbers: Numbers) -> Numbers:
    """Sums that were taken apart and put together again differ in their last digits."""
    return {key: _round(value) for key, value in numbers.items()}


def _round(value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    count, total, bounds, buckets = cast("Histogram", value)
    return count, round(total, 9), bounds, buckets
