"""`RawSpan` → OTLP-JSON: what the reader of this folder reads back unchanged.

For recordings, our own (the demo's, the tests') and those of users. Spans keep their order: those
that follow one another under one resource and scope share a group.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from otel_reliability.model.span import EVALUATION, Evaluation, RawSpan, Resource
from otel_reliability.sources.batch import FLAG_REMOTE, FLAG_REMOTE_KNOWN

_FLAGS: Final = {None: 0, False: FLAG_REMOTE_KNOWN, True: FLAG_REMOTE_KNOWN | FLAG_REMOTE}
_NOT_FINITE: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
"""Numbers that JSON has no form for, as protobuf's JSON writes them."""


def traces_json(spans: Iterable[RawSpan]) -> dict[str, Any]:
    """One request in OTLP-JSON, as an object for `json.dumps`."""
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _pairs(resource.attributes)},
                "scopeSpans": [
                    {
                        "scope": {"name": scope, "version": version},
                        "spans": [_span(span) for span in group],
                    }
                ],
            }
            for (resource, scope, version), group in itertools.groupby(spans, _sender)
        ]
    }


def logs_json(evaluations: Iterable[Evaluation]) -> dict[str, Any]:
    """One logs request in OTLP-JSON: each evaluation as the log event of the GenAI conventions."""
    return {
        "resourceLogs": [
            {"scopeLogs": [{"logRecords": [_log(evaluation) for evaluation in evaluations]}]}
        ]
    }


def _sender(span: RawSpan) -> tuple[Resource, str, str]:
    return span.resource, span.scope, span.scope_version


def _span(span: RawSpan) -> dict[str, Any]:
    return {
        "traceId": span.trace_id.hex(),
        "spanId": span.span_id.hex(),
        "parentSpanId": (span.parent_id or b"").hex(),
        "traceState": span.trace_state,
        **({"droppedAttributesCount": span.dropped} if span.dropped else {}),
        "flags": _FLAGS[span.parent_remote],
        "name": span.name,
        "kind": span.span_kind,
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.end_ns),
        "attributes": _pairs(span.attributes),
        "events": [
            {
                "name": event.name,
                "timeUnixNano": str(event.time_ns),
                "attributes": _pairs(event.attributes),
            }
            for event in span.events
        ],
        "links": [
            {"traceId": trace_id.hex(), "spanId": span_id.hex()} for trace_id, span_id in span.links
        ],
        "status": {"code": span.status},
    }


def _pairs(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return attributes as OTLP has them. What it has no type for becomes a value that holds
    nothing.
    """
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: Any) -> dict[str, Any]:
    match value:
        case str():
            return {"stringValue": value}
        case bool():
            return {"boolValue": value}
        case int() if -(2**63) <= value < 2**63:
            return {"intValue": str(int(value))}
        case float():
            return {"doubleValue": _NOT_FINITE.get(str(value), value)}
        case bytes():
            return {"bytesValue": base64.b64encode(value).decode()}
        case list() | tuple():
            return {
                "arrayValue": {"values": [_value(item) for item in cast("Sequence[Any]", value)]}
            }
        case Mapping():
            return {"kvlistValue": {"values": _pairs(cast("Mapping[str, Any]", value))}}
        case _:
            return {}


def _log(evaluation: Evaluation) -> dict[str, Any]:
    return {
        "eventName": EVALUATION,
        "timeUnixNano": str(evaluation.time_ns),
        "traceId": (evaluation.trace_id or b"").hex(),
        "spanId": (evaluation.span_id or b"").hex(),
        "attributes": _pairs(evaluation.attributes()),
    }
