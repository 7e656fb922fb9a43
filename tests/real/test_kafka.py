"""A Kafka broker out of its jars: what the tests of the stream worker will lean on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.real import otlp
from tests.real.collector.handle import Collectors
from tests.real.kafka.handle import Kafkas, ToolFailed
from tests.real.pipelines import pipeline, to_file
from tests.real.waiting import until

pytestmark = pytest.mark.real


def test_carries_spans_from_one_collector_to_another(kafka: Kafkas, collector: Collectors, tmp_path: Path) -> None:
    """Spans written by the kafka exporter, one message a trace, are read by the kafka receiver, each trace in one piece;
    those sent while the broker was killed arrive after it is back, though what it had not noted as read may come twice.
    """
    broker = kafka()
    broker.create_topic("spans", partitions=2)
    out = tmp_path / "spans.jsonl"
    exporter = {
        "brokers": [broker.address],
        "partition_traces_by_id": True,
        "traces": {"topic": "spans", "encoding": "otlp_proto"},
        "retry_on_failure": {"initial_interval": "200ms", "max_interval": "500ms"},
    }
    receiver = {
        "brokers": [broker.address],
        "initial_offset": "earliest",
        "traces": {"topics": ["spans"], "encoding": "otlp_proto"},
    }
    writer = collector(
        {
            "receivers": {"otlp": {}},
            "exporters": {"kafka": exporter},
            "service": {"pipelines": {"traces": pipeline(["otlp"], ["kafka"])}},
        }
    )
    collector(
        {
            "receivers": {"kafka": receiver},
            "exporters": {"file": to_file(out)},
            "service": {"pipelines": {"traces": pipeline(["kafka"], ["file"])}},
        }
    )

    before = send_traces(writer.http, range(1, 7))
    until(lambda: ids_in(out) == before, "the first traces")
    broker.kill()
    after = send_traces(writer.http, range(7, 10))
    broker.start()

    until(lambda: ids_in(out) >= after, "what was sent while the broker was away")
    assert ids_in(out) == before | after
    traces = [span.trace_id for _, span in otlp.written(out)]
    assert traces[::2] == traces[1::2]


def test_a_tool_that_fails_says_why(kafka: Kafkas) -> None:
    """Making a topic twice raises with Kafka's own words."""
    broker = kafka()
    broker.create_topic("once", settings=["retention.ms=1000"])

    with pytest.raises(ToolFailed, match="already exists"):
        broker.create_topic("once")


def send_traces(url: str, numbers: Sequence[int]) -> set[bytes]:
    """Send one trace of two spans a number, all in one request, and return the ids of the spans."""
    spans = [otlp.span(bytes([n]) * 16, bytes([n, of] * 4), "chat") for n in numbers for of in (1, 2)]
    otlp.send(url, otlp.of_service("a", spans))
    return {span.span_id for span in spans}


def ids_in(path: Path) -> set[bytes]:
    """The ids of the spans that a Collector has written."""
    return {span.span_id for _, span in otlp.written(path)}
