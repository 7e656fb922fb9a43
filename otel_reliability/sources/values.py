"""OTLP's `AnyValue` → plain Python values, for requests in protobuf."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

MAX_DEPTH: Final = 32
"""Lists and maps nested deeper than this are None. Protobuf itself refuses a request from about 45 on."""


def plain(value: AnyValue, depth: int = MAX_DEPTH) -> Any:
    """A value as str, bool, int, float, bytes, list or dict; None where it holds nothing we can know.

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
            return [plain(item, depth - 1) for item in value.array_value.values]
        case "kvlist_value" if depth:
            return attributes(value.kvlist_value.values, depth - 1)
        case _:
            return None


def attributes(pairs: Iterable[KeyValue], depth: int = MAX_DEPTH) -> dict[str, Any]:
    """Pairs as a dict. Of pairs with the same key the last one counts."""
    return {pair.key: plain(pair.value, depth) for pair in pairs}
