"""The Python OTLP exporters as clients: what they send is taken, and what is refused for now they
send again.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http import Compression as HttpCompression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from tests.real.waiting import until
from tests.service.running import Running, serving
from tests.telemetry.spans import Keeping, agent_run, tool_call

Connect = Callable[[Running], SpanExporter]

EXPORTERS: dict[str, Connect] = {
    "grpc": lambda running: GrpcExporter(running.target, insecure=True),
    "grpc gzip": lambda running: GrpcExporter(
        running.target, insecure=True, compression=grpc.Compression.Gzip
    ),
    "http": lambda running: HttpExporter(running.url("http", "/v1/traces")),
    "http gzip": lambda running: HttpExporter(
        running.url("http", "/v1/traces"), compression=HttpCompression.Gzip
    ),
}


@pytest.mark.parametrize("connect", EXPORTERS.values(), ids=EXPORTERS)
def test_an_agent_under_the_sdk_is_measured(connect: Connect) -> None:
    with serving({"metrics": {"min_runs": 3}}) as running:
        provider = TracerProvider(
            resource=Resource({"service.name": "bookshop"}), shutdown_on_exit=False
        )
        provider.add_span_processor(SimpleSpanProcessor(connect(running)))
        tracer = provider.get_tracer("test")
        for _ in range(4):
            with agent_run(tracer, "seller"):
                tool_call(tracer, "search")
                tool_call(tracer, "sell")
        provider.shutdown()
        running.finalize()

        labels = {"service_name": "bookshop", "gen_ai_agent_name": "seller"}
        assert running.sum("agent_reliability_runs_total", **labels) == 4
        assert running.sum("agent_reliability_score", **labels) == 100
        assert (
            running.sum("agent_reliability_tool_calls_total", gen_ai_tool_name="sell", ok="true")
            == 4
        )


@pytest.mark.parametrize("connect", [EXPORTERS["grpc"], EXPORTERS["http"]], ids=["grpc", "http"])
def test_an_exporter_tries_again_when_it_was_told_to(connect: Connect) -> None:
    with serving() as running:
        keeping = Keeping()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(keeping)
        with agent_run(provider.get_tracer("test")):
            pass
        exporter = connect(running)
        budget = running.service.intake.budget
        place = budget.reserve(budget.capacity)
        requests = running.service.intake.requests

        with ThreadPoolExecutor(1) as pool:
            exported = pool.submit(exporter.export, keeping.ended)
            until(lambda: sum(requests.values()) >= 1, "a refusal")
            place.release()
            result = exported.result(60)
        exporter.shutdown()
        running.finalize()

        assert result is SpanExportResult.SUCCESS
        assert running.sum("otel_reliability_requests_total", outcome="queue_full") >= 1
        assert running.sum("otel_reliability_requests_total", outcome="accepted") == 1
        assert running.sum("agent_reliability_runs_total") == 1


def test_an_exporter_gives_up_what_is_refused_for_good() -> None:
    """A request that is too large is sent once. (Python's exporter over gRPC tries on, against the
    specification.)
    """
    with serving(max_request=1_000) as running:
        keeping = Keeping()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(keeping)
        with agent_run(provider.get_tracer("test"), text="x" * 2_000):
            pass
        exporter = EXPORTERS["http"](running)
        result = exporter.export(keeping.ended)
        exporter.shutdown()

        assert result is SpanExportResult.FAILURE
        assert running.sum("otel_reliability_requests_total", outcome="too_large") == 1
