"""The service among real parts: an SDK and a Collector before it, a Collector and Prometheus behind it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from otel_reliability.config import Settings
from otel_reliability.engine import Engine
from otel_reliability.model.run import CloseReason
from otel_reliability.testing import EPOCH_NS, FakeClock, traces_protobuf
from tests.real.collector.handle import Collectors, Config
from tests.real.pipelines import pipeline
from tests.real.ports import HOST, free_port
from tests.real.prometheus.handle import Prometheuses, Promtool
from tests.real.waiting import until
from tests.real.web import ask
from tests.service.running import Running, serving
from tests.telemetry.numbers import prometheus_numbers, spans_of
from tests.telemetry.spans import agent_run, tool_call

pytestmark = pytest.mark.real

SOON = {"initial_interval": "100ms", "max_interval": "300ms", "multiplier": 1.5, "max_elapsed_time": "60s"}
PER_SERVER = frozenset({"job", "instance", "otel_scope_name", "otel_scope_version", "otel_scope_schema_url"})
"""Labels that say by which way a number came."""


def to_service(running: Running, protocol: str) -> Config:
    """A Collector that sends spans on to the service."""
    exporter: Mapping[str, Any] = {
        "otlp": {"endpoint": running.target, "tls": {"insecure": True}, "retry_on_failure": SOON},
        "otlp_http": {"endpoint": running.url("http"), "retry_on_failure": SOON},
    }
    return {
        "receivers": {"otlp": {}},
        "processors": {"batch": {"timeout": "50ms"}},
        "exporters": {protocol: exporter[protocol]},
        "service": {"pipelines": {"traces": pipeline(["otlp"], [protocol], ["batch"])}},
    }


def now() -> FakeClock:
    """A clock that shows what the machine's does, and stands still until it is wound."""
    return FakeClock((time.time_ns() - EPOCH_NS) / 1e9)


