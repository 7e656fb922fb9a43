"""Answers to OTLP requests, in the encoding the request came in (protobuf or JSON)."""

from __future__ import annotations

import enum
from typing import Final

from google.protobuf import any_pb2, duration_pb2
from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from otel_reliability.service.refusal import Refused


class Encoding(enum.Enum):
    """How a body is written."""

    PROTOBUF = "application/x-protobuf"
    JSON = "application/json"


class Signal(enum.Enum):
    """What a request holds; the last part of its path."""

    TRACES = "traces"
    LOGS = "logs"
    METRICS = "metrics"
    """Accepted and discarded: agents that export every signal to one endpoint must not log errors."""


_FULL: Final = {Encoding.PROTOBUF: b"", Encoding.JSON: b"{}"}
"""Full success: nothing is set, `partial_success` least of all."""


def accepted(signal: Signal, encoding: Encoding, rejected: int, message: str) -> bytes:
    """The response of an export. `rejected` spans or log records were refused while their neighbours were taken.

    >>> accepted(Signal.TRACES, Encoding.JSON, 2, "2 without a span id")
    b'{"partialSuccess": {"rejectedSpans": "2", "errorMessage": "2 without a span id"}}'
    """
    if not rejected and not message:
        return _FULL[encoding]
    return encoded(_traces(rejected, message) if signal is Signal.TRACES else _logs(rejected, message), encoding)


def refused(refusal: Refused, encoding: Encoding) -> bytes:
    """The body of an answer that is no success: a `google.rpc.Status`."""
    return encoded(status_of(refusal), encoding)


def status_of(refusal: Refused) -> Status:
    """What is wrong, and when to come again."""
    found = Status(code=refusal.problem.value.rpc, message=refusal.detail)
    if refusal.retry_after is not None:
        packed = any_pb2.Any()
        packed.Pack(retry_info(refusal.retry_after))
        found.details.append(packed)
    return found


def retry_info(seconds: float) -> RetryInfo:
    """When to come again."""
    whole, rest = divmod(round(seconds * 1e9), 1_000_000_000)
    return RetryInfo(retry_delay=duration_pb2.Duration(seconds=whole, nanos=rest))


def encoded(message: Message, encoding: Encoding) -> bytes:
    """A message as the client asked for it."""
    if encoding is Encoding.PROTOBUF:
        return message.SerializeToString()
    return MessageToJson(message, indent=None).encode()


def _traces(rejected: int, message: str) -> ExportTraceServiceResponse:
    found = ExportTraceServiceResponse()
    found.partial_success.rejected_spans, found.partial_success.error_message = rejected, message
    return found


def _logs(rejected: int, message: str) -> ExportLogsServiceResponse:
    found = ExportLogsServiceResponse()
    found.partial_success.rejected_log_records, found.partial_success.error_message = rejected, message
    return found
