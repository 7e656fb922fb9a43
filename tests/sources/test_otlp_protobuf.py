from __future__ import annotations

import contextlib
import math
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans

from otel_reliability.errors import UndecodableBody
from otel_reliability.model.span import RawSpan
from otel_reliability.sources.batch import MAX_DEPTH, Reason
from otel_reliability.sources.otlp_protobuf import decode_logs, decoded
from otel_reliability.sources.otlp_protobuf import plain as plain_value
from otel_reliability.testing import span
from tests.otlp import decode_traces, traces_protobuf
from tests.sources import full_schema
from tests.sources.strategies import plain, raw_spans, requests, wire


def request_with(*extra: bytes) -> bytes:
    """A request of one span, with fields added to it byte by byte."""
    whole = ExportTraceServiceRequest.FromString(traces_protobuf([span(attributes={"a": 1})]))
    inner = whole.resource_spans[0].scope_spans[0].spans[0].SerializeToString() + b"".join(extra)
    return wire(1, wire(2, wire(2, inner)))


@given(st.lists(raw_spans(), max_size=4))
def test_round_trip(spans: list[RawSpan]) -> None:
    batch = full_schema.decode(traces_protobuf(spans))

    assert (plain(batch.spans), batch.malformed) == (plain(spans), [])


@given(requests())
def test_decoders_agree_on_any_request(request: ExportTraceServiceRequest) -> None:
    body = request.SerializeToString()
    fast = decode_traces(body)
    full = full_schema.decode(body)

    assert plain(fast.spans) == plain(full.spans)
    assert fast.malformed == full.malformed


@given(requests(), st.data())
def test_decoders_agree_on_damaged_requests(
    request: ExportTraceServiceRequest, data: st.DataObject
) -> None:
    body = bytearray(request.SerializeToString())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body)))
        body[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    try:
        full = full_schema.decode(bytes(body))
    except UndecodableBody:
        return
    read = decode_traces(bytes(body))

    assert plain(read.spans) == plain(full.spans)
    assert read.malformed == full.malformed


@given(st.binary(max_size=40))
def test_garbage_is_undecodable_or_a_request(body: bytes) -> None:
    with contextlib.suppress(UndecodableBody):
        batch = decode_traces(body)

        assert len(plain(batch.spans)) == len(batch.spans)


def test_a_third_part_of_a_pair_is_not_lost() -> None:
    """A pair with `key_strindex` is not put into the map by the runtime; it is read
    all the same.
    """
    pair = (
        KeyValue(key="lost", value=AnyValue(string_value="found")).SerializeToString() + b"\x18\x05"
    )
    of_span = request_with(wire(9, pair))
    of_event = request_with(wire(11, wire(3, pair)))

    assert decode_traces(of_span).spans[0].attributes["lost"] == "found"
    assert decode_traces(of_event).spans[0].events[0].attributes["lost"] == "found"
    for body in (of_span, of_event):
        assert plain(decode_traces(body).spans) == plain(full_schema.decode(body).spans)


def test_unknown_fields_are_ignored() -> None:
    later = request_with(b"\xfa\x06\x01x", b"\x58\x07")
    expected = plain(full_schema.decode(request_with()).spans)

    assert plain(decode_traces(later).spans) == plain(full_schema.decode(later).spans) == expected


def test_a_broken_value_costs_only_itself() -> None:
    """A text that is no UTF-8 makes the full schema refuse the request; here its value is None and
    the rest is read.
    """
    body = traces_protobuf([span(attributes={"bad": "good", "a": 1})]).replace(
        b"good", b"\xff\xfe\xfd\xfc"
    )
    attributes = decode_traces(body).spans[0].attributes

    assert dict(attributes) == {"bad": None, "a": 1}
    with pytest.raises(UndecodableBody):
        full_schema.decode(body)


def test_a_broken_key_is_undecodable() -> None:
    """A key that is no UTF-8 cannot be looked up by anybody."""
    body = traces_protobuf([span(attributes={"good": 1})]).replace(b"good", b"\xff\xfe\xfd\xfc")

    with pytest.raises(UndecodableBody, match="not an OTLP trace request"):
        decode_traces(body)


def test_resource_and_scope_in_parts() -> None:
    """A message in several parts is their sum, as protobuf has it."""
    one, two = (
        KeyValue(key=f"service.{key}", value=AnyValue(string_value=key))
        for key in ("name", "namespace")
    )
    parts = wire(1, wire(1, one.SerializeToString())) + wire(1, wire(1, two.SerializeToString()))
    scope = wire(1, wire(1, b"scope")) + wire(1, wire(2, b"v2"))
    spans = (
        ExportTraceServiceRequest.FromString(traces_protobuf([span()]))
        .resource_spans[0]
        .scope_spans[0]
        .spans
    )
    inner = ScopeSpans(spans=spans).SerializeToString()
    body = wire(1, parts + wire(2, scope + inner))
    read = decode_traces(body).spans[0]

    assert (read.resource.service_name, read.resource.service_namespace) == ("name", "namespace")
    assert (read.scope, read.scope_version) == ("scope", "v2")
    assert plain(read) == plain(full_schema.decode(body).spans[0])


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"parent_id": bytes(8)}, None),
        ({"end_ns": 1}, None),
        ({"trace_id": bytes(16)}, Reason.TRACE_ID),
        ({"span_id": bytes(8)}, Reason.SPAN_ID),
        ({"span_id": b""}, Reason.SPAN_ID),
        ({"parent_id": b"short"}, Reason.PARENT_ID),
        ({"start_ns": 0}, Reason.START_TIME),
        ({"start_ns": 2**63}, Reason.START_TIME),
        ({"end_ns": 0}, Reason.END_TIME),
        ({"end_ns": 2**63}, Reason.END_TIME),
    ],
)
def test_decoders_agree_on_odd_spans(fields: dict[str, Any], reason: Reason | None) -> None:
    body = traces_protobuf([replace(span(2, 1), **fields)])
    fast = decode_traces(body)
    full = full_schema.decode(body)

    assert plain(fast.spans) == plain(full.spans)
    assert fast.malformed == full.malformed
    assert [problem.reason for problem in fast.malformed] == ([reason] if reason else [])


