"""A request in OTLP-JSON, already parsed → `Batch`: traces, and the evaluations among logs.

Values of the wrong type are absent; a span is malformed only for its ids and times. Unknown keys are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from otel_reliability.model.span import RawEvent, RawSpan, Resource, SpanRef
from otel_reliability.sources.batch import (
    Batch,
    Malformed,
    Reason,
    fault,
    link_ref,
    ordered,
    parent,
    parent_remote,
)
from otel_reliability.sources.evaluations import Log, take_log
from otel_reliability.sources.json_values import attributes, enum, hexadecimal, items, plain, record, text, whole

_SIGNALS: Final = ("resourceSpans", "resourceLogs", "resourceMetrics", "resourceProfiles")
_TYPES: Final[Mapping[type, str]] = {
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    list: "a list",
}
_IDS: Final = (
    (Reason.TRACE_ID, "traceId", 32),
    (Reason.SPAN_ID, "spanId", 16),
    (Reason.PARENT_ID, "parentSpanId", 16),
)
_KINDS: Final = {
    f"SPAN_KIND_{name}": number
    for number, name in enumerate(("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"))
}
_STATUSES: Final = {f"STATUS_CODE_{name}": number for number, name in enumerate(("UNSET", "OK", "ERROR"))}


def decode_request(request: object) -> Batch:
    """The spans and evaluations of a parsed request, or of a list of requests. `{}` is an empty request.

    >>> decode_request({"hello": "world"}).malformed[0].detail
    'an object without resourceSpans or resourceLogs is no OTLP request'
    """
    batch = Batch()
    for part in cast("list[Any]", request) if isinstance(request, list) else [request]:
        _take_request(batch, part)
    return batch


def _take_request(batch: Batch, request: object) -> None:
    signals = record(request)
    if not isinstance(request, dict):
        _refuse(batch, f"{_kind(request)} is no OTLP request")
    elif signals and not any(signal in signals for signal in _SIGNALS):
        _refuse(batch, "an object without resourceSpans or resourceLogs is no OTLP request")
    else:
        _take_traces(batch, signals.get("resourceSpans"))
        _take_logs(batch, signals.get("resourceLogs"))


def _take_traces(batch: Batch, groups: object) -> None:
    for group in _records(batch, groups, "resourceSpans"):
        resource = Resource.of(attributes(record(group.get("resource")).get("attributes")))
        for scope_spans in _records(batch, group.get("scopeSpans"), "scopeSpans"):
            scope = record(scope_spans.get("scope"))
            for span in _records(batch, scope_spans.get("spans"), "spans"):
                _take_span(batch, span, (text(scope.get("name")), text(scope.get("version"))), resource)


def _take_logs(batch: Batch, groups: object) -> None:
    for group in _records(batch, groups, "resourceLogs"):
        resource = Resource.of(attributes(record(group.get("resource")).get("attributes")))
        for scope_logs in _records(batch, group.get("scopeLogs"), "scopeLogs"):
            scope = text(record(scope_logs.get("scope")).get("name"))
            for log in _records(batch, scope_logs.get("logRecords"), "logRecords"):
                take_log(batch, _log(log, scope, resource))


def _take_span(batch: Batch, span: Mapping[str, Any], scope: tuple[str, str], resource: Resource) -> None:
    ids = _ids(span)
    if isinstance(ids, Malformed):
        batch.malformed.append(ids)
        return
    trace_id, span_id, parent_id = ids
    start_ns, end_ns = _time(span.get("startTimeUnixNano")), _time(span.get("endTimeUnixNano"))
    if problem := fault(trace_id, span_id, parent_id, start_ns, end_ns):
        batch.malformed.append(problem)
        return
    batch.spans.append(
        RawSpan(
            trace_id=trace_id,
            span_id=span_id,
            parent_id=parent(parent_id),
            name=text(span.get("name")),
            span_kind=enum(span.get("kind"), _KINDS),
            start_ns=start_ns,
            end_ns=ordered(start_ns, end_ns),
            status=enum(record(span.get("status")).get("code"), _STATUSES),
            parent_remote=parent_remote(whole(span.get("flags")) or 0),
            attributes=attributes(span.get("attributes")),
            events=tuple(_event(record(event)) for event in items(span.get("events"))),
            links=tuple(ref for link in items(span.get("links")) if (ref := _link(record(link)))),
            scope=scope[0],
            scope_version=scope[1],
            resource=resource,
            trace_state=text(span.get("traceState")),
        )
    )


def _ids(span: Mapping[str, Any]) -> tuple[bytes, bytes, bytes] | Malformed:
    """The ids of a span, of whatever length, or the first that is not hexadecimal (base64, often)."""
    trace_id, span_id = hexadecimal(span.get("traceId")), hexadecimal(span.get("spanId"))
    parent_id = hexadecimal(span.get("parentSpanId"))
    if trace_id is not None and span_id is not None and parent_id is not None:
        return trace_id, span_id, parent_id
    reason, key, digits = next(one for one in _IDS if hexadecimal(span.get(one[1])) is None)
    value = span.get(key)
    found = f"has {len(value)} characters" if isinstance(value, str) else f"is {_kind(value)}"
    return Malformed(reason, f"the {key} {found}, not {digits} hexadecimal digits")


def _event(event: Mapping[str, Any]) -> RawEvent:
    return RawEvent(
        text(event.get("name")), max(_time(event.get("timeUnixNano")), 0), attributes(event.get("attributes"))
    )


def _link(link: Mapping[str, Any]) -> SpanRef | None:
    return link_ref(hexadecimal(link.get("traceId")) or b"", hexadecimal(link.get("spanId")) or b"")


def _log(log: Mapping[str, Any], scope: str, resource: Resource) -> Log:
    return Log(
        log.get("eventName"),
        plain(log.get("body")),
        attributes(log.get("attributes")),
        max(_time(log.get("timeUnixNano")) or _time(log.get("observedTimeUnixNano")), 0),
        hexadecimal(log.get("traceId")) or b"",
        hexadecimal(log.get("spanId")) or b"",
        scope,
        resource,
    )


def _time(value: object) -> int:
    return whole(value) or 0


def _records(batch: Batch, value: object, name: str) -> list[dict[str, Any]]:
    """The objects of a list; what else stands in their place is malformed, null apart, which is absent."""
    entries = items(value)
    if value is not None and entries is not value:
        _refuse(batch, f"{name} is {_kind(value)}, not a list")
    for entry in entries:
        if not isinstance(entry, dict):
            _refuse(batch, f"{_kind(entry)} stands among the {name}")
    return [entry for entry in entries if isinstance(entry, dict)]


def _refuse(batch: Batch, detail: str) -> None:
    batch.malformed.append(Malformed(Reason.SHAPE, detail))


def _kind(value: object) -> str:
    """Return what JSON calls the type of a value."""
    return "null" if value is None else _TYPES.get(type(value), "an object")
