"""OTLP requests in protobuf → `Batch`: what the receivers of the service call."""

from __future__ import annotations

from typing import Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from otel_reliability.errors import UndecodableBody
from otel_reliability.sources import otlp_fast, otlp_full, otlp_guard
from otel_reliability.sources.batch import Batch
from otel_reliability.sources.evaluations import Log, take_log
from otel_reliability.sources.values import attributes, plain

LARGEST_FOR_FULL: Final = 4 * 1024 * 1024
"""Bytes of a request beyond which it is not tried by the full schema, which makes an object of every attribute."""


def decode_traces(body: bytes) -> Batch:
    """The spans of an ExportTraceServiceRequest. Attribute values are decoded when asked for (`LazyAttributes`).

    Malformed spans are named in `Batch.malformed`, their neighbours live. Raises `UndecodableBody` where neither decoder
    can read the body, and for one made to explode in memory (`otlp_guard`). No bytes at all are an empty request.

    >>> decode_traces(b"").spans
    []
    """
    otlp_guard.check(body)
    try:
        return otlp_fast.decode(body)
    except otlp_fast.NeedsFullSchema:
        if len(body) > LARGEST_FOR_FULL:
            raise
        return otlp_full.decode(body)


def decode_logs(body: bytes) -> Batch:
    """The evaluations of an ExportLogsServiceRequest; its other records are counted.

    Raises `UndecodableBody` for a body that is no such request.

    >>> decode_logs(b"").other_logs
    0
    """
    try:
        request = ExportLogsServiceRequest.FromString(body)
    except DecodeError as error:
        raise UndecodableBody(f"not an OTLP logs request in protobuf ({len(body)} bytes)") from error
    batch = Batch()
    for resource_logs in request.resource_logs:
        for scope_logs in resource_logs.scope_logs:
            for record in scope_logs.log_records:
                _take(batch, record)
    return batch


def _take(batch: Batch, record: LogRecord) -> None:
    take_log(
        batch,
        Log(
            record.event_name,
            plain(record.body),
            attributes(record.attributes),
            record.time_unix_nano or record.observed_time_unix_nano,
            record.trace_id,
            record.span_id,
        ),
    )
