"""JSON of SDKs and trace stores → `Batch`: one function a format, each for one parsed document.

Here attributes are plain JSON values, ids have the form of their writer, times are text or numbers
in its own unit. `forms` of `kinds` says which document goes to which function.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from otel_reliability.model.span import RawEvent, RawLog, RawSpan, Resource, SpanRef
from otel_reliability.sources.batch import (
    Batch,
    fault,
    link_ref,
    parent,
    take_log,
    with_status_message,
)
from otel_reliability.sources.otlp_json import hexadecimal, items, record, text, whole

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_STATUS: Final = {"UNSET": 0, "OK": 1, "ERROR": 2}
_KIND: Final = {"INTERNAL": 1, "SERVER": 2, "CLIENT": 3, "PRODUCER": 4, "CONSUMER": 5}
_SECOND: Final = 1_000_000_000


def time_ns(value: object) -> int:
    """Return an ISO 8601 time in Unix nanoseconds; 0 where it is none. Without a zone it is UTC.

    >>> time_ns("2026-11-27T23:00:58.326231Z"), time_ns("soon"), time_ns(None)
    (1795820458326231000, 0, 0)
    """
    try:
        moment = datetime.fromisoformat(text(value))
    except ValueError:
        return 0
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MICROSECOND * 1_000


def frozen(value: Any) -> Any:
    """Return a JSON value as attributes hold it: lists are tuples."""
    return tuple(map(frozen, items(value))) if items(value) is value else value


def attributes_of(values: object) -> dict[str, Any]:
    """Return an object as the attributes of a span."""
    return {key: frozen(value) for key, value in record(values).items()}


def take_span(
    batch: Batch,
    *,
    trace_id: object,
    span_id: object,
    parent_id: object,
    name: object,
    start_ns: int,
    end_ns: int,
    attributes: Mapping[str, Any],
    resource: Resource,
    kind: int = 1,
    status: int = 0,
    message: object = "",
    scope: object = "",
    scope_version: object = "",
    events: Iterable[RawEvent] = (),
    links: Iterable[SpanRef | None] = (),
) -> None:
    """Put a span of these parts into the batch, or what makes it unusable. Ids are hexadecimal;
    `message` is that of the status.
    """
    ids = [hexadecimal(value or None) or b"" for value in (trace_id, span_id, parent_id)]
    if problem := fault(ids[0], ids[1], ids[2], start_ns, end_ns):
        batch.malformed.append(problem)
        return
    batch.spans.append(
        RawSpan(
            trace_id=ids[0],
            span_id=ids[1],
            parent_id=parent(ids[2]),
            name=text(name),
            span_kind=kind,
            start_ns=start_ns,
            end_ns=end_ns,
            status=status,
            parent_remote=None,
            attributes=attributes,
            events=with_status_message(tuple(events), status, message, end_ns),
            links=tuple(link for link in links if link is not None),
            scope=text(scope),
            scope_version=text(scope_version),
            resource=resource,
        )
    )


# --- The SDK for Python: ConsoleSpanExporter, ReadableSpan.to_json --------------------------------


def python_span(span: Mapping[str, Any]) -> Batch:
    """Read a span as the SDK for Python prints it; its scope is not printed."""
    batch = Batch()
    context = record(span.get("context"))
    take_span(
        batch,
        trace_id=_bare(context.get("trace_id")),
        span_id=_bare(context.get("span_id")),
        parent_id=_bare(span.get("parent_id")),
        name=span.get("name"),
        start_ns=time_ns(span.get("start_time")),
        end_ns=time_ns(span.get("end_time")),
        attributes=attributes_of(span.get("attributes")),
        resource=Resource.of(attributes_of(record(span.get("resource")).get("attributes"))),
        kind=_KIND.get(text(span.get("kind")).removeprefix("SpanKind."), 0),
        status=_STATUS.get(text(record(span.get("status")).get("status_code")), 0),
        message=record(span.get("status")).get("description"),
        events=(
            RawEvent(
                name=text(event.get("name")),
                time_ns=time_ns(event.get("timestamp")),
                attributes=attributes_of(event.get("attributes")),
            )
            for event in map(record, items(span.get("events")))
        ),
        links=(
            link_ref(
                hexadecimal(_bare(linked.get("trace_id"))) or b"",
                hexadecimal(_bare(linked.get("span_id"))) or b"",
            )
            for link in map(record, items(span.get("links")))
            for linked in [record(link.get("context"))]
        ),
    )
    return batch


def _bare(identifier: object) -> str:
    return text(identifier).removeprefix("0x")


# --- The SDK for JavaScript: file exporters of Gemini CLI and Copilot -----------------------------


def js_record(item: Mapping[str, Any]) -> Batch:
    """Read a span or a log record as the SDK for JavaScript holds it; metrics are passed over."""
    batch = Batch()
    resource = Resource.of(_js_resource(record(item.get("resource"))))
    scope = record(item.get("instrumentationScope") or item.get("instrumentationLibrary"))
    context = record(item.get("_spanContext") or item.get("spanContext"))
    attributes = attributes_of(item.get("attributes"))
    start_ns = _hr_time(item.get("startTime"))
    if start_ns and ("endTime" in item or "duration" in item):
        above = record(item.get("parentSpanContext"))
        take_span(
            batch,
            trace_id=item.get("traceId") or context.get("traceId"),
            span_id=item.get("spanId") or context.get("spanId"),
            parent_id=item.get("parentSpanId") or above.get("spanId"),
            name=item.get("name"),
            start_ns=start_ns,
            end_ns=_hr_time(item.get("endTime")),
            attributes=attributes,
            resource=resource,
            kind=(whole(item.get("kind")) or 0) + 1,
            status=whole(record(item.get("status")).get("code")) or 0,
            message=record(item.get("status")).get("message"),
            scope=scope.get("name"),
            scope_version=scope.get("version"),
            events=(
                RawEvent(
                    name=text(event.get("name")),
                    time_ns=_hr_time(event.get("time")),
                    attributes=attributes_of(event.get("attributes")),
                )
                for event in map(record, items(item.get("events")))
            ),
            links=(
                link_ref(
                    hexadecimal(linked.get("traceId")) or b"",
                    hexadecimal(linked.get("spanId")) or b"",
                )
                for link in map(record, items(item.get("links")))
                for linked in [record(link.get("context"))]
            ),
        )
    elif written := _hr_time(item.get("hrTime")) or _hr_time(item.get("hrTimeObserved")):
        log = RawLog(
            name=text(item.get("eventName") or attributes.get("event.name")),
            time_ns=written,
            trace_id=hexadecimal(context.get("traceId")) or b"",
            span_id=hexadecimal(context.get("spanId")) or b"",
            attributes=attributes,
            scope=text(scope.get("name")),
            resource=resource,
        )
        take_log(batch, log, item.get("_body") or item.get("body"))
    return batch


def _js_resource(resource: Mapping[str, Any]) -> dict[str, Any]:
    raw = items(resource.get("_rawAttributes"))
    pairs = {text(pair[0]): pair[1] for pair in map(items, raw) if len(pair) == 2}
    held = record(resource.get("attributes")) or record(resource.get("_memoizedAttributes"))
    return attributes_of(held or pairs)


def _hr_time(value: object) -> int:
    parts = items(value)
    if len(parts) != 2:
        return 0
    return (whole(parts[0]) or 0) * _SECOND + (whole(parts[1]) or 0)


# --- The SDK for Go: stdouttrace ------------------------------------------------------------------


def go_span(span: Mapping[str, Any]) -> Batch:
    """Read a span as the SDK for Go prints it."""
    batch = Batch()
    context, above = record(span.get("SpanContext")), record(span.get("Parent"))
    scope = record(span.get("InstrumentationScope") or span.get("InstrumentationLibrary"))
    status = record(span.get("Status"))
    take_span(
        batch,
        trace_id=context.get("TraceID"),
        span_id=context.get("SpanID"),
        parent_id=above.get("SpanID"),
        name=span.get("Name"),
        start_ns=time_ns(span.get("StartTime")),
        end_ns=time_ns(span.get("EndTime")),
        attributes=_go_attributes(span.get("Attributes")),
        resource=Resource.of(_go_attributes(span.get("Resource"))),
        kind=whole(span.get("SpanKind")) or 0,
        status=_STATUS.get(text(status.get("Code")).upper(), 0),
        message=status.get("Description"),
        scope=scope.get("Name"),
        scope_version=scope.get("Version"),
        events=(
            RawEvent(
                name=text(event.get("Name")),
                time_ns=time_ns(event.get("Time")),
                attributes=_go_attributes(event.get("Attributes")),
            )
            for event in map(record, items(span.get("Events")))
        ),
        links=(
            link_ref(
                hexadecimal(linked.get("TraceID")) or b"", hexadecimal(linked.get("SpanID")) or b""
            )
            for link in map(record, items(span.get("Links")))
            for linked in [record(link.get("SpanContext"))]
        ),
    )
    return batch


def _go_attributes(pairs: object) -> dict[str, Any]:
    return {
        text(pair.get("Key")): frozen(record(pair.get("Value")).get("Value"))
        for pair in map(record, items(pairs))
    }


# --- Jaeger: UI download, /api/traces -------------------------------------------------------------


_JAEGER_OWN: Final = frozenset(
    {"otel.scope.name", "otel.scope.version", "otel.library.name", "otel.library.version"}
    | {"span.kind", "internal.span.format", "otel.status_code", "otel.status_description", "error"}
)


def jaeger(answer: Mapping[str, Any]) -> Batch:
    """Read traces as Jaeger's UI and its API `/api/traces` give them, or one of them, or spans as
    it keeps them in Elasticsearch: times in microseconds.
    """
    batch = Batch()
    hits = [record(hit).get("_source") for hit in items(record(answer.get("hits")).get("hits"))]
    for span in map(record, hits or [answer]):
        if "spanID" in span:
            _take_jaeger(batch, span, _jaeger_resource(record(span.get("process"))))
    for trace in map(record, items(answer.get("data", [answer]))):
        processes = {
            key: _jaeger_resource(record(process))
            for key, process in record(trace.get("processes")).items()
        }
        for span in map(record, items(trace.get("spans"))):
            own = record(span.get("process"))
            process = processes.get(text(span.get("processID")))
            _take_jaeger(batch, span, process or _jaeger_resource(own))
    return batch


def _take_jaeger(batch: Batch, span: Mapping[str, Any], resource: Resource) -> None:
    tags = _jaeger_tags(span.get("tags"))
    references = [record(reference) for reference in items(span.get("references"))]
    trace_id = _wide(span.get("traceID"), 32)
    above = [
        _wide(reference.get("spanID"), 16)
        for reference in references
        if reference.get("refType") == "CHILD_OF"
        and _wide(reference.get("traceID"), 32) == trace_id
    ]
    start_ns = (whole(span.get("startTime")) or 0) * 1_000
    failed = tags.get("error") in (True, "true") or tags.get("otel.status_code") == "ERROR"
    take_span(
        batch,
        trace_id=trace_id,
        span_id=_wide(span.get("spanID"), 16),
        parent_id=above[0] if above else _wide(span.get("parentSpanID"), 16),
        name=span.get("operationName"),
        start_ns=start_ns,
        end_ns=start_ns + (whole(span.get("duration")) or 0) * 1_000,
        attributes={key: value for key, value in tags.items() if key not in _JAEGER_OWN},
        resource=resource,
        kind=_KIND.get(text(tags.get("span.kind")).upper(), 0),
        status=2 if failed else _STATUS.get(text(tags.get("otel.status_code")), 0),
        message=tags.get("otel.status_description"),
        scope=tags.get("otel.scope.name") or tags.get("otel.library.name"),
        scope_version=tags.get("otel.scope.version") or tags.get("otel.library.version"),
        events=(_jaeger_event(record(log)) for log in items(span.get("logs"))),
        links=(
            link_ref(
                hexadecimal(_wide(reference.get("traceID"), 32)) or b"",
                hexadecimal(_wide(reference.get("spanID"), 16)) or b"",
            )
            for reference in references
            if reference.get("refType") != "CHILD_OF"
        ),
    )


def _jaeger_event(log: Mapping[str, Any]) -> RawEvent:
    fields = _jaeger_tags(log.get("fields"))
    name = text(fields.pop("event", ""))
    return RawEvent(
        name=name, time_ns=(whole(log.get("timestamp")) or 0) * 1_000, attributes=fields
    )


def _jaeger_resource(process: Mapping[str, Any]) -> Resource:
    service = process.get("serviceName")
    return Resource.of({**_jaeger_tags(process.get("tags")), "service.name": service})


def _jaeger_tags(tags: object) -> dict[str, Any]:
    return {text(tag.get("key")): frozen(tag.get("value")) for tag in map(record, items(tags))}


def _wide(identifier: object, digits: int) -> str:
    """Return an id with the leading zeros that its writer left out."""
    return text(identifier).zfill(digits) if identifier else ""


# --- Zipkin ---------------------------------------------------------------------------------------


def zipkin(answer: object) -> Batch:
    """Read a list of Zipkin's spans, or of traces, or one span. Its tags are text: whole numbers
    are read back.

    Status, scope and links are lost there, but for what its tags say.
    """
    batch = Batch()
    for span in _zipkin_spans(answer):
        tags = {key: _number_of(value) for key, value in record(span.get("tags")).items()}
        start_ns = (whole(span.get("timestamp")) or 0) * 1_000
        endpoint = record(span.get("localEndpoint"))
        failed = "error" in tags or tags.get("otel.status_code") == "ERROR"
        take_span(
            batch,
            trace_id=_wide(span.get("traceId"), 32),
            span_id=_wide(span.get("id"), 16),
            parent_id=_wide(span.get("parentId"), 16),
            name=span.get("name"),
            start_ns=start_ns,
            end_ns=start_ns + (whole(span.get("duration")) or 0) * 1_000,
            attributes=tags,
            resource=Resource.of({"service.name": endpoint.get("serviceName")}),
            kind=_KIND.get(text(span.get("kind")), 1),
            status=2 if failed else 0,
            message=tags.get("otel.status_description") or tags.get("error"),
            scope=tags.get("otel.scope.name"),
            scope_version=tags.get("otel.scope.version"),
        )
    return batch


def _zipkin_spans(answer: object) -> Iterable[dict[str, Any]]:
    if items(answer) is not answer:
        yield record(answer)
        return
    for item in items(answer):
        if items(item) is item:
            yield from _zipkin_spans(item)
        else:
            yield record(item)


def _number_of(value: object) -> Any:
    number = whole(value)
    return value if number is None or str(number) != value else number


# --- Protobuf as JSON: Tempo, Python's MessageToJson, swift ---------------------------------------


_NAMES: Final = {
    "resource_spans": "resourceSpans",
    "resource_logs": "resourceLogs",
    "scope_spans": "scopeSpans",
    "scope_logs": "scopeLogs",
    "log_records": "logRecords",
    "trace_id": "traceId",
    "span_id": "spanId",
    "parent_span_id": "parentSpanId",
    "trace_state": "traceState",
    "start_time_unix_nano": "startTimeUnixNano",
    "end_time_unix_nano": "endTimeUnixNano",
    "time_unix_nano": "timeUnixNano",
    "observed_time_unix_nano": "observedTimeUnixNano",
    "event_name": "eventName",
    "string_value": "stringValue",
    "int_value": "intValue",
    "bool_value": "boolValue",
    "double_value": "doubleValue",
    "bytes_value": "bytesValue",
    "array_value": "arrayValue",
    "kvlist_value": "kvlistValue",
    "instrumentation_library_spans": "instrumentationLibrarySpans",
}
_IDS: Final = {"traceId": 32, "spanId": 16, "parentSpanId": 16}


def otlp_of(document: object) -> object:
    """Return protobuf's own JSON of a request as OTLP-JSON: hexadecimal ids, names in camel case.

    Tempo's answers hold the request as `trace`, or its resources as `batches`; Jaeger's as
    `result`; the SDK for Java logs the spans of each resource without one.

    >>> otlp_of({"batches": [{"trace_id": "AAAAAAAAAAAAAAAAAAAAAQ=="}]})
    {'resourceSpans': [{'traceId': '00000000000000000000000000000001'}]}
    """
    if items(document) is document:
        return [otlp_of(item) for item in items(document)]
    given = record(document)
    for wrapper in ("trace", "result"):
        given = record(given.get(wrapper)) or given
    if "batches" in given:
        given = {"resourceSpans": given["batches"]}
    elif "scopeSpans" in given:
        given = {"resourceSpans": [given]}
    return _renamed(given)


def request_of_spans(document: object) -> object:
    """Return spans that were taken out of a request, as a request: a list of them, the list of an
    object, or a single one. Who sent them is known where each says so itself. Their attributes may
    be an object of plain values, as CloudWatch keeps those of AWS.

    >>> request_of_spans({"spans": [{"name": "chat"}]})
    {'resourceSpans': [{'scopeSpans': [{'spans': [{'name': 'chat'}]}]}]}
    """
    spans = items(document) or items(record(document).get("spans")) or [document]
    return {"resourceSpans": [_request_part(record(span)) for span in spans]}


def _request_part(span: Mapping[str, Any]) -> dict[str, Any]:
    """Return a span below its own resource and scope."""
    scope = record(span.get("scope") or span.get("instrumentationScope"))
    resource = record(span.get("resource"))
    spans = {"scope": scope} if scope else {}
    part: dict[str, Any] = {"scopeSpans": [{**spans, "spans": [_with_pairs(span)]}]}
    return {"resource": _with_pairs(resource), **part} if resource else part


def _with_pairs(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a span, an event or a resource whose attributes are plain as OTLP has them."""
    attributes = record(given.get("attributes"))
    found = dict(given)
    if attributes:
        found["attributes"] = [{"key": key, "value": _any(attributes[key])} for key in attributes]
    if kind := _KIND.get(text(given.get("kind"))):
        found["kind"] = kind
    status = record(given.get("status"))
    if (code := _STATUS.get(text(status.get("code")))) is not None:
        found["status"] = {**status, "code": code}
    if items(given.get("events")):
        found["events"] = [_with_pairs(record(event)) for event in items(given["events"])]
    return found


def _any(value: Any) -> dict[str, Any]:
    """Return a plain value as OTLP-JSON has it."""
    if value is None:
        return {}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if items(value) is value:
        return {"arrayValue": {"values": [_any(each) for each in items(value)]}}
    if record(value) is value:
        pairs = [{"key": key, "value": _any(each)} for key, each in record(value).items()]
        return {"kvlistValue": {"values": pairs}}
    return {"stringValue": text(value)}


def _renamed(value: Any) -> Any:
    if items(value) is value:
        return [_renamed(item) for item in items(value)]
    if record(value) is not value:
        return value
    found: dict[str, Any] = {}
    for key, item in record(value).items():
        name = _NAMES.get(key, key)
        if name in _IDS:
            found[name] = _hex_of(item, _IDS[name])
        elif name not in ("stringValue", "bytesValue"):
            found[name] = _renamed(item)
        else:
            found[name] = item
    return found


def _hex_of(identifier: object, digits: int) -> object:
    """Return an id in base64 as hexadecimal; any other value as it is."""
    given = text(identifier)
    if len(given) >= digits or not given:
        return identifier
    try:
        return base64.b64decode(given.translate(str.maketrans("-_", "+/")) + "==").hex()
    except ValueError:
        return identifier
