from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import (
    OTLPMetricExporter as GrpcExporter,
)
from opentelemetry.exporter.otlp.proto.http.metric_exporter import (
    OTLPMetricExporter as HttpExporter,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

from otel_reliability.processor import ReliabilitySpanProcessor
from tests.telemetry.numbers import metrics_of
from tests.telemetry.receivers import Receiver, over_grpc, over_http
from tests.telemetry.spans import RESOURCE, provider, run


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_real_receiver_gets_gauges_counters_histograms_and_exemplars(transport: str) -> None:
    opened: AbstractContextManager[Receiver] = over_grpc() if transport == "grpc" else over_http()
    with opened as receiver:
        url = receiver.url
        exporter: Any = (
            GrpcExporter(url) if transport == "grpc" else HttpExporter(f"{url}/v1/metrics")
        )
        reader = PeriodicExportingMetricReader(exporter, export_interval_millis=3_600_000)
        meters = MeterProvider([reader], resource=RESOURCE, shutdown_on_exit=False)
        host = provider(ReliabilitySpanProcessor(meter_provider=meters))
        for number in range(6):
            run(host.get_tracer("test"), "search read" if number % 2 else "search")
        host.force_flush()
        meters.force_flush()
        found = {metric.name: metric for metric in metrics_of([receiver.came[-1].body])}
        host.shutdown()
        meters.shutdown()

    score = found["agent.reliability.score"]
    assert (score.unit, score.WhichOneof("data")) == ("{score}", "gauge")
    (point,) = score.gauge.data_points
    assert 0 < point.as_double < 100
    assert {attribute.key: attribute.value.string_value for attribute in point.attributes} == {
        "service.name": "shop",
        "deployment.environment.name": "test",
        "gen_ai.agent.name": "agent",
    }

    runs = found["agent.reliability.runs"].sum
    assert runs.is_monotonic
    assert runs.aggregation_temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
    assert sorted(point.as_int for point in runs.data_points) == [0, 0, 6]

    (distance,) = found["agent.reliability.run.path_distance"].histogram.data_points
    assert (distance.count, len(distance.explicit_bounds)) == (6, 10)
    assert distance.exemplars
    assert all(
        len(exemplar.trace_id) == 16 and any(exemplar.trace_id) for exemplar in distance.exemplars
    )
    assert found["otel_reliability.spans"].sum.is_monotonic
    assert not found["otel_reliability.runs.open"].sum.is_monotonic