def test_from_an_agent_to_a_question(collector: Collectors, prometheus: Prometheuses) -> None:
    """SDK → Collector → service → Prometheus: PromQL gives the numbers of the agent's runs."""
    with serving({"metrics": {"min_runs": 3}}, clock=now()) as running:
        before = collector(to_service(running, "otlp"))
        provider = TracerProvider(resource=Resource({"service.name": "bookshop"}), shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{before.http}/v1/traces")))
        tracer = provider.get_tracer("test")
        for number in range(6):
            with agent_run(tracer, "seller"):
                tool_call(tracer, "search")
                tool_call(tracer, "sell" if number % 2 else "refund")
        provider.shutdown()
        until(lambda: running.service.engine.open_runs == 6, "six runs")
        running.settle()
        server = prometheus({"reliability": str(running.service.addresses["metrics"])})
        labels = 'service_name="bookshop",gen_ai_agent_name="seller"'
        entropy = server.ask.wait(f"agent_reliability_path_entropy{{{labels}}}")

        assert [sample.value for sample in entropy] == [pytest.approx(1 / 2.584962500721156)]
        assert server.ask.value(f"sum(agent_reliability_runs_total{{{labels}}})") == 6
        assert server.ask.value(f'agent_reliability_tool_calls_total{{{labels},gen_ai_tool_name="sell"}}') == 3


@pytest.mark.parametrize("protocol", ["otlp", "otlp_http"])
def test_the_collector_waits_for_us_and_loses_nothing(collector: Collectors, protocol: str) -> None:
    """While the service has no room the Collector is told when to come again, under the hint of its protocol, and does."""
    with serving() as running:
        before = collector(to_service(running, protocol))
        room = running.service.intake.room
        place = room.place(room.capacity)
        spans = spans_of("support", 40, 1)
        for at in range(0, len(spans), 10):
            body = traces_protobuf(spans[at : at + 10])
            assert (
                ask(f"{before.http}/v1/traces", body=body, headers={"Content-Type": "application/x-protobuf"}).status
                == 200
            )
        until(lambda: room.refused >= 3, "the Collector to be refused")
        place.release()
        until(lambda: running.service.engine.accounts["received", ""] >= len(spans), "everything to arrive")
        running.settle()

        assert running.sum("agent_reliability_runs_total", gen_ai_agent_name="support") == 40
        assert running.sum("otel_reliability_spans_total", disposition="received") == len(spans)
        assert before.count("otelcol_exporter_send_failed_spans") == 0


def test_numbers_are_the_same_by_every_way(collector: Collectors, prometheus: Prometheuses) -> None:
    """Scraped from us, pushed through a Collector and scraped there, asked of Prometheus, and read from a recording."""
    spans = [*spans_of("support", 12, 1), *spans_of("refunds", 9, 200)]
    port = free_port()
    pushed: Config = {
        "receivers": {"otlp": {}},
        "exporters": {"prometheus": {"endpoint": f"{HOST}:{port}"}},
        "service": {"pipelines": {"metrics": pipeline(["otlp"], ["prometheus"])}},
    }
    behind = collector(pushed)
    push = {"endpoint": behind.http + "/v1/metrics", "protocol": "http/protobuf", "interval": "200ms"}
    with serving({"metrics": {"min_runs": 5}}, push=push) as running:
        running.post("traces", traces_protobuf(spans))
        running.settle()
        ours = {key: value for key, value in _numbers(running.metrics()).items() if key[0].startswith("agent_")}
        until(lambda: _agents(port).keys() >= ours.keys(), "everything to be pushed")
        by_collector = _agents(port)
        server = prometheus({"reliability": str(running.service.addresses["metrics"])})
        asked = server.ask.wait('{__name__=~"agent_reliability_.*"}', lambda samples: len(samples) >= len(ours))
        by_promql = {(sample.labels["__name__"], _own(sample.labels)): sample.value for sample in asked}

    engine = Engine(Settings.from_mapping({"metrics": {"min_runs": 5}}), clock=lambda: 0.0, wall=None)
    engine.receive(spans)
    engine.flush(CloseReason.END_OF_INPUT)
    support = next(key for key in engine.fleet.keys() if key.agent == "support")  # noqa: SIM118
    (window,) = engine.fleet.agent(support).windows.values()  # pyright: ignore[reportOptionalMemberAccess]

    assert by_collector == ours
    assert by_promql == ours
    assert len(ours) > 200
    for name in (
        "score",
        "path_entropy",
        "tool_variance",
        "retries_per_run",
        "token_budget_pressure",
        "path_similarity",
    ):
        (value,) = [
            value
            for (sample, labels), value in ours.items()
            if sample == f"agent_reliability_{name}" and ("gen_ai_agent_name", "support") in labels
        ]
        assert value == window.reading(name).value


def test_a_gone_agent_is_gone_behind_a_collector_too(collector: Collectors) -> None:
    """The flag that we send makes the Collector let go of the series at once, not after its own five minutes."""
    port = free_port()
    config: Config = {
        "receivers": {"otlp": {}},
        "exporters": {"prometheus": {"endpoint": f"{HOST}:{port}"}},
        "service": {"pipelines": {"metrics": pipeline(["otlp"], ["prometheus"])}},
    }
    behind = collector(config)
    push = {"endpoint": f"http://{behind.grpc}", "interval": "100ms"}
    with serving({"limits": {"agent_idle": "1h"}}, push=push) as running:
        running.post("traces", traces_protobuf(spans_of("support", 5, 1)))
        running.settle()
        until(
            lambda: any(("gen_ai_agent_name", "support") in labels for _, labels in _agents(port)),
            "the agent to be pushed",
        )
        running.clock.advance(4_000)
        running.writer_came_round()
        until(
            lambda: not any(("gen_ai_agent_name", "support") in labels for _, labels in _agents(port)),
            "the agent to be gone",
            patience=10,
        )


def test_exemplars_lead_to_the_trace_of_a_run(prometheus: Prometheuses) -> None:
    """Prometheus keeps them from OpenMetrics: from a histogram of scores to the run."""
    with serving({"metrics": {"min_runs": 2}}, clock=now()) as running:
        running.post("traces", traces_protobuf(spans_of("support", 6, 1)))
        running.settle()
        server = prometheus({"reliability": str(running.service.addresses["metrics"])})
        server.ask.wait("agent_reliability_run_score_count")
        at = running.clock.wall() / 1e9

        def found() -> list[Mapping[str, Any]]:
            return list(server.ask.exemplars("agent_reliability_run_score_bucket", at - 3_600, at + 3_600))

        exemplars = until(found, "exemplars")

    assert {len(one["labels"]["trace_id"]) for one in exemplars} == {32}
    assert {one["labels"]["trace_id"] for one in exemplars} <= {f"{trace:032x}" for trace in range(1, 7)}


def test_promtool_finds_nothing_wrong(promtool: Promtool) -> None:
    """Names, types and text are as Prometheus wants them, but that it takes the bits of an entropy for a size."""
    with serving() as running:
        running.post("traces", traces_protobuf(spans_of("support", 12, 1)))
        running.settle()
        done = promtool("check", "metrics", stdin=running.metrics())
    complaints = [
        line
        for line in done.stderr.splitlines()
        if not line.startswith("agent_reliability_path_entropy_bits use base unit")
    ]

    assert done.stdout == ""
    assert complaints == []


def _agents(port: int) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """What a Collector's Prometheus exporter tells of agents."""
    numbers = _numbers(ask(f"http://{HOST}:{port}/metrics").text)
    return {key: value for key, value in numbers.items() if key[0].startswith("agent_")}


def _numbers(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Samples by name and labels, without those that say by which way they came."""
    return {(name, _own(dict(labels))): value for (name, labels), value in prometheus_numbers(text).items()}


def _own(labels: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset((key, value) for key, value in labels.items() if key not in PER_SERVER | {"__name__"})
