from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
from msgspec.structs import replace
from opentelemetry.sdk.metrics import Counter, Histogram
from opentelemetry.sdk.metrics.export import AggregationTemporality, MetricsData

from otel_reliability.telemetry import names
from otel_reliability.telemetry.instruments import Point
from otel_reliability.telemetry.otlp import (
    AgentMetrics,
    OtlpPush,
    batches,
    requests,
    resource_attributes,
)
from otel_reliability.telemetry.otlp import Resource as SdkResource
from otel_reliability.testing import KEY, call, run
from tests.service.certificates import Authority
from tests.telemetry.numbers import (
    RESOURCE,
    Recorded,
    metrics_of,
    otlp_numbers,
    points_of,
    recorded,
    value_of,
)
from tests.telemetry.receivers import over_grpc, over_http

CUMULATIVE = AggregationTemporality.CUMULATIVE
DELTA = AggregationTemporality.DELTA
RUNS = names.RUNS.name
SCORE = names.RUN_SCORE.name
OWN: list[Point] = [(names.OPEN_RUNS.name, 3, {})]


def exported(metrics: AgentMetrics, of: Recorded) -> dict[str, Any]:
    of.clock.advance(10)
    return {
        metric.name: metric
        for metric in metrics_of(requests(metrics.collect(of.clock.wall()), RESOURCE))
    }


def values(metric: Any) -> list[Any]:
    return [
        value[0] if isinstance(value, tuple) else value
        for value in map(value_of, points_of(metric))
    ]


def record(of: Recorded, number: int) -> None:
    one = run(number=number, tool_calls=(call("search"),))
    of.record([replace(one, key=KEY._replace(agent="support"))])


def test_cumulative_points_have_the_start_of_their_series() -> None:
    of = recorded("support")
    metrics = AgentMetrics(of.exposition)
    started = of.clock.wall()
    first = exported(metrics, of)
    point = first[SCORE].histogram.data_points[0]

    assert first[RUNS].sum.is_monotonic
    assert {one.start_time_unix_nano for one in points_of(first[RUNS])} == {started}
    assert {one.time_unix_nano for one in points_of(first["agent.reliability.score"])} == {
        started + 10**10
    }
    mean = point.sum / point.count
    assert point.min <= mean + 1e-9
    assert mean - 1e-9 <= point.max
    assert point.exemplars
    assert not exported(metrics, of)[SCORE].histogram.data_points[0].exemplars


def test_delta_points_hold_what_is_new() -> None:
    of = recorded("support")
    metrics = AgentMetrics(of.exposition, {Counter: DELTA, Histogram: DELTA})
    first = exported(metrics, of)
    quiet = exported(metrics, of)
    record(of, 900)
    then = exported(metrics, of)

    assert sum(values(first[RUNS])) == 12
    assert RUNS not in quiet
    assert SCORE not in quiet
    assert sum(values(then[RUNS])) == 1
    (point,) = points_of(then[RUNS])
    assert point.time_unix_nano - point.start_time_unix_nano == 10**10
    assert not then[SCORE].histogram.data_points[0].HasField("min")
    assert values(then["agent.reliability.window.runs"]) == values(
        first["agent.reliability.window.runs"]
    )


def test_series_that_ended_and_returned_starts_again() -> None:
    of = recorded("support")
    metrics = AgentMetrics(of.exposition, {Counter: DELTA})
    exported(metrics, of)
    of.registry.keep(set())
    of.clock.advance(60)
    record(of, 900)
    returned = of.clock.wall()

    assert values(exported(metrics, of)[RUNS]) == [1]
    told = points_of(exported(AgentMetrics(of.exposition), of)[RUNS])
    (cumulative,) = (point for point in told if value_of(point))
    assert (value_of(cumulative), cumulative.start_time_unix_nano) == (1, returned)


@pytest.mark.parametrize("most", [1, 7, 2_000])
def test_batches_hold_every_point_once(most: int) -> None:
    metrics = AgentMetrics(recorded("support", "refunds").exposition).collect(1)
    (whole,) = batches(metrics, SdkResource(RESOURCE), 10**9)
    parts = list(batches(metrics, SdkResource(RESOURCE), most))

    assert max(map(size, parts)) <= most
    assert sum(map(size, parts)) == size(whole)
    assert otlp_numbers(requests(metrics, RESOURCE, most)) == otlp_numbers(
        requests(metrics, RESOURCE)
    )


def size(data: MetricsData) -> int:
    found: Iterable[Any] = (
        m.data for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics
    )
    return sum(len(one.data_points) for one in found)


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_push_exports_agents_and_self_telemetry(
    protocol: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=blue")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta")
    of = recorded("support", own=OWN)
    with over_grpc() if protocol == "grpc" else over_http() as receiver:
        push = OtlpPush(of.exposition, RESOURCE, endpoint=receiver.url, protocol=protocol)
        push._provider.force_flush()
        record(of, 900)
        push.stop(10)
        first, last = (metrics_of([one.body]) for one in receiver.came)

    assert receiver.came[0].path.endswith(
        "/v1/metrics" if protocol != "grpc" else "MetricsService/Export"
    )
    assert receiver.came[0].headers["x-tenant"] == "blue"
    runs, open_runs = ({m.name: m for m in first}[name] for name in (RUNS, names.OPEN_RUNS.name))
    assert (sum(values(runs)), values(open_runs)) == (12, [3])
    assert [sum(values(metric)) for metric in last if metric.name == RUNS] == [1]
    assert push.exporter.outcomes == {"accepted": 2}


def test_failed_export_is_counted_and_the_next_one_has_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of = recorded("support", own=OWN)
    with over_http() as receiver:
        receiver.answers.append(400)
        push = OtlpPush(of.exposition, RESOURCE, endpoint=receiver.url, protocol="http/protobuf")
        push._provider.force_flush()
        push.stop(10)

    assert push.exporter.outcomes == {"failed": 1, "accepted": 1}
    assert otlp_numbers([receiver.came[0].body]) == otlp_numbers([receiver.came[1].body])


@pytest.mark.parametrize("trusted", [True, False])
def test_push_over_tls_verifies_the_receiver(
    trusted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = Authority(tmp_path, "ours")
    theirs = Authority(tmp_path, "theirs")
    server = ours.issue("server")
    client = ours.issue("client")
    pair = (server.key.read_bytes(), server.certificate.read_bytes())
    credentials = cast("Any", grpc).ssl_server_credentials(
        [pair], ours.certificate.read_bytes(), True
    )
    for name, file in (
        ("CERTIFICATE", (ours if trusted else theirs).certificate),
        ("CLIENT_KEY", client.key),
        ("CLIENT_CERTIFICATE", client.certificate),
        ("TIMEOUT", 2),
    ):
        monkeypatch.setenv(f"OTEL_EXPORTER_OTLP_METRICS_{name}", str(file))
    with over_grpc(credentials) as receiver:
        push = OtlpPush(recorded("support", own=OWN).exposition, RESOURCE, endpoint=receiver.url)
        push.stop(10)

    assert push.exporter.outcomes == ({"accepted": 1} if trusted else {"failed": 1})


def test_resource_attributes_are_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "team=a%20b,service.name=there")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "here")

    assert resource_attributes() == {"team": "a b", "service.name": "here"}
