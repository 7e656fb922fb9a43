"""An OTLP trace request in protobuf → `Batch`, without reading what nobody asks for (`otlp_descriptor` says how).

It agrees with `otlp_full` wherever that one accepts a request, but for a pair whose value, or a span whose status, is encoded
twice, which no encoder does: here the last part counts where the schema merges both. It accepts more: an attribute value that
cannot be decoded reads as None and costs the rest of the request nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage

from otel_reliability.errors import UndecodableBody
from otel_reliability.model.attributes import LazyAttributes
from otel_reliability.model.span import RawEvent, RawSpan, Resource, SpanRef
from otel_reliability.sources.batch import (
    FLAG_REMOTE,
    FLAG_REMOTE_KNOWN,
    LATEST_NS,
    NO_SPAN,
    NO_TRACE,
    SPAN_ID_BYTES,
    TRACE_ID_BYTES,
    Batch,
    fault,
    link_ref,
)
from otel_reliability.sources.memo import Memo
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
    lost_attributes,
)
from otel_reliability.sources.values import attributes

_tuple: Final[Callable[..., Any]] = tuple.__new__  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
"""Makes a named tuple from a tuple, without the call in Python that its class would cost."""
Unusual = tuple[str, tuple[RawEvent, ...], tuple[SpanRef, ...]]
_NOTHING: Final[Unusual] = ("", (), ())
_STATUSES: Final = {b"": 0, b"\x18\x01": 1, b"\x18\x02": 2}
"""Status codes by the bytes of a status that says nothing else."""
_CACHED: Final = 1024
_CACHED_BYTES: Final = 16 * 1024

_fields: Final = attrgetter(
    "trace_id", "span_id", "parent_span_id", "name", "kind", "start_time_unix_nano", "end_time_unix_nano", "status", "flags",
    "attributes",
)  # fmt: skip
"""What every span has, in one call made in C."""


class NeedsFullSchema(UndecodableBody):
    """A body that only the full schema can tell: whether it is sound is for that decoder to say."""


def decode(body: bytes) -> Batch:
    """The spans of a request, and which of them are malformed. Raises `NeedsFullSchema` where it cannot tell."""
    try:
        request = Request.FromString(body)
        batch, memo = Batch(), Memo()
        for resource_spans in request.resource_spans:
            resource = resource_of(resource_spans.resource)
            for scope_spans in resource_spans.scope_spans:
                _take(batch, scope_spans.spans, scope_of(scope_spans.scope), resource, memo)
    except DecodeError as error:
        raise NeedsFullSchema(f"not an OTLP trace request in protobuf ({len(body)} bytes)") from error
    return batch


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
        state, events, links = _unusual(unknown, memo) if len(unknown) else _NOTHING
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


def _unusual(unknown: Any, memo: Memo) -> Unusual:
    """The trace state, the events and the links of a span, which the descriptor leaves among the unknown fields."""
    if lost_attributes(unknown, SPAN_ATTRIBUTES):
        raise NeedsFullSchema("an attribute holds more than a key and a value")
    messages = [(field.field_number, field.data) for field in unknown if field.wire_type == LENGTH_DELIMITED]
    states, events, links = (
        [raw for number, raw in messages if number == wanted] for wanted in (SPAN_STATE, SPAN_EVENTS, SPAN_LINKS)
    )
    return unusual(states, events, links, memo)


def unusual(states: list[bytes], events: list[bytes], links: list[bytes], memo: Memo) -> Unusual:
    """What the messages of a span's trace states, events and links tell."""
    return _state(states), tuple(_event(raw, memo) for raw in events), tuple(filter(None, map(_link, links)))


def _state(parts: list[bytes]) -> str:
    """A text that came more than once is what came last; every one of them must be a text."""
    try:
        return [part.decode() for part in parts][-1] if parts else ""
    except UnicodeDecodeError as error:
        raise DecodeError("a trace state that is no UTF-8") from error


def _event(raw: bytes, memo: Memo) -> RawEvent:
    event = Event.FromString(raw)
    if lost_attributes(UnknownFieldSet(event), EVENT_ATTRIBUTES):
        raise NeedsFullSchema("an attribute of an event holds more than a key and a value")
    return RawEvent(event.name, event.time_unix_nano, LazyAttributes(event.attributes, memo))


def _link(raw: bytes) -> SpanRef | None:
    link = Link.FromString(raw)
    return link_ref(link.trace_id, link.span_id)


def resource_of(parts: Any) -> Resource:
    """The resource whose message came in these parts, mostly one."""
    raw = b"".join(parts)
    return _read_resource(raw) if len(raw) <= _CACHED_BYTES else _read_resource.__wrapped__(raw)


def scope_of(parts: Any) -> tuple[str, str]:
    """Name and version of the scope whose message came in these parts, mostly one."""
    raw = b"".join(parts)
    return _read_scope(raw) if len(raw) <= _CACHED_BYTES else _read_scope.__wrapped__(raw)


@lru_cache(_CACHED)
def _read_resource(raw: bytes) -> Resource:
    return Resource.of(attributes(ResourceMessage.FromString(raw).attributes))


@lru_cache(_CACHED)
def _read_scope(raw: bytes) -> tuple[str, str]:
    scope = InstrumentationScope.FromString(raw)
    return scope.name, scope.version
