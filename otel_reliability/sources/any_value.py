"""OTLP's `AnyValue` in protobuf → plain Python values.

Nearly every value is one text or one number, written the one way every encoder writes it; those are read here byte by byte, at
a quarter of what a message object costs. All else is left to protobuf, which this agrees with on every value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

MAX_DEPTH: Final = 32
"""Lists and maps nested deeper than this are None. Protobuf itself refuses a request from about 45 on."""
LARGEST_LIST: Final = 8 * 1024 * 1024
"""Bytes of a list or map beyond which it is None: an element of two bytes takes a hundred in memory. Text has no limit."""

_TEXT, _INTEGER, _BYTES = 0x0A, 0x18, 0x3A
"""The tags of text, integers and bytes."""


def plain(value: AnyValue, depth: int = MAX_DEPTH) -> Any:
    """A value as str, bool, int, float, bytes, tuple or dict; None where it holds nothing we can know.

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
    tag, first = raw[0], raw[1]
    try:
        if tag == _TEXT:
            if first == size - 2 < 128:
                return raw[2:].decode()
            if first > 127 and size > 2 and raw[2] < 128 and (first & 127 | raw[2] << 7) == size - 3 > 127:
                return raw[3:].decode()
        elif tag == _INTEGER:
            if size == 2 and first < 128:
                return first
            if size == 3 and first > 127 > raw[2] > 0:
                return first & 127 | raw[2] << 7
    except UnicodeDecodeError:
        return None
    return _by_protobuf(raw)


def _by_protobuf(raw: bytes) -> Any:
    if len(raw) > LARGEST_LIST and raw[0] not in {_TEXT, _BYTES}:
        return None
    try:
        return plain(AnyValue.FromString(raw))
    except DecodeError:
        return None
