"""Run records → OTLP log requests. The resource is that of the run's own service, so that a Collector can route by it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TypeAlias

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from otel_reliability.model.record import EVENT_NAME, RunRecord, write
from otel_reliability.sources.otlp_write import pairs
from otel_reliability.telemetry import names

Owner: TypeAlias = tuple[str, str, str]


def logs_of(records: Iterable[RunRecord]) -> bytes:
    """One request that holds these records, in their order within each service."""
    owners: dict[Owner, list[LogRecord]] = {}
    for record in records:
        owners.setdefault(record.run.key[:3], []).append(_log(record))
    scope = InstrumentationScope(name=names.SCOPE)
    return ExportLogsServiceRequest(
        resource_logs=[
            ResourceLogs(resource=_resource(owner), scope_logs=[ScopeLogs(scope=scope, log_records=logs)])
            for owner, logs in owners.items()
        ]
    ).SerializeToString()


def _resource(owner: Owner) -> Resource:
    found = dict(zip((names.SERVICE_NAMESPACE, names.SERVICE_NAME, names.ENVIRONMENT), owner, strict=True))
    return Resource(attributes=pairs({key: value for key, value in found.items() if value}))


def _log(record: RunRecord) -> LogRecord:
    run = record.run
    return LogRecord(
        time_unix_nano=run.end_ns,
        observed_time_unix_nano=record.told_ns,
        event_name=EVENT_NAME,
        body=AnyValue(string_value=json.dumps(write(record), separators=(",", ":"))),
        attributes=pairs({names.AGENT_NAME: run.key.agent, **dict(run.key.extra)}),
        trace_id=run.trace_id,
        span_id=run.root_span_id or b"",
    )
