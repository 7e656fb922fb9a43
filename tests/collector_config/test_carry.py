"""Each shipped configuration under a real Collector, between agents and a running service: what it
promises happens.

Those that carry metrics are in `tests/service/test_end_to_end.py`, where all ways to Prometheus are
compared.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs

from otel_reliability.model.span import OUTCOME, Evaluation
from tests.collector_config.shipped import shipped
from tests.otlp import logs_protobuf
from tests.real import otlp
from tests.real.collector.handle import Collector, Collectors, Config
from tests.real.pipelines import pipeline, spans_of, to_file
from tests.real.waiting import until
from tests.real.web import ask
from tests.service.fleet import AGENTS, perform, sending
from tests.service.served import Served, Services

pytestmark = pytest.mark.real

RUNS = 4
ALL = RUNS * len(AGENTS)
CHATTER = ExportLogsServiceRequest(
    resource_logs=[
        ResourceLogs(
            scope_logs=[ScopeLogs(log_records=[LogRecord(body=AnyValue(string_value="hello"))])]
        )
    ]
).SerializeToString()
"""A log record that judges nothing."""


def backend(collector: Collectors, out: Path) -> Collector:
    """The other back end: it writes what it gets to a file."""
    config: Config = {
        "receivers": {"otlp": {}},
        "exporters": {"file": to_file(out), "nop": {}},
        "service": {
            "pipelines": {
                "traces": pipeline(["otlp"], ["file"]),
                "logs": pipeline(["otlp"], ["nop"]),
            }
        },
    }
    return collector(config)


def judge(url: str, trace: bytes) -> None:
    """Send an evaluation of a run, and a log record that is none."""
    for body in (CHATTER, logs_protobuf([Evaluation("success", 0.0, None, 1, trace)])):
        assert (
            ask(
                f"{url}/v1/logs", body=body, headers={"Content-Type": "application/x-protobuf"}
            ).status
            == 200
        )


def final(service: Served, runs: int) -> None:
    until(
        lambda: service.sum("agent_reliability_runs_total") >= runs, f"{runs} runs to become final"
    )


def test_the_sidecar_gives_all_to_both(
    collector: Collectors, serve: Services, tmp_path: Path
) -> None:
    out = tmp_path / "spans.jsonl"
    service = serve()
    other = backend(collector, out)
    before = shipped(
        collector,
        "sidecar.yaml",
        OTEL_RELIABILITY_ENDPOINT=service.grpc,
        BACKEND_ENDPOINT=other.grpc,
    )
    with sending(before.http, "bookshop") as tracer:
        perform(tracer, RUNS)
    received = until(
        lambda: service.sum("otel_reliability_spans_total", disposition="received"), "spans"
    )
    spans = spans_of(out, int(received))
    judge(before.http, spans[0].span.trace_id)
    until(
        lambda: service.sum("otel_reliability_log_records_total", disposition="evaluation") == 1,
        "the evaluation",
    )
    final(service, ALL)

    assert service.sum("agent_reliability_runs_total") == ALL
    assert service.sum("otel_reliability_spans_total", disposition="received") == len(
        otlp.written(out)
    )
    assert service.sum("otel_reliability_log_records_total") == 1
    assert other.count("otelcol_receiver_accepted_log_records") >= 1


def test_langfuse_and_phoenix_get_what_the_service_gets(
    collector: Collectors, serve: Services, tmp_path: Path
) -> None:
    """Two Collectors stand for them; an outcome reaches the service alone."""
    outs = {name: tmp_path / f"{name}.jsonl" for name in ("langfuse", "phoenix")}
    stores = {name: backend(collector, out) for name, out in outs.items()}
    service = serve()
    before = shipped(
        collector,
        "langfuse-phoenix.yaml",
        OTEL_RELIABILITY_ENDPOINT=service.grpc,
        LANGFUSE_ENDPOINT=stores["langfuse"].http,
        LANGFUSE_AUTH="cHVibGljOnNlY3JldA==",
        PHOENIX_ENDPOINT=stores["phoenix"].http,
    )
    with sending(before.http, "bookshop") as tracer:
        perform(tracer, RUNS)
    received = until(
        lambda: service.sum("otel_reliability_spans_total", disposition="received"), "spans"
    )
    spans = {name: spans_of(out, int(received)) for name, out in outs.items()}
    outcome = outcome_of(spans["phoenix"][0].span.trace_id)
    kind = {"Content-Type": "application/x-protobuf"}
    assert ask(f"{before.http}/v1/logs", body=outcome, headers=kind).status == 200
    until(
        lambda: service.sum("otel_reliability_log_records_total", disposition="evaluation") == 1,
        "the outcome",
    )
    final(service, ALL)

    assert service.sum("agent_reliability_runs_total") == ALL
    for out in outs.values():
        assert len(otlp.written(out)) == service.sum(
            "otel_reliability_spans_total", disposition="received"
        )


def outcome_of(trace: bytes) -> bytes:
    """A log event that reports the outcome of a trace."""
    record = LogRecord(event_name=OUTCOME, time_unix_nano=2 * 10**18, trace_id=trace)
    record.attributes.add(key="reliability.run.success").value.bool_value = False
    return ExportLogsServiceRequest(
        resource_logs=[ResourceLogs(scope_logs=[ScopeLogs(log_records=[record])])]
    ).SerializeToString()


def test_the_gateway_taps_before_the_sampler(
    collector: Collectors, serve: Services, tmp_path: Path
) -> None:
    """The service counts every run, while the back end has the traces that failed; the rest of both
    is the sampler's.
    """
    out = tmp_path / "spans.jsonl"
    service = serve()
    other = backend(collector, out)
    failing = {"name": "failed", "type": "status_code", "status_code": {"status_codes": ["ERROR"]}}
    before = shipped(
        collector,
        "gateway-tail-sampling.yaml",
        overlay={
            "processors": {"tail_sampling": {"policies": [failing]}}
        },  # the one that draws lots left out
        OTEL_RELIABILITY_ENDPOINT=service.grpc,
        BACKEND_ENDPOINT=other.grpc,
        DECISION_WAIT="1s",
        QUEUE_DIRECTORY=str(tmp_path / "queue"),
    )
    with sending(before.http, "bookshop") as tracer:
        perform(tracer, RUNS)
    kept = {span.trace_id for _, span in spans_of(out, 1)}
    final(service, ALL)

    assert service.sum("agent_reliability_runs_total") == ALL
    assert len(kept) == 1  # the importer's run that insists
    assert {span.status.code for _, span in otlp.written(out)} >= {2}


def test_the_gateways_queue_outlives_it(
    collector: Collectors, serve: Services, tmp_path: Path
) -> None:
    service = serve(state=tmp_path / "state")
    service.kill()
    before = shipped(
        collector,
        "gateway-tail-sampling.yaml",
        OTEL_RELIABILITY_ENDPOINT=service.grpc,
        QUEUE_DIRECTORY=str(tmp_path / "queue"),
    )
    with sending(before.http, "bookshop") as tracer:
        perform(tracer, RUNS)
    until(
        lambda: before.count("otelcol_exporter_send_failed_spans") or "Will retry" in before.said(),
        "a failure",
    )
    before.kill()
    before.start()
    service.start()
    final(service, ALL)

    assert service.sum("agent_reliability_runs_total") == ALL
    assert service.sum("agent_reliability_tool_calls_total", gen_ai_agent_name="clerk") == 3 * RUNS
