"""An OTLP trace request in protobuf → `Batch`, without reading what nobody asks for (`otlp_descriptor` says how).

It agrees with `otlp_full` wherever that one accepts a request, but for a pair whose value is encoded twice, which no encoder
does: the map keeps the last part where the schema merges both. It accepts more: an attribute value that cannot be decoded
reads as None and costs the rest of the request nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage

from otel_reliability.errors import UndecodableBody
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
from otel_reliability.sources.otlp_descriptor import (
    EVENT_ATTRIBUTES,
    LENGTH_DELIMITED,
    SPAN_ATTRIBUTES,
    SPAN_EVENTS,
    SPAN_LINKS,
    Event,
    Link,
    Request,
    lost_attributes,
)
from otel_reliability.sources.values import attributes, plain

_tuple: Final[Callable[..., Any]] = tuple.__new__  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
"""Makes a named tuple from a tuple, without the call in Python that its class would cost."""
_NOTHING: Final[tuple[tuple[RawEvent, ...], tuple[SpanRef, ...]]] = ((), ())
_CACHED: Final = 1024
_CACHED_BYTES: Final = 16 * 1024
_MEMO_BYTES: Final = 64
LARGEST_LIST: Final = 8 * 1024 * 1024
"""Bytes of a list or map beyond which it is None: an element of two bytes takes a hundred in memory. Text has no limit."""
_FLAT: Final = (0x0A, 0x3A)
"""The tags of text and bytes."""
_MUTABLE: Final = (list, dict)


class NeedsFullSchema(UndecodableBody):
    """A body that only the full schema can tell: whether it is sound is for that decoder to say."""


class LazyAttributes(Mapping[str, Any]):
    """The attributes of one span or event, decoded one by one when asked for.

    They keep the whole request they came in alive, so whoever holds on to one must copy what it needs. `memo` is shared by
    the spans of a request: the small values that repeat (an operation, a tool's name) are decoded once. It goes when the
    request goes, so no content outlives it.
    """

    __slots__ = ("_memo", "_raw")

    def __init__(self, raw: Mapping[str, bytes], memo: dict[bytes, Any]) -> None:
        self._raw, self._memo = raw, memo

    def get(self, key: str, default: Any = None) -> Any:
        """The value, or the default where the key is absent."""
        raw = self._raw
        return self._value(raw[key]) if key in raw else default

    def __getitem__(self, key: str) -> Any:
        if key not in self._raw:
            raise KeyError(key)
        return self._value(self._raw[key])

    def __contains__(self, key: object) -> bool:
        return key in self._raw

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)

    def __repr__(self) -> str:
        return f"LazyAttributes({sorted(self._raw)})"

    def _value(self, raw: bytes) -> Any:
        memo = self._memo
        return memo[raw] if raw in memo else _remembered(raw, memo)


def _remembered(raw: bytes, memo: dict[bytes, Any]) -> Any:
    value = _decoded(raw)
    if len(raw) <= _MEMO_BYTES and type(value) not in _MUTABLE:
        memo[raw] = value
    return value


def _decoded(raw: bytes) -> Any:
    if len(raw) > LARGEST_LIST and raw[0] not in _FLAT:
        return None
    try:
        return plain(AnyValue.FromString(raw))
    except DecodeError:
        return None


def decode(body: bytes) -> Batch:
    """The spans of a request, and which of them are malformed. Raises `NeedsFullSchema` where it cannot tell."""
    try:
        request = Request.FromString(body)
        batch, memo = Batch(), dict[bytes, Any]()
        for resource_spans in request.resource_spans:
            resource = resource_of(resource_spans.resource)
            for scope_spans in resource_spans.scope_spans:
                _take(batch, scope_spans.spans, scope_of(scope_spans.scope), resource, memo)
    except DecodeError as error:
        raise NeedsFullSchema(f"not an OTLP trace request in protobuf ({len(body)} bytes)") from error
    return batch


def _take(batch: Batch, spans: Any, scope: tuple[str, str], resource: Resource, memo: dict[bytes, Any]) -> None:
    """The hot loop. What every span needs is written out here; what is unusual costs a call."""
    good, scope_name, scope_version = batch.spans.append, *scope
    for span in spans:
        trace_id, span_id, parent_id = span.trace_id, span.span_id, span.parent_span_id
        start_ns, end_ns, flags = span.start_time_unix_nano, span.end_time_unix_nano, span.flags
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
        events, links = _unusual(unknown, memo) if len(unknown) else _NOTHING
        good(
            _tuple(
                RawSpan,
                (
                    trace_id,
                    span_id,
                    parent_id if parent_id and parent_id != NO_SPAN else None,
                    span.name,
                    span.kind,
                    start_ns,
                    end_ns if end_ns > start_ns else start_ns,  # noqa: FURB136 - max() is a call, a tenth of a span
                    span.status.code,
                    bool(flags & FLAG_REMOTE) if flags & FLAG_REMOTE_KNOWN else None,
                    LazyAttributes(span.attributes, memo),
                    events,
                    links,
                    scope_name,
                    scope_version,
                    resource,
                    span.trace_state,
                ),
            )
        )


def _unusual(unknown: Any, memo: dict[bytes, Any]) -> tuple[tuple[RawEvent, ...], tuple[SpanRef, ...]]:
    """The events and links of a span, which the descriptor leaves among the unknown fields."""
    if lost_attributes(unknown, SPAN_ATTRIBUTES):
        raise NeedsFullSchema("an attribute holds more than a key and a value")
    messages = [(field.field_number, field.data) for field in unknown if field.wire_type == LENGTH_DELIMITED]
    events = tuple(_event(raw, memo) for number, raw in messages if number == SPAN_EVENTS)
    links = tuple(ref for number, raw in messages if number == SPAN_LINKS and (ref := _link(raw)))
    return events, links


def _event(raw: bytes, memo: dict[bytes, Any]) -> RawEvent:
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
