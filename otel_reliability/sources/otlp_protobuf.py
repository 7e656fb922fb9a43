"""OTLP requests in protobuf → `Batch`, without reading what no rule asks for (`otlp_descriptor` says how).

It agrees with the full schema wherever that accepts a request, but for a pair whose value, or a span whose status, is encoded
twice, which no encoder does: here the last part counts where the schema merges both. It accepts more: an attribute value that
cannot be decoded reads as None and costs the rest of the request nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage

from otel_reliability.errors import UndecodableBody
from otel_reliability.model.span import LazyAttributes, RawEvent, RawSpan, Resource, SpanRef
from otel_reliability.sources.any_value import Memo, attributes, plain
from otel_reliability.sources.batch import (
    FLAG_REMOTE,
    FLAG_REMOTE_KNOWN,
    LATEST_NS,
    NO_SPAN,
    NO_TRACE,
    SPAN_ID_BYTES,
    TRACE_ID_BYTES,
    Batch,
    Log,
    fault,
    link_ref,
    take_log,
)
from otel_reliability.sources.otlp_descriptor import (
    EVENT_ATTRIBUTES,
    LENGTH_DELIMITED,
    SPAN_ATTRIBUTES,
    SPAN_EVENTS,
    SPAN_LINKS,
    SPAN_STATE,
    Event,
    Link,
    Request,
    Status,
)

_tuple: Final[Callable[..., Any]] = tuple.__new__  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
"""Makes a named tuple from a tuple, without the call in Python that its class would cost."""
_STATUSES: Final = {b"": 0, b"\x18\x01": 1, b"\x18\x02": 2}
"""Status codes by the bytes of a status that says nothing else."""
_CACHED: Final = 1024
_CACHED_BYTES: Final = 16 * 1024

_fields: Final = attrgetter(
    "trace_id", "span_id", "parent_span_id", "name", "kind", "start_time_unix_nano", "end_time_unix_nano", "status", "flags",
    "attributes",
)  # fmt: skip
"""What every span has, in one call made in C."""


def decode_traces(body: bytes) -> Batch:
    """The spans of an ExportTraceServiceRequest. Attribute values are decoded when asked for (`LazyAttributes`).

    Malformed spans are named in `Batch.malformed`, their neighbours live. Raises `UndecodableBody` for a body that is no such
    request, and for one made to explode in memory (`check`). No bytes at all are an empty request.

    >>> decode_traces(b"").spans
    []
    """
    check(body)
    batch, memo = Batch(), Memo()
    try:
        for resource_spans in Request.FromString(body).resource_spans:
            resource = resource_of(b"".join(resource_spans.resource))
            for scope_spans in resource_spans.scope_spans:
                _take(batch, scope_spans.spans, scope_of(b"".join(scope_spans.scope)), resource, memo)
    except DecodeError as error:
        raise UndecodableBody(f"not an OTLP trace request in protobuf ({len(body)} bytes)") from error
    return batch


def decode_logs(body: bytes) -> Batch:
    """The evaluations and other log events of an ExportLogsServiceRequest; records that are no event are counted.

    Raises `UndecodableBody` for a body that is no such request.

    >>> decode_logs(b"").other_logs
    0
    """
    try:
        request = ExportLogsServiceRequest.FromString(body)
    except DecodeError as error:
        raise UndecodableBody(f"not an OTLP logs request in protobuf ({len(body)} bytes)") from error
    batch = Batch()
    for resource_logs in request.resource_logs:
        resource = Resource.of(attributes(resource_logs.resource.attributes))
        for scope_logs in resource_logs.scope_logs:
            for record in scope_logs.log_records:
                take_log(batch, _log(record, scope_logs.scope.name, resource))
    return batch


def _log(record: LogRecord, scope: str, resource: Resource) -> Log:
    return Log(
        record.event_name,
        plain(record.body),
        attributes(record.attributes),
        record.time_unix_nano or record.observed_time_unix_nano,
        record.trace_id,
        record.span_id,
        scope,
        resource,
    )


def _take(batch: Batch, spans: Any, scope: tuple[str, str], resource: Resource, memo: Memo) -> None:
    """The hot loop. What every span needs is written out here; what is unusual costs a call."""
    good, scope_name, scope_version = batch.spans.append, *scope
    for span in spans:
        trace_id, span_id, parent_id, name, kind, start_ns, end_ns, status, flags, pairs = _fields(span)
        sound = (
            len(trace_id) == TRACE_ID_BYTES
            and len(span_id) == SPAN_ID_BYTES
            and not (trace_id == NO_TRACE or span_id == NO_SPAN)
            and (not parent_id or len(parent_id) == SPAN_ID_BYTES)
            and 0 < start_ns <= LATEST_NS
            and 0 < end_ns <= LATEST_NS
        )
        if not sound and (problem := fault(trace_id, span_id, parent_id, start_ns, end_ns)):
            batch.malformed.append(problem)
            continue
        unknown = UnknownFieldSet(span)
        state, events, links = "", (), ()
        if len(unknown):
            fields = [(field.field_number, field.wire_type, field.data) for field in unknown]
            pairs, state, events, links = unusual(fields, pairs, memo)
        good(
            _tuple(
                RawSpan,
                (
                    trace_id,
                    span_id,
                    parent_id if parent_id and parent_id != NO_SPAN else None,
                    name,
                    kind,
                    start_ns,
                    end_ns if end_ns > start_ns else start_ns,  # noqa: FURB136 - max() is a call, a tenth of a span
                    _STATUSES[status] if status in _STATUSES else Status.FromString(status).code,
                    bool(flags & FLAG_REMOTE) if flags & FLAG_REMOTE_KNOWN else None,
                    LazyAttributes(pairs, memo),
                    events,
                    links,
                    scope_name,
                    scope_version,
                    resource,
                    state,
                ),
            )
        )


def unusual(
    fields: Iterable[tuple[int, int, Any]], pairs: Any, memo: Memo
) -> tuple[Any, str, tuple[RawEvent, ...], tuple[SpanRef, ...]]:
    """The attributes, the trace state, the events and the links of a span that has fields which the descriptor leaves out."""
    state = ""
    events: list[RawEvent] = []
    links: list[SpanRef | None] = []
    for number, wire_type, data in fields:
        if wire_type != LENGTH_DELIMITED:
            continue
        if number == SPAN_STATE:
            state = _text(data)
        elif number == SPAN_EVENTS:
            events.append(_event(data, memo))
        elif number == SPAN_LINKS:
            link = Link.FromString(data)
            links.append(link_ref(link.trace_id, link.span_id))
        elif number == SPAN_ATTRIBUTES:
            pairs = _with_pair(pairs, data)
    return pairs, state, tuple(events), tuple(filter(None, links))


def _event(data: bytes, memo: Memo) -> RawEvent:
    event = Event.FromString(data)
    pairs = event.attributes
    for field in UnknownFieldSet(event):
        if field.field_number == EVENT_ATTRIBUTES and field.wire_type == LENGTH_DELIMITED:
            pairs = _with_pair(pairs, field.data)
    return RawEvent(event.name, event.time_unix_nano, LazyAttributes(pairs, memo))


def _with_pair(pairs: Any, data: bytes) -> dict[str, bytes]:
    """Attributes, with one that the runtime did not put into the map: a pair with a third part (`key_strindex`)."""
    pair = KeyValue.FromString(data)
    return {**pairs, pair.key: pair.value.SerializeToString()}


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DecodeError("a trace state that is no UTF-8") from error


def resource_of(message: bytes) -> Resource:
    """The resource of this message. Raises `DecodeError`."""
    return _read_resource(message) if len(message) <= _CACHED_BYTES else _read_resource.__wrapped__(message)


def scope_of(message: bytes) -> tuple[str, str]:
    """Name and version of the scope of this message. Raises `DecodeError`."""
    return _read_scope(message) if len(message) <= _CACHED_BYTES else _read_scope.__wrapped__(message)


@lru_cache(_CACHED)
def _read_resource(message: bytes) -> Resource:
    return Resource.of(attributes(ResourceMessage.FromString(message).attributes))


@lru_cache(_CACHED)
def _read_scope(message: bytes) -> tuple[str, str]:
    scope = InstrumentationScope.FromString(message)
    return scope.name, scope.version


# --- Limits of large requests -------------------------------------------------------------------------------------------


LARGE: Final = 1024 * 1024
"""Bytes from which a request, and from which a single span, is looked into; the largest resource, too."""
LEAST_SPAN: Final = 40
"""Bytes a span has at least, on average: sound ids and times alone take 44."""
MOST_FIELDS: Final = 100_000
"""Attributes, events and links that one large span may have."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIZES: Final = {_VARINT: 0, _FIXED64: 8, _FIXED32: 4}
_INSIDE: Final = {"request": (1, "resource"), "resource": (2, "scope"), "scope": (2, "span")}
"""Which field of a message holds the messages of the next level."""


