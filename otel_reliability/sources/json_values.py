"""OTLP-JSON's scalars and `AnyValue` → plain Python values. Total: what has the wrong type is absent.

OTLP-JSON is protobuf's JSON with two exceptions: ids are hexadecimal, enums are integers. 64-bit numbers may be strings.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final, cast

from otel_reliability.sources.any_value import MAX_DEPTH

LEAST_INT64: Final = -(2**63)
GREATEST_INT64: Final = 2**63 - 1
_DIGITS: Final = re.compile(r"-?[0-9]{1,20}")
_URL_SAFE: Final = str.maketrans("-_", "+/")


def text(value: object) -> str:
    """A string, else the empty one."""
    return value if isinstance(value, str) else ""


def items(value: object) -> list[Any]:
    """A list, else the empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def record(value: object) -> dict[str, Any]:
    """An object, else the empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def whole(value: object) -> int | None:
    """A whole number, written as a number or as a string; None where it is none.

    >>> whole("1795228530895715839"), whole(3), whole(2.0), whole("3.5"), whole(True)
    (1795228530895715839, 3, 2, None, None)
    """
    if type(value) is int:
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else None


def enum(value: object, names: Mapping[str, int]) -> int:
    """An enum's number. The specification allows integers only, but some senders write names; anything else is 0.

    >>> enum("STATUS_CODE_ERROR", {"STATUS_CODE_ERROR": 2}), enum(2, {}), enum([], {})
    (2, 2, 0)
    """
    return names[value] if isinstance(value, str) and value in names else whole(value) or 0


def hexadecimal(value: object) -> bytes | None:
    """The bytes of an id, in either case; empty where it is absent, None where it is not hexadecimal.

    >>> hexadecimal("00F067aa0ba902b7").hex(), hexadecimal(None), hexadecimal("APBnqgupArc=")
    ('00f067aa0ba902b7', b'', None)
    """
    if value is None:
        return b""
    try:
        return binascii.unhexlify(value) if isinstance(value, str) else None
    except ValueError:
        return None


def attributes(pairs: object, depth: int = MAX_DEPTH) -> dict[str, Any]:
    """Pairs as a dict. Of pairs with the same key the last one counts; what is no pair with a key is passed over.

    >>> attributes([{"key": "a", "value": {"intValue": "1"}}, {"key": "b", "value": {"stringValue": "two"}}, 3])
    {'a': 1, 'b': 'two'}
    """
    found: dict[str, Any] = {}
    for pair in map(record, items(pairs)):
        if isinstance(key := pair.get("key"), str):
            value: dict[str, Any] | None = pair.get("value")
            usual = value.get("stringValue") if type(value) is dict and len(value) == 1 else None
            found[key] = usual if type(usual) is str else plain(value, depth)
    return found


def plain(value: object, depth: int = MAX_DEPTH) -> Any:
    r"""A value as str, bool, int, float, bytes, tuple or dict; None where it holds nothing that we can know.

    >>> plain({"arrayValue": {"values": [{"boolValue": True}, {"doubleValue": "NaN"}, {"bytesValue": "AAE="}]}})
    (True, nan, b'\x00\x01')
    """
    for kind, content in record(value).items():
        match kind:
            case "stringValue":
                return content if isinstance(content, str) else None
            case "intValue":
                number = whole(content)
                return number if number is not None and LEAST_INT64 <= number <= GREATEST_INT64 else None
            case "boolValue":
                return content if isinstance(content, bool) else None
            case "doubleValue":
                return _double(content)
            case "bytesValue":
                return _bytes(content)
            case "arrayValue":
                return (
                    tuple([plain(item, depth - 1) for item in items(record(content).get("values"))]) if depth else None
                )
            case "kvlistValue":
                return attributes(record(content).get("values"), depth - 1) if depth else None
            case _:
                pass
    return None


def _double(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _bytes(value: object) -> bytes | None:
    try:
        return base64.b64decode(value.translate(_URL_SAFE) + "==") if isinstance(value, str) else None
    except ValueError:
        return None