def test_attributes_read_like_a_mapping_and_show_no_content() -> None:
    facts = {"text": "t", "list": ("a",), "number": 7, "long": "x" * 100}
    attributes = decode_traces(traces_protobuf([span(attributes=facts)])).spans[0].attributes

    assert attributes["number"] == attributes.get("number") == 7
    assert (attributes.get("none"), attributes.get("none", "default")) == (None, "default")
    assert ("text" in attributes, "none" in attributes, len(attributes)) == (True, False, 4)
    assert dict(attributes) == facts
    assert repr(attributes) == "LazyAttributes(['list', 'long', 'number', 'text'])"
    with pytest.raises(KeyError, match="none"):
        attributes["none"]


def test_undecodable_logs() -> None:
    with pytest.raises(UndecodableBody, match=r"not an OTLP logs request in protobuf \(3 bytes\)"):
        decode_logs(b"\xff\xff\xff")


def by_protobuf(raw: bytes) -> Any:
    """The oracle: what protobuf makes of a value, None where it refuses."""
    try:
        return plain_value(AnyValue.FromString(raw))
    except DecodeError:
        return None


def same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return type(one) is type(other) and one == other


@given(st.binary(max_size=12))
@example(b"\x0a\x80\x00")
@example(b"\x18\x80\x00")
@example(b"\x18\xff\x7f")
@example(b"\x18\x80\x01")
@example(b"\x0a\x02\xff\xfe")
@example(b"\x0a\x01a\x18\x01")
@example(b"\x0a")
def test_any_bytes_are_what_protobuf_makes_of_them(raw: bytes) -> None:
    assert same(decoded(raw), by_protobuf(raw))


@given(
    st.text(max_size=300)
    | st.integers(-(2**63), 2**63 - 1)
    | st.booleans()
    | st.floats()
    | st.binary(max_size=9)
)
@example("x" * 126)
@example("x" * 127)
@example("x" * 128)
@example("x" * 16_383)
@example("x" * 16_384)
@example(127)
@example(128)
@example(16_383)
@example(16_384)
def test_any_scalar_is_read_back(value: Any) -> None:
    field = {
        str: "string_value",
        int: "int_value",
        bool: "bool_value",
        float: "double_value",
        bytes: "bytes_value",
    }
    raw = AnyValue(**{field[type(value)]: value}).SerializeToString()

    assert same(decoded(raw), value)


def test_depth_is_bounded() -> None:
    value = AnyValue(int_value=1)
    for _ in range(MAX_DEPTH + 1):
        value = AnyValue(array_value=ArrayValue(values=[value]))
    depth = 0
    read = plain_value(value)
    while read:
        (read,) = read
        depth += 1

    assert (read, depth) == (None, MAX_DEPTH)
