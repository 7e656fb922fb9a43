"""Answers to OTLP requests, and the reasons for which requests are refused."""

from __future__ import annotations

import enum
from datetime import timedelta
from typing import Final, NamedTuple

from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsPartialSuccess,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from otel_reliability.errors import ReliabilityError

RETRY: Final = 1.0
"""Seconds after which a client may retry when the budget was used up."""
RETRY_LATER: Final = 5.0
"""Seconds after which a client may retry while state is loaded, the service stops, or nothing can
be stored.
"""


class Codes(NamedTuple):
    """HTTP status and gRPC code of a refusal; `google.rpc.Status` holds the gRPC code."""

    http: int
    rpc: int


class Problem(enum.Enum):
    """Kind of refusal. A client may send the same request again only after OVERLOAD.

    Source: OTLP specification 1.11, "Failures" of OTLP/gRPC and of OTLP/HTTP.
    """

    UNDECODABLE = Codes(400, 3)
    UNAUTHENTICATED = Codes(401, 16)
    HOST = Codes(421, 7)
    UNKNOWN_SIGNAL = Codes(404, 12)
    METHOD = Codes(405, 12)
    TIMEOUT = Codes(408, 4)
    TOO_LARGE = Codes(413, 8)
    TYPE = Codes(415, 3)
    FAULT = Codes(500, 13)
    OVERLOAD = Codes(503, 14)


class Refused(ReliabilityError):
    """Error: a request that is not accepted.

    `reason` is the word it is counted by, `detail` is for the client and holds nothing that the
    client sent; `retry_after` is in seconds, None if a retry does not help.
    """

    def __init__(
        self, problem: Problem, reason: str, detail: str, *, retry_after: float | None = None
    ) -> None:
        self.problem = problem
        self.reason = reason
        self.detail = detail
        self.retry_after = retry_after
        super().__init__(f"{reason}: {detail}")


def overload(reason: str, detail: str, *, retry_after: float = RETRY) -> Refused:
    """Return a refusal for now; the client keeps the request and sends it again.

    >>> overload("queue_full", "the queue is full").problem.value.http
    503
    """
    return Refused(Problem.OVERLOAD, reason, detail, retry_after=retry_after)


class Encoding(enum.Enum):
    """Encoding of a body."""

    PROTOBUF = "application/x-protobuf"
    JSON = "application/json"


class OtlpSignal(enum.Enum):
    """Kind of data in a request: the last part of its path."""

    TRACES = "traces"
    LOGS = "logs"
    METRICS = "metrics"
    """Accepted and discarded: agents that export every signal to one endpoint must not log errors.
    """


_FULL: Final = {Encoding.PROTOBUF: b"", Encoding.JSON: b"{}"}
"""Full success: nothing is set, `partial_success` least of all."""


def accepted(signal: OtlpSignal, encoding: Encoding, rejected: int, message: str) -> bytes:
    """Return the response of an export of which `rejected` spans or log records were not accepted.

    >>> accepted(OtlpSignal.TRACES, Encoding.JSON, 2, "2 without a span id")
    b'{"partialSuccess": {"rejectedSpans": "2", "errorMessage": "2 without a span id"}}'
    """
    if not rejected and not message:
        return _FULL[encoding]
    if signal is OtlpSignal.TRACES:
        traces = ExportTracePartialSuccess(rejected_spans=rejected, error_message=message)
        return _encoded(ExportTraceServiceResponse(partial_success=traces), encoding)
    logs = ExportLogsPartialSuccess(rejected_log_records=rejected, error_message=message)
    return _encoded(ExportLogsServiceResponse(partial_success=logs), encoding)


def refused(refusal: Refused, encoding: Encoding) -> bytes:
    """Return the body of an answer that is no success: a `google.rpc.Status`."""
    return _encoded(status_of(refusal), encoding)


def status_of(refusal: Refused) -> Status:
    """Return the status with the reason, and the time after which to retry."""
    found = Status(code=refusal.problem.value.rpc, message=refusal.detail)
    if refusal.retry_after is not None:
        found.details.add().Pack(retry_info(refusal.retry_after))
    return found


def retry_info(seconds: float) -> RetryInfo:
    """Return the detail that holds the time after which to retry."""
    found = RetryInfo()
    found.retry_delay.FromTimedelta(timedelta(seconds=seconds))
    return found


def _encoded(message: Message, encoding: Encoding) -> bytes:
    if encoding is Encoding.PROTOBUF:
        return message.SerializeToString()
    return MessageToJson(message, indent=None).encode()
