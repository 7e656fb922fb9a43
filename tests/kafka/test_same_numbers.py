"""Recordings through a real Collector, a real broker and workers of both stages: the runs and numbers of the single process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from otel_reliability.sources.otlp_json import read_file
from tests.kafka.expected import Expected, become
from tests.kafka.streams import final, plain
from tests.kafka.workers import READINGS, RUNS, SPANS, Reader, Workers, topics_of
from tests.real import otlp
from tests.real.collector.handle import Collectors
from tests.real.kafka.handle import Kafka, Kafkas
from tests.real.pipelines import pipeline
from tests.shared import shared

pytestmark = pytest.mark.real


def to_kafka(broker: Kafka) -> Mapping[str, Any]:
    """A Collector that writes spans to the topic, a message a trace and batch."""
    exporter = {
        "brokers": [broker.address],
        "partition_traces_by_id": True,
        "traces": {"topic": SPANS, "encoding": "otlp_proto"},
    }
    return {
        "receivers": {"otlp": {}},
        "processors": {"batch": {"timeout": "50ms", "send_batch_size": 64, "send_batch_max_size": 64}},
        "exporters": {"kafka": exporter},
        "service": {"pipelines": {"traces": pipeline(["otlp"], ["kafka"], ["batch"])}},
    }


@pytest.mark.parametrize(
    "number", [2, pytest.param(1, marks=pytest.mark.soak), pytest.param(4, marks=pytest.mark.soak)]
)
def test_as_many_workers_as_you_like_tell_what_one_process_tells(
    number: int, kafka: Kafkas, collector: Collectors, workers: Workers
) -> None:
    """A capture and a benchmark, sent twice: each run once, as it is; every gauge and counter with its value."""
    files = [
        shared("corpora/captured/langgraph-openinference.jsonl.gz"),
        shared("corpora/taubench/gpt-4o_airline_4trials.otlp.jsonl.gz"),
    ]
    expected = Expected(span for file in files for batch in read_file(file) for span in batch.spans)
    broker = kafka()
    topics_of(broker, names=(SPANS, RUNS, READINGS, "dead"))
    first = [workers("assemble", broker) for _ in range(number)]
    second = [workers("aggregate", broker) for _ in range(number)]
    gate = collector(to_kafka(broker))
    for file in (*files, *files):
        otlp.replay(file, gate.http)

    with Reader(broker, RUNS) as reader:
        records = reader.until_settled(len(expected.runs))
        assert {run_id: plain(run) for run_id, run in final(records).items()} == expected.runs
    become(second, expected)
    assert [worker.stop() for worker in (*first, *second)] == [0] * 2 * number
