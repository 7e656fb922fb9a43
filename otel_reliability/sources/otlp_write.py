"""`RawSpan` → OTLP, in JSON and in protobuf: what the readers of this folder read back unchanged.

For recordings of our own (the demo's, the tests') and for replaying recordings over the wire. Spans keep their order: those
that follow one another under one resource and scope share a group.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from otel_reliability.model.span import EVALUATION, Evaluation, RawSpan, Resource
from otel_reliability.sources.batch import FLAG_REMOTE, FLAG_REMOTE_KNOWN

_IDS: Final = {"traceId", "spanId", "parentSpanId"}
_FLAGS: Final = {None: 0, False: FLAG_REMOTE_KNOWN, True: FLAG_REMOTE_KNOWN | FLAG_REMOTE}


def traces_json(spans: Iterable[RawSpan]) -> dict[str, Any]:
    """One request in OTLP-JSON, as an object for `json.dumps`."""
    return _json(_traces(spans))


def traces_protobuf(spans: Iterable[RawSpan]) -> bytes:
    """One request in protobuf: the body of `POST /v1/traces`."""
    return _traces(spans).SerializeToString()


def logs_json(evaluations: Iterable[Evaluation]) -> dict[str, Any]:
    """One logs request in OTLP-JSON: each evaluation as the log event of the GenAI conventions."""
    records = [_log(evaluation) for evaluation in evaluations]
    return _json(ExportLogsServiceRequest(resource_logs=[ResourceLogs(scope_logs=[ScopeLogs(log_records=records)])]))


def _traces(spans: Iterable[RawSpan]) -> ExportTraceServiceRequest:
    return ExportTraceServiceRequest(
        resource_spans=[
            ResourceSpans(
                resource=ResourceMessage(attributes=pairs(resource.attributes)),
                scope_spans=[
                    ScopeSpans(
                        scope=InstrumentationScope(name=scope, version=version), spans=[_span(span) for span in group]
                    )
                ],
            )
            for (resource, scope, version), group in itertools.groupby(spans, _sender)
        ]
    )


def _sender(span: RawSpan) -> tuple[Resource, str, str]:
    return span.resource, span.scope, span.scope_version


def _span(span: RawSpan) -> Span:
    return Span(
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_span_id=span.parent_id or b"",
        trace_state=span.trace_state,
        flags=_FLAGS[span.parent_remote],
        name=span.name,
        kind=Span.SpanKind.ValueType(span.span_kind),
        start_time_unix_nano=span.start_ns,
        end_time_unix_nano=span.end_ns,
        attributes=pairs(span.attributes),
        events=[
            Span.Event(name=event.name, time_unix_nano=event.time_ns, attributes=pairs(event.attributes))
            for event in span.events
        ],
        links=[Span.Link(trace_id=trace_id, span_id=span_id) for trace_id, span_id in span.links],
        status=Status(code=Status.StatusCode.ValueType(span.status)),
    )


def pairs(attributes: Mapping[str, Any]) -> list[KeyValue]:
    """Attributes as protobuf holds them. What OTLP has no type for becomes a value that holds nothing."""
    return [KeyValue(key=key, value=_value(value)) for key, value in attributes.items()]


def _value(value: Any) -> AnyValue:
    match value:
        case str():
            return AnyValue(string_value=value)
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case bytes():
            return AnyValue(bytes_value=value)
        case list() | tuple():
            return AnyValue(array_value=ArrayValue(values=[_value(item) for item in cast("Sequence[Any]", value)]))
        case Mapping():
            return AnyValue(kvlist_value=KeyValueList(values=pairs(cast("Mapping[str, Any]", value))))
        case _:
            return AnyValue()


def _log(evaluation: Evaluation) -> LogRecord:
    return LogRecord(
        event_name=EVALUATION,
        time_unix_nano=evaluation.time_ns,
        trace_id=evaluation.trace_id or b"",
        span_id=evaluation.span_id or b"",
        attributes=pairs(evaluation.attributes()),
    )


def _json(message: Message) -> dict[str, Any]:
    """A request as OTLP-JSON has it: protobuf's JSON, with hexadecimal ids."""
    return _with_hexadecimal_ids(
        MessageToDict(message, always_print_fields_with_no_presence=True, use_integers_for_enums=True)
    )


def _with_hexadecimal_ids(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_hexadecimal_ids(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    return {
        key: base64.b64decode(item).hex() if key in _IDS else _with_hexadecimal_ids(item)
        for key, item in cast("dict[str, Any]", value).items()
    }
