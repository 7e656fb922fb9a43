"""`RawSpan` → OTLP, in JSON and in protobuf: what the readers of this folder read back unchanged.

For recordings of our own (the demo's, the tests') and for replaying recordings over the wire. Spans keep their order: those
that follow one another under one resource and scope share a group.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from otel_reliability.model.span import Evaluation, RawSpan, Resource
from otel_reliability.sources.batch import FLAG_REMOTE, FLAG_REMOTE_KNOWN
from otel_reliability.sources.evaluations import EVENT_NAME, LABEL, NAME, RESPONSE, SCORE

Group = tuple[Resource, str, str]


def traces_json(spans: Iterable[RawSpan]) -> dict[str, Any]:
    """One request in OTLP-JSON, as an object for `json.dumps`."""
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _pairs_json(resource.attributes)},
                "scopeSpans": [{"scope": {"name": scope, "version": version}, "spans": [_span_json(s) for s in group]}],
            }
            for (resource, scope, version), group in _groups(spans)
        ]
    }


def logs_json(evaluations: Iterable[Evaluation]) -> dict[str, Any]:
    """One logs request in OTLP-JSON: each evaluation as the log event of the GenAI conventions."""
    return {"resourceLogs": [{"scopeLogs": [{"logRecords": [_log_json(evaluation) for evaluation in evaluations]}]}]}


def traces_protobuf(spans: Iterable[RawSpan]) -> bytes:
    """One request in protobuf: the body of `POST /v1/traces`."""
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
            for (resource, scope, version), group in _groups(spans)
        ]
    ).SerializeToString()


def _groups(spans: Iterable[RawSpan]) -> Iterator[tuple[Group, Iterator[RawSpan]]]:
    return itertools.groupby(spans, lambda span: (span.resource, span.scope, span.scope_version))


def _flags(span: RawSpan) -> int:
    if span.parent_remote is None:
        return 0
    return FLAG_REMOTE_KNOWN | (FLAG_REMOTE if span.parent_remote else 0)


def _span(span: RawSpan) -> Span:
    return Span(
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_span_id=span.parent_id or b"",
        trace_state=span.trace_state,
        flags=_flags(span),
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


def _span_json(span: RawSpan) -> dict[str, Any]:
    return {
        "traceId": span.trace_id.hex(),
        "spanId": span.span_id.hex(),
        "parentSpanId": (span.parent_id or b"").hex(),
        "traceState": span.trace_state,
        "flags": _flags(span),
        "name": span.name,
        "kind": span.span_kind,
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.end_ns),
        "attributes": _pairs_json(span.attributes),
        "events": [
            {"name": event.name, "timeUnixNano": str(event.time_ns), "attributes": _pairs_json(event.attributes)}
            for event in span.events
        ],
        "links": [{"traceId": trace_id.hex(), "spanId": span_id.hex()} for trace_id, span_id in span.links],
        "status": {"code": span.status},
    }


def _log_json(evaluation: Evaluation) -> dict[str, Any]:
    facts = {
        NAME: evaluation.name,
        SCORE: evaluation.score,
        LABEL: evaluation.label,
        RESPONSE: evaluation.response_id,
    }
    return {
        "eventName": EVENT_NAME,
        "timeUnixNano": str(evaluation.time_ns),
        "traceId": (evaluation.trace_id or b"").hex(),
        "spanId": (evaluation.span_id or b"").hex(),
        "attributes": _pairs_json({key: value for key, value in facts.items() if value is not None}),
    }


def _pairs_json(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value_json(value)} for key, value in attributes.items()]


def _value_json(value: Any) -> dict[str, Any]:
    match value:
        case str():
            return {"stringValue": value}
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case bytes():
            return {"bytesValue": base64.b64encode(value).decode()}
        case list() | tuple():
            return {"arrayValue": {"values": [_value_json(item) for item in cast("Sequence[Any]", value)]}}
        case Mapping():
            return {"kvlistValue": {"values": _pairs_json(cast("Mapping[str, Any]", value))}}
        case _:
            return {}
