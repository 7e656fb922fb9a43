"""Python literals as data."""

from __future__ import annotations

import time
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.conventions import values

DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
COLLECTIONS = st.lists(DATA, max_size=3) | st.dictionaries(st.text(max_size=5), DATA, max_size=3)


def listed(value: object) -> object:
    """The value with lists for tuples: JSON knows no others."""
    if isinstance(value, dict):
        return {key: listed(item) for key, item in cast("dict[str, object]", value).items()}
    return [listed(item) for item in cast("list[object]", value)] if isinstance(value, list | tuple) else value


@given(COLLECTIONS)
def test_what_repr_writes_is_read_back(value: object) -> None:
    assert values.literal(repr(value)) == listed(value)


@pytest.mark.parametrize(
    "text",
    [
        "[print('x')]",
        "[__import__('os')]",
        "{'a': object}",
        "{'a': 1 + 1}",
        "{'a', 'b'}",
        "{1: 'a'}",
        "[b'bytes']",
        "['no end]",
        '["no end]',
        "[1 2]",
        "(1",
        r"['\U00110000']",
        "[" * 300_000 + "]" * 300_000,
    ],
)
def test_what_is_no_data_stays_text(text: str) -> None:
    assert values.literal(text) == text
    assert values.literal(text, "otherwise") == "otherwise"


@pytest.mark.parametrize(
    "piece", ["'", '"', "\\'", "'\\", "[", "(", ",", ", ", " ,", " ", "None", "{'a':", "\\U", "(T"]
)
def test_reading_takes_time_by_length_alone(piece: str) -> None:
    began = time.process_time()
    values.literal("[" + piece * (values.MAX_LITERAL // len(piece) - 1) + "]")

    assert time.process_time() - began < 2


def test_no_warning_is_given(recwarn: pytest.WarningsRecorder) -> None:
    """Python's own reader warns of escapes it does not know, on the host's standard error."""
    assert values.literal(r"['\d+', '\400']") == [r"\d+", r"\400"]
    assert not recwarn.list
