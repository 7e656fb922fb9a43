from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs

from otel_reliability.errors import UndecodableBody
from otel_reliability.model.span import Evaluation
from otel_reliability.sources.otlp_protobuf import decode_logs, decode_traces
from otel_reliability.sources.otlp_write import pairs
from otel_reliability.testing import at, span_id, trace_id


def logs(*records: LogRecord) -> bytes:
    """A logs request."""
    return ExportLogsServiceRequest(
        resource_logs=[ResourceLogs(scope_logs=[ScopeLogs(log_records=records)])]
    ).SerializeToString()


def judgement(**fields: Any) -> LogRecord:
    """The record of an evaluation, as the GenAI conventions have it."""
    facts = {"gen_ai.evaluation.name": "correctness", "gen_ai.evaluation.score.value": 0.5}
    usual: dict[str, Any] = {
        "event_name": "gen_ai.evaluation.result",
        "time_unix_nano": at(1),
        "trace_id": trace_id(1),
        "span_id": span_id(2),
        "attributes": pairs(facts),
    }
    return LogRecord(**{**usual, **fields})


def test_empty_bodies_are_empty_requests() -> None:
    """No bytes at all are a request without spans, and without logs."""
    assert decode_traces(b"").spans == []
    assert decode_logs(b"").evaluations == []


def test_evaluation_log() -> None:
    """An evaluation event is an evaluation of the span in whose context it was written."""
    batch = decode_logs(logs(judgement()))

    assert batch.evaluations == [Evaluation("correctness", 0.5, None, at(1), trace_id(1), span_id(2), None)]


def test_observed_time_where_there_is_no_other() -> None:
    """Senders that set no time of the event still say when it was seen."""
    batch = decode_logs(logs(judgement(time_unix_nano=0, observed_time_unix_nano=at(9))))

    assert batch.evaluations[0].time_ns == at(9)


def test_other_logs_are_counted() -> None:
    """Log records that judge nothing are counted, and stop nothing."""
    batch = decode_logs(logs(LogRecord(event_name="user.message"), judgement(), LogRecord()))

    assert (batch.other_logs, len(batch.evaluations)) == (2, 1)


def test_undecodable_logs() -> None:
    """A body that is no request says so, with its size."""
    with pytest.raises(UndecodableBody, match=r"not an OTLP logs request in protobuf \(3 bytes\)"):
        decode_logs(b"\xff\xff\xff")
