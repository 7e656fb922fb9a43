"""Readers of values, and of Python literals as data."""

from __future__ import annotations

import enum
import json
import time
from collections.abc import Callable
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.conventions import values

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


WRONG: list[tuple[Callable[[object], object], list[object]]] = [
    (values.text, ["", "null", "None", 3, 3.0, True, None, b"x", ["x"], {"x": 1}]),
    (
        values.integer,
        [1.5, -1, "-1", "1.0", "٣", "9" * 30, True, None, float("inf"), float("nan"), 2**63, [1]],
    ),
    (
        values.number,
        [float("nan"), float("inf"), "nan", "-inf", "1e999", 10**400, "much", True, None, [1.0]],
    ),
    (values.truth, ["yes", 2, -1, None, [True], "", 0.5]),
    (values.identifier, ["[REDACTED]", "<CREDIT_CARD>", "****", "XXXXXXXX", "[object Object]"]),
]


@pytest.mark.parametrize(("reader", "wrong"), WRONG)
def test_what_is_none_of_its_kind_is_absent(
    reader: Callable[[object], object], wrong: list[object]
) -> None:
    assert [reader(value) for value in wrong] == [None] * len(wrong)


class Word(str, enum.Enum):  # noqa: UP042 (hosts still have such ones)
    """A member of it is a text, whose `str` is another."""

    MODEL = "gpt"


class Number(int, enum.Enum):
    """The same of numbers."""

    TOKENS = 7


def test_members_of_enumerations_are_plain_values() -> None:
    """A host may give them as attributes; what is kept of a run holds nothing but plain values."""
    assert [values.text(Word.MODEL), values.identifier(Number.TOKENS)] == ["gpt", "7"]
    assert [type(found) for found in (values.text(Word.MODEL), values.integer(Number.TOKENS))] == [
        str,
        int,
    ]


@given(JSON)
def test_json_text_means_what_it_says(value: object) -> None:
    text = json.dumps(value)

    assert values.parsed(f" {text}\n") == values.parsed(text) == value
    assert values.parsed("x" + text) == "x" + text


@pytest.mark.parametrize(
    "text",
    [
        "[" * 5_000 + "]" * 5_000,  # deeper than any stack
        "[" + "9" * 5_000 + "]",  # more digits than Python converts
        '{"a": 1, "b": "cut of',
        "[INFO] done]",
        "{not: data}",
        "-",
        "12 o'clock",
        "True",
        "x" * (values.MAX_TEXT + 1),
    ],
)
def test_what_cannot_be_read_is_the_text_it_is(text: str) -> None:
    assert values.parsed(text) == text


# --- Python literals ------------------------------------------------------------------------------


DATA = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=10),
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
    return (
        [listed(item) for item in cast("list[object]", value)]
        if isinstance(value, list | tuple)
        else value
    )


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


@pytest.mark.parametrize("value", ["undefined", "NaN", "[object Object]", "unknown_service:node"])
def test_what_programs_write_for_no_name_is_none(value: str) -> None:
    assert (values.name(value), values.name(f" {value} ")) == (None, None)