def check(body: bytes) -> None:
    """Raise `UndecodableBody` for a large request of too many, or too full, parts: it would take far more memory than bytes.

    An empty message takes two bytes on the wire and hundreds in memory: 4 MB of empty spans took 650 MB. What is sound cannot be
    that small. Only requests beyond `LARGE` are checked. What is no protobuf passes: the decoders refuse it.

    >>> check(b"anything small")
    """
    if len(body) > LARGE and _parts(body, 0, len(body), "request") > len(body) // LEAST_SPAN:
        raise UndecodableBody(f"a request of {len(body)} bytes with more spans than could be sound in it")


def _parts(body: bytes, at: int, end: int, level: str) -> int:
    """Return how many messages there are at this level and below, spans the last. A large one that is none of them is refused."""
    wanted, below = _INSIDE[level]
    parts = 0
    for number, start, stop in _each_field(body, at, end):
        parts += 1
        if number == wanted and below != "span":
            parts += _parts(body, start, stop, below)
        elif stop - start > LARGE:
            _check_large(body, start, stop, below if number == wanted else "")
    return parts


def _check_large(body: bytes, start: int, end: int, level: str) -> None:
    if level != "span":
        raise UndecodableBody(f"a resource or scope of {end - start} bytes")
    if any(count >= MOST_FIELDS for count, _ in enumerate(_each_field(body, start, end))):
        raise UndecodableBody(f"a span of more than {MOST_FIELDS} attributes, events and links")


def _each_field(body: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Number, start and end of each field between two places, as far as they can be made out."""
    while at < end:
        tag, at = (body[at], at + 1) if body[at] < 128 else _varint(body, at)
        kind, size = tag & 7, 0
        if kind in (_VARINT, _BYTES) and at < end:
            size, at = (body[at], at + 1) if body[at] < 128 else _varint(body, at)
        stop = at + (size if kind == _BYTES else _SIZES.get(kind, end))
        yield tag >> 3, at, min(stop, end)
        at = stop


def _varint(body: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends: after ten bytes at most, since longer ones are no protobuf."""
    value = shift = 0
    while at < len(body) and shift < 70:
        byte = body[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
    return value, at
