from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.sources.lines import Line, documents, split

OBJECTS = st.dictionaries(
    st.text(max_size=3), st.integers() | st.lists(st.text(max_size=3), max_size=2), max_size=3
)


def pieces(text: bytes, cuts: list[int]) -> Iterator[bytes]:
    edges = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return (text[a:b] for a, b in itertools.pairwise(edges))


@given(
    st.lists(st.binary(max_size=6).map(lambda line: line.replace(b"\n", b"")), max_size=8),
    st.lists(st.integers(0)),
)
def test_lines_do_not_depend_on_the_cuts(told: list[bytes], cuts: list[int]) -> None:
    lines = list(split(pieces(b"".join(line + b"\n" for line in told), cuts)))

    assert lines == [Line(number, line) for number, line in enumerate(told, 1)]


@given(st.binary(max_size=30), st.lists(st.integers(0)), st.integers(1, 5))
def test_long_lines_are_passed_over(text: bytes, cuts: list[int], longest: int) -> None:
    expected = [line if len(line) <= longest else None for line in text.split(b"\n")]
    expected = expected if text.rpartition(b"\n")[2] else expected[:-1]

    assert [line.text for line in split(pieces(text, cuts), longest)] == expected


@given(OBJECTS, st.sampled_from([1, 2, "\t"]), st.lists(st.integers(0)))
def test_indented_file_is_one_document(
    value: dict[str, Any], indent: int | str, cuts: list[int]
) -> None:
    text = json.dumps([value], indent=indent).encode()

    assert list(documents(pieces(text, cuts))) == [Line(1, text, ended=False)]
    assert list(documents(pieces(text + b"\n", cuts))) == [Line(1, text)]


@pytest.mark.parametrize("text", [b"[\n1,\n2,\n3,\n4\n]\n", b"[\n12345678901\n]\n"])
def test_document_beyond_the_bound_is_not_held(text: bytes) -> None:
    assert list(documents([text], longest=10)) == [Line(1, None)]


def test_broken_line_costs_no_other_line() -> None:
    lines = list(documents([b'{}\n{"resourceSpans":[\n{"a":1}\n{\n\n  "a": 1\n}\n{"b":[\n']))

    assert [line.text for line in lines] == [
        b"{}",
        b'{"resourceSpans":[',
        b'{"a":1}',
        b'{\n\n  "a": 1\n}',
        b'{"b":[',
    ]
    assert [line.number for line in lines] == [1, 2, 3, 4, 8]
