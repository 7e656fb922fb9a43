from __future__ import annotations

from hypothesis import given
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList

from otel_reliability.sources.any_value import MAX_DEPTH, attributes, plain
from otel_reliability.sources.otlp_write import pairs
from tests.sources.strategies import ATTRIBUTES
from tests.sources.strategies import plain as comparable


@given(ATTRIBUTES)
def test_every_type_comes_back(facts: dict[str, object]) -> None:
    """Whatever type a value has is the type it is read back with."""
    assert comparable(attributes(pairs(facts))) == comparable(facts)


def test_nothing_is_none() -> None:
    """A value that holds nothing is None, wherever it stands."""
    empty = AnyValue()
    nested = AnyValue(array_value=ArrayValue(values=[empty, AnyValue(kvlist_value=KeyValueList())]))

    assert plain(empty) is None
    assert plain(nested) == [None, {}]


def test_last_of_equal_keys_counts() -> None:
    """Of pairs with the same key the last one is the value."""
    twice = [KeyValue(key="k", value=AnyValue(int_value=n)) for n in (1, 2)]

    assert attributes(twice) == {"k": 2}


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
