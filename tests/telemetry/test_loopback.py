from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent import futures
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import grpc
import pytest
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpExporter
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExporter, PeriodicExportingMetricReader

from otel_reliability.processor import ReliabilitySpanProcessor
from tests.telemetry.spans import RESOURCE, provider, run


class Receiver:
    """An OTLP receiver on loopback: what it was sent, decoded."""

    def __init__(self) -> None:
        self.requests: list[ExportMetricsServiceRequest] = []

    def metrics(self) -> dict[str, Metric]:
        """The metrics of the last request, by name."""
        groups = self.requests[-1].resource_metrics
        return {metric.name: metric for group in groups for scope in group.scope_metrics for metric in scope.metrics}


@pytest.fixture
def over_grpc() -> Iterator[tuple[Receiver, MetricExporter]]:
    """A receiver, and the SDK's exporter to it, over gRPC."""
    receiver, server = Receiver(), grpc.server(futures.ThreadPoolExecutor(1))

    def export(request: ExportMetricsServiceRequest, _: grpc.ServicerContext) -> ExportMetricsServiceResponse:
        receiver.requests.append(request)
        return ExportMetricsServiceResponse()

    method = grpc.unary_unary_rpc_method_handler(
        export,
        request_deserializer=ExportMetricsServiceRequest.FromString,
        response_serializer=ExportMetricsServiceResponse.SerializeToString,
    )
    service = "opentelemetry.proto.collector.metrics.v1.MetricsService"
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Export": method}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield receiver, GrpcExporter(endpoint=f"127.0.0.1:{port}", insecure=True)
    server.stop(None).wait()


@pytest.fixture
def over_http() -> Iterator[tuple[Receiver, MetricExporter]]:
    """A receiver, and the SDK's exporter to it, over HTTP."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.requests.append(ExportMetricsServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Nobody reads it."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield receiver, HttpExporter(endpoint=f"http://127.0.0.1:{server.server_port}/v1/metrics")
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("transport", ["over_grpc", "over_http"])
def test_a_real_receiver_gets_gauges_counters_histograms_and_exemplars(
    transport: str, request: pytest.FixtureRequest
) -> None:
    """Through the SDK's own reader and exporter, over a real connection: names, units, kinds, values, traces."""
    receiver, exporter = request.getfixturevalue(transport)
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=3_600_000)
    meters = MeterProvider([reader], resource=RESOURCE, shutdown_on_exit=False)
    host = provider(ReliabilitySpanProcessor(meter_provider=meters))
    for number in range(6):
        run(host.get_tracer("test"), "search read" if number % 2 else "search")
    host.force_flush()
    meters.force_flush()
    found = receiver.metrics()
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
    assert [point.as_int for point in runs.data_points] == [6]

    (distance,) = found["agent.reliability.run.path_distance"].histogram.data_points
    assert (distance.count, len(distance.explicit_bounds)) == (6, 20)
    assert distance.exemplars
    assert all(len(exemplar.trace_id) == 16 and any(exemplar.trace_id) for exemplar in distance.exemplars)
    assert found["otel_reliability.spans"].sum.is_monotonic
    assert not found["otel_reliability.runs.open"].sum.is_monotonic
