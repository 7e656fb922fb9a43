"""Undecoded `AnyValue`s → plain Python values, each small one decoded once a request.

Nearly every value is one text or one number, written the one way every encoder writes it; those are read here byte by byte, at a
quarter of what a message object costs. Whatever else lies in the bytes is left to protobuf (`values.plain`), which this agrees
with on every value.
"""

from __future__ import annotations

from typing import Any, Final, cast

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from otel_reliability.sources.values import plain

LARGEST_LIST: Final = 8 * 1024 * 1024
"""Bytes of a list or map beyond which it is None: an element of two bytes takes a hundred in memory. Text has no limit."""
KEPT_BYTES: Final = 64
"""Bytes of a value that is kept for the rest of the request."""

_TEXT, _INTEGER, _BYTES = 0x0A, 0x18, 0x3A
"""The tags of text, integers and bytes."""
_SCALARS: Final = (str, int, float, bool, bytes, type(None))
_MUTABLE: Final = (list, dict)


def decoded(raw: bytes) -> Any:
    """The value that these bytes are.

    >>> decoded(AnyValue(int_value=300).SerializeToString()), decoded(b"")
    (300, None)
    """
    size = len(raw)
    if size < 2:
        return None if not size else _by_protobuf(raw)
    tag, first = raw[0], raw[1]
    if tag == _TEXT:
        if first == size - 2 < 128:
            return _text(raw[2:])
        if first > 127 and size > 2 and raw[2] < 128 and (first & 127 | raw[2] << 7) == size - 3 > 127:
            return _text(raw[3:])
    elif tag == _INTEGER:
        if size == 2 and first < 128:
            return first
        if size == 3 and first > 127 > raw[2] > 0:
            return first & 127 | raw[2] << 7
    return _by_protobuf(raw)


class Memo(dict[bytes, Any]):
    """The value of any undecoded one: `memo[raw]`. It never fails: what cannot be decoded is None.

    >>> memo = Memo()
    >>> memo[AnyValue(string_value="chat").SerializeToString()], memo[b"broken"]
    ('chat', None)
    """

    __slots__ = ()

    once = staticmethod(decoded)

    def __missing__(self, raw: bytes) -> Any:
        value = decoded(raw)
        if len(raw) <= KEPT_BYTES:
            if type(value) is list:
                value = _frozen(cast("list[Any]", value))
            if type(value) not in _MUTABLE:
                self[raw] = value
        return value


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _by_protobuf(raw: bytes) -> Any:
    if len(raw) > LARGEST_LIST and raw[0] not in {_TEXT, _BYTES}:
        return None
    try:
        return plain(AnyValue.FromString(raw))
    except DecodeError:
        return None


def _frozen(values: list[Any]) -> Any:
    """A list of plain values as a tuple, so that it can be shared; a list of anything else as it is."""
    return tuple(values) if all(type(value) in _SCALARS for value in values) else values
