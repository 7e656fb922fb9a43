"""Spans and judgements come in two topics, and neither runs ahead of the other."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from otel_reliability.kafka.stage import TICK
from otel_reliability.testing import span_id, trace_id
from tests.kafka.streams import final
from tests.kafka.workers import DEAD, LOGS, RUNS, SPANS, Reader, Workers, send, topics_of
from tests.otlp import traces_protobuf
from tests.real.kafka.handle import Kafkas
from tests.real.otlp import attributes
from tests.service.running import run_of

pytestmark = pytest.mark.real

PADDING = "x" * 10_000
AGO = 3_600.0


def logs(number: int, name: str = "app.log") -> bytes:
    """A large log event of a trace; under the right name, it is a judgement."""
    request = ExportLogsServiceRequest()
    record = request.resource_logs.add().scope_logs.add().log_records.add()
    record.event_name = name
    record.time_unix_nano = 1
    record.trace_id, record.span_id = trace_id(number), span_id(1)
    told = {
        "gen_ai.evaluation.name": "success",
        "gen_ai.evaluation.score.label": "fail",
        "padding": PADDING,
    }
    record.attributes.extend(attributes(told))
    return request.SerializeToString()


def key(number: int) -> bytes:
    return trace_id(number).hex().encode()


def large(number: int) -> bytes:
    return traces_protobuf(
        replace(one, attributes={**one.attributes, "padding": PADDING}) for one in run_of(number)
    )


def backlog(begun: float) -> Iterator[tuple[bytes, bytes, float]]:
    """A run, of whose tool call its agent's span is parted by more than one fetch."""
    root, call = run_of(1)
    yield key(1), traces_protobuf([root]), begun
    for number in range(2, 302):
        yield key(number), large(number), begun + 0.2
    yield key(1), traces_protobuf([call]), begun + 0.4


def test_a_backlog_in_one_topic_is_read_at_the_pace_of_the_other(
    kafka: Kafkas, workers: Workers
) -> None:
    """Of an hour ago there is more in one topic, while the other has come to the present: no run is
    closed before its spans are read, and a judgement is there in time.
    """
    broker = kafka()
    topics_of(broker, partitions=1, names=(SPANS, LOGS, RUNS, DEAD))
    begun = time.time() - AGO
    send(broker, backlog(begun))
    send(broker, ((key(number), logs(number), begun - 1) for number in range(1, 121)), LOGS)
    send(
        broker,
        [(key(1), logs(1, "gen_ai.evaluation.result"), begun + 0.5), (None, TICK, time.time())],
        LOGS,
    )
    worker = workers("assemble", broker, settings={"kafka": {"logs": LOGS}})

    with Reader(broker, RUNS) as reader:
        records = reader.until_final(301)
    run = next(run for run in final(records).values() if run.trace_id == trace_id(1))
    assert (run.path, run.outcome.value) == (("search",), "failure")
    assert {one.change.value for one in records} == {"closed", "final"}
    assert worker.stop() == 0
