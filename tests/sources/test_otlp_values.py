from __future__ import annotations

import math
from typing import Any

from google.protobuf.message import DecodeError
from hypothesis import example, given
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue

from otel_reliability.sources.batch import MAX_DEPTH
from otel_reliability.sources.otlp_protobuf import decoded, plain


def by_protobuf(raw: bytes) -> Any:
    """The oracle: what protobuf makes of a value, None where it refuses."""
    try:
        return plain(AnyValue.FromString(raw))
    except DecodeError:
        return None


def same(one: object, other: object) -> bool:
    """Whether two values are the same in type and value, NaN too."""
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
    """However they are made, the short way and protobuf agree."""
    assert same(decoded(raw), by_protobuf(raw))


@given(st.text(max_size=300) | st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.floats() | st.binary(max_size=9))
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
    """Texts of every length, numbers of every size, as encoders write them."""
    field = {str: "string_value", int: "int_value", bool: "bool_value", float: "double_value", bytes: "bytes_value"}
    raw = AnyValue(**{field[type(value)]: value}).SerializeToString()

    assert same(decoded(raw), value)


def test_depth_is_bounded() -> None:
    """Lists nested deeper than the bound end in None: what reads them need not fear for its stack."""
    value = AnyValue(int_value=1)
    for _ in range(MAX_DEPTH + 1):
        value = AnyValue(array_value=ArrayValue(values=[value]))
    depth, read = 0, plain(value)
    while read:
        (read,) = read
        depth += 1

    assert (read, depth) == (None, MAX_DEPTH)
