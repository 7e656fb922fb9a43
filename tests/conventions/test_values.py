"""Readers of values."""

from __future__ import annotations

import enum
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.conventions import values

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("value", ["", "null", "None", 3, 3.0, True, None, b"x", ["x"], {"x": 1}])
def test_what_is_no_text(value: object) -> None:
    assert values.text(value) is None


@pytest.mark.parametrize(
    "value", [1.5, -1, "-1", "1.0", "٣", "9" * 30, True, None, float("inf"), float("nan"), 2**63, [1]]
)
def test_what_is_no_count(value: object) -> None:
    assert values.integer(value) is None


class Word(str, enum.Enum):  # noqa: UP042 (hosts still have such ones)
    """A member of it is a text, whose `str` is another."""

    MODEL = "gpt"


class Number(int, enum.Enum):
    """The same of numbers."""

    TOKENS = 7


def test_members_of_enumerations_are_plain_values() -> None:
    """A host may give them as attributes; what is kept of a run holds nothing but plain values."""
    assert [values.text(Word.MODEL), values.identifier(Number.TOKENS)] == ["gpt", "7"]
    assert [type(found) for found in (values.text(Word.MODEL), values.integer(Number.TOKENS))] == [str, int]


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), "nan", "-inf", "1e999", 10**400, "much", True, None, [1.0]]
)
def test_what_is_no_number(value: object) -> None:
    assert values.number(value) is None


@pytest.mark.parametrize("value", ["yes", 2, -1, None, [True], "", 0.5])
def test_what_is_no_truth(value: object) -> None:
    assert values.truth(value) is None


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


def test_lists_objects_and_words() -> None:
    assert values.items("") == values.items(None) == ()
    assert list(values.items((1, 2))) == [1, 2]
    assert values.objects([{"a": 1}, None, [{"b": 2}]]) == [{"a": 1}]
    assert values.objects(7) == []
    assert values.words(['Stop"', 7, None]) == ['stop"']
    assert values.mapping([{"a": 1}]) == {}
