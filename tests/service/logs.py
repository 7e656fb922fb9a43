"""Logs requests in protobuf, from what OTLP-JSON says."""

from __future__ import annotations

from collections.abc import Iterable

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from otel_reliability.model.span import Evaluation
from otel_reliability.sources.otlp_write import logs_json
from tests.real.otlp import from_json


def logs_protobuf(evaluations: Iterable[Evaluation]) -> bytes:
    return from_json(logs_json(evaluations), ExportLogsServiceRequest()).SerializeToString()
