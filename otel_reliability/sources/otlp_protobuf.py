"""OTLP requests in protobuf → raw spans and log events, without reading what no rule asks for
(`otlp_descriptor` says how).

It agrees with the full schema wherever that accepts a request, but for a pair whose value, or a
span whose status, is encoded twice, which no encoder does: here the last part counts where the
schema merges both. It accepts more: an attribute value that cannot be decoded reads as None and
costs the rest of the request nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, TypeVar

from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage

from otel_reliability.errors import UndecodableBody
from otel_reliability.model.span import (
    LazyAttributes,
    RawEvent,
    RawLog,
    RawSpan,
    Resource,
    SpanRef,
)
from otel_reliability.sources.batch import (
    FLAG_REMOTE,
    FLAG_REMOTE_KNOWN,
    LATEST_NS,
    MAX_DEPTH,
    NO_SPAN,
    NO_TRACE,
    SPAN_ID_BYTES,
    TRACE_ID_BYTES,
    Batch,
    Malformed,
    fault,
    link_ref,
    parent_remote,
    take_log,
    with_status_message,
)
from otel_reliability.sources.otlp_descriptor import (
    EVENT_ATTRIBUTES,
    LENGTH_DELIMITED,
    SPAN_ATTRIBUTES,
    SPAN_DROPPED,
    SPAN_EVENTS,
    SPAN_LINKS,
    SPAN_STATE,
    VARINT,
    Event,
    Link,
    LogsRequest,
    Request,
    Status,
)

T = TypeVar("T")

_STATUSES: Final = {b"": 0, b"\x18\x01": 1, b"\x18\x02": 2}
"""Status codes by the bytes of a status that says nothing else."""
_REMOTE_FLAGS: Final = FLAG_REMOTE_KNOWN | FLAG_REMOTE
_REMOTE: Final = {
    flags: parent_remote(flags) for flags in (0, FLAG_REMOTE_KNOWN, FLAG_REMOTE, _REMOTE_FLAGS)
}
_CACHED: Final = 1024
_CACHED_BYTES: Final = 16 * 1024

_fields: Final = attrgetter(
    "trace_id",
    "span_id",
    "parent_span_id",
    "name",
    "kind",
    "start_time_unix_nano",
    "end_time_unix_nano",
    "status",
    "flags",
    "attributes",
    "events",
)
"""Fields of every span, in one call made in C."""


def read_traces(body: bytes, read: Callable[[RawSpan], T]) -> tuple[list[T], list[Malformed]]:
    """Return the spans of an ExportTraceServiceRequest, each as `read` returns it, and what is
    wrong with malformed ones.

    Each span is read at once: none is kept until the request is decoded. Attribute values are
    decoded when asked for (`LazyAttributes`). Raise `UndecodableBody` for a body that is no such
    request, and for one made to explode in memory (`check`). No bytes at all are an empty request.

    >>> read_traces(b"", lambda span: span.name)
    ([], [])
    """
    check(body)
    found: tuple[list[T], list[Malformed]] = [], []
    try:
        for resource_spans in Request.FromString(body).resource_spans:
            resource = resource_of(b"".join(resource_spans.resource))
            for scope_spans in resource_spans.scope_spans:
                _take(
                    found, scope_spans.spans, scope_of(b"".join(scope_spans.scope)), resource, read
                )
    except DecodeError as error:
        raise UndecodableBody(
            f"not an OTLP trace request in protobuf ({len(body)} bytes)"
        ) from error
    return found


def decode_logs(body: bytes) -> Batch:
    """The evaluations and other log events of an ExportLogsServiceRequest; records that are no
    event are counted.

    Raises `UndecodableBody` for a body that is no such request, and for one made to explode in
    memory; one of spans or metrics is named.

    >>> decode_logs(b"").other_logs
    0
    """
    check(body, LEAST_RECORD)
    batch = Batch()
    try:
        for resource_logs in LogsRequest.FromString(body).resource_logs:
            resource = resource_of(b"".join(resource_logs.resource))
            for scope_logs in resource_logs.scope_logs:
                scope, _ = scope_of(b"".join(scope_logs.scope))
                for record in scope_logs.log_records:
                    _take_record(batch, record, scope, resource)
    except DecodeError as error:
        detail = _SPANS if _holds_spans(body) else "not an OTLP logs request in protobuf"
        raise UndecodableBody(f"{detail} ({len(body)} bytes)") from error
    return batch


def _take_record(batch: Batch, encoded: bytes, scope: str, resource: Resource) -> None:
    """Put a log record into the batch. Only one is decoded at a time: of lists of nothing it takes
    thirty times its bytes. Of its body only text and maps are asked for.
    """
    if len(encoded) > LARGE:
        _values_after(encoded, 0, len(encoded), "record", MOST_FIELDS, _DEEPEST)
    record = LogRecord.FromString(encoded)
    if not (record.time_unix_nano or record.observed_time_unix_nano):
        _check_log_record(record)
    if max(len(record.attributes), len(record.body.kvlist_value.values)) > MOST_ATTRIBUTES:
        raise UndecodableBody(f"a log record of more than {MOST_ATTRIBUTES} attributes")
    log = RawLog(
        record.event_name,
        record.time_unix_nano or record.observed_time_unix_nano,
        record.trace_id,
        record.span_id,
        attributes(record.attributes),
        scope,
        resource,
    )
    body = record.body
    take_log(batch, log, None if body.WhichOneof("value") == "array_value" else plain(body))


_SPANS: Final = "spans are no log records; send them to /v1/traces"
_LOG_TIME_FIELD: Final = 1
"""The field that holds the time of a log record, the trace id of a span, the name of a metric."""


def _holds_spans(body: bytes) -> bool:
    """Return whether a body that is no request of logs is one of traces."""
    try:
        return bool(read_traces(body, lambda span: span.span_id)[0])
    except UndecodableBody:
        return False


def _check_log_record(record: Any) -> None:
    """Raise `UndecodableBody` for a span or a metric that stands where a log record belongs: it
    reads as a record without a time.
    """
    for field in UnknownFieldSet(record):
        if field.field_number == _LOG_TIME_FIELD and field.wire_type == LENGTH_DELIMITED:
            is_span = len(field.data) == TRACE_ID_BYTES
            raise UndecodableBody(
                _SPANS if is_span else "metrics are no log records; send them to /v1/metrics"
            )


def _take(
    found: tuple[list[T], list[Malformed]],
    spans: Any,
    scope: tuple[str, str],
    resource: Resource,
    read: Callable[[RawSpan], T],
) -> None:
    """The hot loop. What every span needs is written out here; what is unusual costs a call."""
    good, scope_name, scope_version = found[0].append, *scope
    for span in spans:
        (
            trace_id,
            span_id,
            parent_id,
            name,
            kind,
            start_ns,
            end_ns,
            status,
            flags,
            pairs,
            happened,
        ) = _fields(span)
        sound = (
            len(trace_id) == TRACE_ID_BYTES
            and len(span_id) == SPAN_ID_BYTES
            and not (trace_id == NO_TRACE or span_id == NO_SPAN)
            and (not parent_id or len(parent_id) == SPAN_ID_BYTES)
            and 0 < start_ns <= LATEST_NS
            and 0 < end_ns <= LATEST_NS
        )
        if not sound and (problem := fault(trace_id, span_id, parent_id, start_ns, end_ns)):
            found[1].append(problem)
            continue
        unknown = UnknownFieldSet(span)
        state = ""
        events = tuple(map(_event, happened)) if happened else ()
        links = ()
        dropped = 0
        if status in _STATUSES:
            code = _STATUSES[status]
        else:
            code, events = with_status(status, events, end_ns)
        if len(unknown):
            fields = [(field.field_number, field.wire_type, field.data) for field in unknown]
            pairs, state, _, links, dropped = unusual(fields, pairs)
        good(
            read(
                RawSpan(
                    trace_id,
                    span_id,
                    parent_id if parent_id and parent_id != NO_SPAN else None,
                    name,  # more than 13 keywords here would be passed as a dictionary
                    span_kind=kind,
                    start_ns=start_ns,
                    end_ns=end_ns,
                    status=code,
                    parent_remote=_REMOTE[flags & _REMOTE_FLAGS],
                    attributes=LazyAttributes(pairs, decoded),
                    events=events,
                    links=links,
                    scope=scope_name,
                    scope_version=scope_version,
                    resource=resource,
                    trace_state=state,
                    dropped=dropped,
                )
            )
        )


def with_status(
    status: bytes, events: tuple[RawEvent, ...], end_ns: int
) -> tuple[int, tuple[RawEvent, ...]]:
    """The code of an encoded status, and the events of its span with its message."""
    found = Status.FromString(status)
    message = found.message.decode("utf-8", "replace")
    return found.code, with_status_message(events, found.code, message, end_ns)


def unusual(
    fields: Iterable[tuple[int, int, Any]], pairs: Any
) -> tuple[Any, str, tuple[RawEvent, ...], tuple[SpanRef, ...], int]:
    """The attributes, trace state, events, links and number of dropped parts of a span with fields
    that the descriptor leaves out.

    (Events are among them only where the native extension hands them over.)
    """
    state = ""
    events: list[RawEvent] = []
    links: list[SpanRef | None] = []
    dropped = 0
    for number, wire_type, data in fields:
        if wire_type != LENGTH_DELIMITED:
            dropped += data if number in SPAN_DROPPED and wire_type == VARINT else 0
            continue
        if number == SPAN_STATE:
            state = _text(data)
        elif number == SPAN_EVENTS:
            events.append(_event(Event.FromString(data)))
        elif number == SPAN_LINKS:
            link = Link.FromString(data)
            links.append(link_ref(link.trace_id, link.span_id))
        elif number == SPAN_ATTRIBUTES:
            pairs = _with_pair(pairs, data)
    return pairs, state, tuple(events), tuple(filter(None, links)), dropped


def _event(event: Any) -> RawEvent:
    pairs = event.attributes
    for field in UnknownFieldSet(event):
        if field.field_number == EVENT_ATTRIBUTES and field.wire_type == LENGTH_DELIMITED:
            pairs = _with_pair(pairs, field.data)
    return RawEvent(event.name, event.time_unix_nano, LazyAttributes(pairs, decoded))


def _with_pair(pairs: Any, data: bytes) -> dict[str, bytes]:
    """Attributes, with one that the runtime did not put into the map: a pair with a third part
    (`key_strindex`).
    """
    pair = KeyValue.FromString(data)
    return {**pairs, pair.key: pair.value.SerializeToString()}


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DecodeError("a trace state that is no UTF-8") from error


def _cached(read: Callable[[bytes], T]) -> Callable[[bytes], T]:
    """Return a reader that remembers what it read of the last short messages."""
    remembering = lru_cache(_CACHED)(read)
    return lambda message: remembering(message) if len(message) <= _CACHED_BYTES else read(message)


@_cached
def resource_of(message: bytes) -> Resource:
    """The resource of this message. Raises `DecodeError`."""
    return Resource.of(attributes(ResourceMessage.FromString(message).attributes))


@_cached
def scope_of(message: bytes) -> tuple[str, str]:
    """Name and version of the scope of this message. Raises `DecodeError`."""
    scope = InstrumentationScope.FromString(message)
    return scope.name, scope.version


# --- Values ---------------------------------------------------------------------------------------
#
# Nearly every value is one text or one number, written the one way every encoder writes it; those
# are read here byte by byte, at a quarter of what a message object costs. All else is left to
# protobuf, which this agrees with on every value.


LARGEST_LIST: Final = 8 * 1024 * 1024
"""Bytes of a list or map beyond which it is None: an element of two bytes takes a hundred in
memory. Text has no limit.
"""

_TEXT_TAG = 0x0A
_INTEGER_TAG = 0x18
_BYTES_TAG = 0x3A
"""The tags of text, integers and bytes."""


def plain(value: AnyValue, depth: int = MAX_DEPTH) -> Any:
    """A value as str, bool, int, float, bytes, tuple or dict; None where it holds nothing we can
    know.

    >>> plain(AnyValue(int_value=3))
    3
    >>> plain(AnyValue())
    """
    match value.WhichOneof("value"):
        case "string_value":
            return value.string_value
        case "int_value":
            return value.int_value
        case "bool_value":
            return value.bool_value
        case "double_value":
            return value.double_value
        case "bytes_value":
            return value.bytes_value
        case "array_value" if depth:
            return tuple([plain(item, depth - 1) for item in value.array_value.values])
        case "kvlist_value" if depth:
            return attributes(value.kvlist_value.values, depth - 1)
        case _:
            return None


def attributes(pairs: Iterable[KeyValue], depth: int = MAX_DEPTH) -> dict[str, Any]:
    """Pairs as a dict. Of pairs with the same key the last one counts."""
    return {pair.key: plain(pair.value, depth) for pair in pairs}


def decoded(raw: bytes) -> Any:
    """The value that these bytes are; None where they cannot be decoded: it never fails.

    >>> decoded(AnyValue(int_value=300).SerializeToString()), decoded(b"")
    (300, None)
    >>> decoded(b"broken")
    """
    size = len(raw)
    if size < 2:
        return None if not size else _by_protobuf(raw)
    tag = raw[0]
    first = raw[1]
    try:
        if tag == _TEXT_TAG:
            if first == size - 2 < 128:
                return raw[2:].decode()
            if (
                first > 127
                and size > 2
                and raw[2] < 128
                and (first & 127 | raw[2] << 7) == size - 3 > 127
            ):
                return raw[3:].decode()
        elif tag == _INTEGER_TAG:
            if size == 2 and first < 128:
                return first
            if size == 3 and first > 127 > raw[2] > 0:
                return first & 127 | raw[2] << 7
    except UnicodeDecodeError:
        return None
    return _by_protobuf(raw)


def _by_protobuf(raw: bytes) -> Any:
    if len(raw) > LARGEST_LIST and raw[0] not in {_TEXT_TAG, _BYTES_TAG}:
        return None
    try:
        return plain(AnyValue.FromString(raw))
    except DecodeError:
        return None


# --- Limits of large requests ---------------------------------------------------------------------


LARGE: Final = 1024 * 1024
"""Bytes from which a request, and from which a single span, is looked into; the largest resource,
too.
"""
LEAST_SPAN: Final = 40
"""Bytes a span has at least, on average: sound ids and times alone take 44."""
LEAST_RECORD: Final = 24
"""Bytes a log record has at least, on average: two times and a severity take 20."""
MOST_FIELDS: Final = 100_000
"""Attributes, events and links that one large span may have, and parts of a large log record."""
MOST_ATTRIBUTES: Final = 10_000
"""Attributes that one log record may have."""
_DEEPEST: Final = 100
"""Levels of messages in each other; protobuf refuses more."""

_VARINT = 0
_FIXED64 = 1
_BYTES = 2
_FIXED32 = 5
_SIZES: Final = {_FIXED64: 8, _FIXED32: 4}
_INSIDE: Final = {"request": (1, "resource"), "resource": (2, "scope"), "scope": (2, "span")}
"""Which field of a message holds the messages of the next level."""

_VALUES: Final[Mapping[str, Mapping[int, str]]] = {
    "record": {5: "value", 6: "pair"},
    "pair": {2: "value"},
    "value": {5: "list", 6: "map"},
    "list": {1: "value"},
    "map": {1: "pair"},
}
"""Which fields of a log record, and of its values, hold which messages."""


def check(body: bytes, least: int = LEAST_SPAN) -> None:
    """Raise `UndecodableBody` for a large request of too many, or too full, parts: it would take
    far more memory than bytes.

    An empty message takes two bytes on the wire and hundreds in memory: 4 MB of empty spans took
    650 MB. What is sound cannot be that small. Only requests beyond `LARGE` are checked. What is no
    protobuf passes: the decoders refuse it. It stops at the first part too many, so that a body of
    20 MB of zeros costs no more than one of as many spans. `least`: bytes that a span has at
    least, or a log record: their requests are alike as far as they are looked into.

    >>> check(b"anything small")
    """
    if len(body) > LARGE:
        _room_after(body, 0, len(body), "request", len(body) // least)


def _room_after(body: bytes, at: int, end: int, level: str, room: int) -> int:
    """Return for how many further messages there is room after those at this level and below, spans
    the last. A large one that is none of them is refused.
    """
    wanted, below = _INSIDE[level]
    while at < end:
        number, start, at = _field(body, at, end)
        room -= 1
        if room < 0:
            raise UndecodableBody(
                f"a request of {len(body)} bytes with more parts than could be sound in it"
            )
        if number == wanted and below != "span":
            room = _room_after(body, start, at, below, room)
        elif at - start > LARGE:
            _check_large(body, start, at, below if number == wanted else "")
    return room


def _check_large(body: bytes, at: int, end: int, level: str) -> None:
    if level != "span":
        raise UndecodableBody(f"a resource or scope of {end - at} bytes")
    for _ in range(MOST_FIELDS):
        if at >= end:
            return
        _, _, at = _field(body, at, end)
    raise UndecodableBody(f"a span or log record of more than {MOST_FIELDS} attributes")


def _values_after(record: bytes, at: int, end: int, level: str, room: int, depth: int) -> int:
    """Return how many further parts a large log record may have after those of a message in it."""
    below = _VALUES[level]
    while at < end:
        number, start, at = _field(record, at, end)
        room -= 1
        if room < 0:
            raise UndecodableBody(f"a log record of more than {MOST_FIELDS} parts")
        if number in below and depth:
            room = _values_after(record, start, at, below[number], room, depth - 1)
    return room


def _field(body: bytes, at: int, end: int) -> tuple[int, int, int]:
    """Return the number of the field at a place, and where its content starts and ends, as far as
    that can be made out.
    """
    tag, at = (body[at], at + 1) if body[at] < 128 else _varint(body, at)
    kind = tag & 7
    if kind == _BYTES:
        size, at = _varint(body, at)
    elif kind == _VARINT:
        size = 0
        at = _varint(body, at)[1]
    else:
        size = _SIZES.get(kind, end)
    return tag >> 3, at, min(end, at + size)


def _varint(body: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends: after ten bytes at most, since longer ones are no protobuf."""
    head = body[at : at + 10]
    value = shift = 0
    for byte in head:
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
    return value, at
