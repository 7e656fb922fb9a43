from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.sources.any_value import MAX_DEPTH
from otel_reliability.sources.json_values import attributes, enum, hexadecimal, items, plain, record, text, whole

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)
KINDS = ["stringValue", "intValue", "boolValue", "doubleValue", "bytesValue", "arrayValue", "kvlistValue"]


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ({"stringValue": "ü"}, "ü"),
        ({"stringValue": ""}, ""),
        ({"intValue": "9223372036854775807"}, 2**63 - 1),
        ({"intValue": 7}, 7),
        ({"intValue": 7.0}, 7),
        ({"boolValue": False}, False),
        ({"doubleValue": 1}, 1.0),
        ({"doubleValue": "0.5"}, 0.5),
        ({"doubleValue": "-Infinity"}, float("-inf")),
        ({"bytesValue": "AAE="}, b"\0\1"),
        ({"bytesValue": "-_8"}, b"\xfb\xff"),
        ({"arrayValue": {"values": [{"intValue": "1"}, {}]}}, (1, None)),
        ({"arrayValue": {}}, ()),
        ({"kvlistValue": {"values": [{"key": "k", "value": {"boolValue": True}}]}}, {"k": True}),
        ({"laterValue": 1, "stringValue": "s"}, "s"),
    ],
)
def test_values(value: object, read: object) -> None:
    """Each kind of value is read as its own type, numbers as numbers or strings, bytes in either alphabet."""
    assert plain(value) == read
    assert type(plain(value)) is type(read)


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        "bare",
        {"stringValue": 5},
        {"intValue": "five"},
        {"intValue": 1.5},
        {"intValue": True},
        {"intValue": 2**63},
        {"intValue": "1_000"},
        {"boolValue": "true"},
        {"doubleValue": "many"},
        {"doubleValue": True},
        {"doubleValue": 10**400},
        {"bytesValue": "A"},
        {"bytesValue": "ü"},
        {"laterValue": 1},
    ],
)
def test_wrong_types_are_absent(value: object) -> None:
    """A value that is not of the type it says is None, not a guess and not an error."""
    assert plain(value) is None


@given(st.sampled_from(KINDS), JSON)
def test_reading_is_total(kind: str, content: Any) -> None:
    """Whatever stands where a value should, reading raises nothing and gives one of our types."""
    assert isinstance(plain({kind: content}), (str, int, bool, float, bytes, tuple, dict, type(None)))


@given(JSON)
def test_readers_are_total(value: Any) -> None:
    """Every reader takes anything."""
    assert isinstance(text(value), str)
    assert isinstance(items(value), list)
    assert isinstance(record(value), dict)
    assert isinstance(whole(value), (int, type(None)))
    assert isinstance(enum(value, {"NAME": 1}), int)
    assert isinstance(hexadecimal(value), (bytes, type(None)))
    assert isinstance(attributes(value), dict)


def test_attributes_pass_over_what_is_no_pair() -> None:
    """A pair without a key, or with one that is no text, is not there; of equal keys the last counts."""
    told: list[Any] = [{"key": "a", "value": {"intValue": 1}}, {"value": {}}, {"key": 5}, "a", None, {"key": "a"}]

    assert attributes(told) == {"a": None}


def test_depth_is_bounded() -> None:
    """Lists nested deeper than the bound end in None, as in protobuf."""
    value: dict[str, Any] = {"intValue": 1}
    for _ in range(MAX_DEPTH + 1):
        value = {"arrayValue": {"values": [value]}}
    depth, read = 0, plain(value)
    while read:
        (read,) = read
        depth += 1

    assert (read, depth) == (None, MAX_DEPTH)


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("00FF", b"\0\xff"),
        ("00ff", b"\0\xff"),
        ("", b""),
        (None, b""),
        ("0", None),
        ("0g", None),
        (" 00", None),
        (7, None),
    ],
)
def test_ids_are_hexadecimal(value: object, read: bytes | None) -> None:
    """Both cases are read; what is not hexadecimal is told from what is absent."""
    assert hexadecimal(value) == read
