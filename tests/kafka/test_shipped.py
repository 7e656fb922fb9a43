"""The shipped Collector configurations with a real broker and workers: spans and judgements in,
numbers out.
"""

from __future__ import annotations

from typing import Any, cast

import pytest
from prometheus_client.openmetrics import parser

from otel_reliability.model.span import Evaluation
from otel_reliability.testing import span_id, trace_id
from tests.collector_config.shipped import at_port, shipped
from tests.kafka.workers import DEAD, RUNS, Reader, Workers, topics_of
from tests.otlp import logs_protobuf, traces_protobuf
from tests.real.collector.handle import Collectors
from tests.real.kafka.handle import Kafkas
from tests.real.ports import HOST, free_port
from tests.real.waiting import until
from tests.real.web import ask
from tests.service.running import PROTOBUF, runs_of

pytestmark = pytest.mark.real

TOPICS = {"spans": "otlp_spans", "logs": "otlp_logs", "readings": "otel_reliability_metrics"}


def test_they_carry_spans_and_judgements_in_and_numbers_out(
    kafka: Kafkas, collector: Collectors, workers: Workers
) -> None:
    broker = kafka()
    topics_of(broker, names=(*TOPICS.values(), RUNS, DEAD))
    first = workers("assemble", broker, settings={"kafka": TOPICS})
    second = workers("aggregate", broker, settings={"kafka": TOPICS})
    environment = {"KAFKA_BROKERS": broker.address, "COLLECTOR_HOST": HOST}
    gate = shipped(
        collector,
        "kafka-gateway.yaml",
        overlay={"processors": {"batch": {"timeout": "50ms"}}},
        **environment,
    )
    address = f"{HOST}:{free_port()}"
    shipped(collector, "kafka-metrics.yaml", overlay=at_port(address), **environment)

    judged = logs_protobuf([Evaluation("success", 0.0, None, 1, trace_id(2), span_id(1))])
    for path, body in (("traces", traces_protobuf(runs_of(6))), ("logs", judged)):
        answer = ask(f"{gate.http}/v1/{path}", body=body, headers={"Content-Type": PROTOBUF})
        assert answer.status == 200
    with Reader(broker, RUNS) as reader:
        records = reader.until_final(6)

    def told() -> dict[str, float]:
        text = ask(
            f"http://{address}/metrics", headers={"Accept": "application/openmetrics-text"}
        ).text
        families = cast("Any", parser).text_string_to_metric_families(text)
        samples = [one for family in families for one in family.samples]
        found = {
            one.labels["outcome"]: one.value
            for one in samples
            if one.name == "agent_reliability_runs_total"
        }
        windows = [one.value for one in samples if one.name == "agent_reliability_window_runs"]
        return found if sum(found.values()) == 6 and windows == [6] else {}

    assert {one.run.outcome.value for one in records if one.run.trace_id == trace_id(2)} == {
        "failure"
    }
    assert until(told, "the numbers")["failure"] == 1
    assert 'disposition="taken"} 12' in second.numbers()
    assert (first.stop(), second.stop()) == (0, 0)
