"""OTLP requests in protobuf, from what our OTLP-JSON says, and their spans as the decoder in Python
returns them.
"""

from __future__ import annotations

from collections.abc import Iterable

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from otel_reliability.model.span import Evaluation, RawSpan
from otel_reliability.sources.batch import Batch
from otel_reliability.sources.otlp_protobuf import read_traces
from otel_reliability.sources.otlp_write import logs_json, traces_json
from tests.real.otlp import from_json


def traces_protobuf(spans: Iterable[RawSpan]) -> bytes:
    return from_json(traces_json(spans), ExportTraceServiceRequest()).SerializeToString()


def logs_protobuf(evaluations: Iterable[Evaluation]) -> bytes:
    return from_json(logs_json(evaluations), ExportLogsServiceRequest()).SerializeToString()


def decode_traces(body: bytes) -> Batch:
    return Batch(*read_traces(body, lambda span: span))
