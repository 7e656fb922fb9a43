"""What may arrive: attribute values of every type, spans sound and malformed, and requests that
hold them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import astuple
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import (
    AnyValue,
    ArrayValue,
    InstrumentationScope,
    KeyValue,
    KeyValueList,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from otel_reliability.model.span import RawEvent, RawSpan, Resource

INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
KEYS = st.sampled_from(["gen_ai.operation.name", "gen_ai.tool.name", "", "ключ"]) | TEXT
SCALARS = (
    TEXT | st.booleans() | INT64 | st.floats(allow_nan=False) | st.binary(max_size=8) | st.none()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
ATTRIBUTES = st.dictionaries(KEYS, VALUES, max_size=5)
TIMES = st.integers(1, 2**63 - 1)
TRACE_IDS = st.binary(min_size=16, max_size=16).filter(any)
SPAN_IDS = st.binary(min_size=8, max_size=8).filter(any)


MESSAGES = st.sampled_from(["", "GraphInterrupt(())", "The operation was aborted.", "it broke"])
"""Messages of a status."""


@st.composite
def raw_spans(draw: st.DrawFn) -> RawSpan:
    """A sound span with anything in its attributes."""
    start, end = sorted((draw(TIMES), draw(TIMES)))
    return RawSpan(
        trace_id=draw(TRACE_IDS),
        span_id=draw(SPAN_IDS),
        parent_id=draw(st.none() | SPAN_IDS),
        name=draw(TEXT),
        span_kind=draw(st.integers(0, 5)),
        start_ns=start,
        end_ns=end,
        status=draw(st.integers(0, 2)),
        parent_remote=draw(st.none() | st.booleans()),
        attributes=draw(ATTRIBUTES),
        events=tuple(draw(st.lists(st.builds(RawEvent, TEXT, TIMES, ATTRIBUTES), max_size=2))),
        links=tuple(draw(st.lists(st.tuples(TRACE_IDS, SPAN_IDS), max_size=2))),
        scope=draw(TEXT),
        scope_version=draw(TEXT),
        resource=Resource.of(draw(ATTRIBUTES)),
        trace_state=draw(TEXT),
    )


def any_values() -> st.SearchStrategy[AnyValue]:
    """A value as protobuf holds it, the absent one, NaN and types no schema of
    ours knows included.
    """
    leaves = st.one_of(
        st.just(AnyValue()),
        st.builds(AnyValue, string_value=TEXT),
        st.builds(AnyValue, bool_value=st.booleans()),
        st.builds(AnyValue, int_value=INT64),
        st.builds(AnyValue, double_value=st.floats()),
        st.builds(AnyValue, bytes_value=st.binary(max_size=8)),
        st.binary(max_size=4).map(
            lambda raw: AnyValue.FromString(b"\x7a" + bytes([len(raw)]) + raw)
        ),
    )
    return st.recursive(leaves, _containers, max_leaves=6)


def _containers(inner: st.SearchStrategy[AnyValue]) -> st.SearchStrategy[AnyValue]:
    lists = st.lists(inner, max_size=3).map(
        lambda items: AnyValue(array_value=ArrayValue(values=items))
    )
    maps = pairs(inner).map(lambda items: AnyValue(kvlist_value=KeyValueList(values=items)))
    return lists | maps


def pairs(values: st.SearchStrategy[AnyValue]) -> st.SearchStrategy[list[KeyValue]]:
    """Pairs, some of them with the same key, some without a value."""
    whole = st.builds(KeyValue, key=KEYS, value=values)
    return st.lists(whole | st.builds(KeyValue, key=KEYS), max_size=5)


def ids(size: int) -> st.SearchStrategy[bytes]:
    """An id, often a proper one."""
    whole = st.binary(min_size=size, max_size=size)
    return whole | whole | whole | st.just(bytes(size)) | st.binary(max_size=20)


@st.composite
def span_messages(draw: st.DrawFn) -> Span:
    times = TIMES | TIMES | st.integers(0, 2**64 - 1)
    attributes = pairs(any_values())
    return Span(
        trace_id=draw(ids(16)),
        span_id=draw(ids(8)),
        parent_span_id=draw(ids(8) | st.just(b"")),
        trace_state=draw(TEXT),
        flags=draw(st.sampled_from([0, 1, 0x100, 0x101, 0x200, 0x300]) | st.integers(0, 2**32 - 1)),
        name=draw(TEXT),
        kind=Span.SpanKind.ValueType(draw(st.integers(0, 5) | st.integers(-(2**31), 2**31 - 1))),
        start_time_unix_nano=draw(times),
        end_time_unix_nano=draw(times),
        attributes=draw(attributes),
        events=draw(
            st.lists(
                st.builds(Span.Event, name=TEXT, time_unix_nano=TIMES, attributes=attributes),
                max_size=2,
            )
        ),
        links=draw(
            st.lists(
                st.builds(Span.Link, trace_id=ids(16), span_id=ids(8), attributes=attributes),
                max_size=2,
            )
        ),
        status=Status(
            code=Status.StatusCode.ValueType(draw(st.integers(0, 2) | st.integers(-9, 9))),
            message=draw(TEXT | MESSAGES),
        ),
        dropped_attributes_count=draw(st.integers(0, 9)),
        dropped_events_count=draw(st.integers(0, 9)),
        dropped_links_count=draw(st.integers(0, 9)),
    )


@st.composite
def requests(draw: st.DrawFn) -> ExportTraceServiceRequest:
    return ExportTraceServiceRequest(
        resource_spans=[
            ResourceSpans(
                resource=ResourceMessage(attributes=draw(pairs(any_values()))),
                scope_spans=[
                    ScopeSpans(
                        scope=InstrumentationScope(name=draw(TEXT), version=draw(TEXT)),
                        spans=draw(st.lists(span_messages(), max_size=3)),
                        schema_url=draw(TEXT),
                    )
                    for _ in range(draw(st.integers(0, 2)))
                ],
                schema_url=draw(TEXT),
            )
            for _ in range(draw(st.integers(0, 2)))
        ]
    )


def plain(value: Any) -> Any:
    """A value to compare by: mappings as sorted pairs, sequences as tuples, every NaN the same,
    True no 1.
    """
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, Mapping):
        facts = cast("Mapping[str, Any]", value)
        return ("mapping", *((key, plain(facts[key])) for key in sorted(facts)))
    if isinstance(value, (list, tuple)):
        return tuple(plain(item) for item in cast("Sequence[Any]", value))
    if isinstance(value, Struct):
        return plain(astuple(value))
    return (type(value).__name__, "NaN" if value != value else value)  # noqa: PLR0124 - NaN is what differs from itself


def wire(number: int, payload: bytes) -> bytes:
    """A length-delimited field."""
    size = len(payload)
    length = bytearray()
    while size > 127:
        length.append(size & 127 | 128)
        size >>= 7
    return bytes([number << 3 | 2, *length, size]) + payload
