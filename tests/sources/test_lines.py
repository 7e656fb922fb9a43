from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.sources.lines import Line, documents, split

OBJECTS = st.dictionaries(st.text(max_size=3), st.integers() | st.lists(st.text(max_size=3), max_size=2), max_size=3)


def pieces(text: bytes, cuts: list[int]) -> Iterator[bytes]:
    edges = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return (text[a:b] for a, b in itertools.pairwise(edges))


@given(st.lists(st.binary(max_size=6).map(lambda line: line.replace(b"\n", b"")), max_size=8), st.lists(st.integers(0)))
def test_lines_do_not_depend_on_the_cuts(told: list[bytes], cuts: list[int]) -> None:
    lines = list(split(pieces(b"".join(line + b"\n" for line in told), cuts)))

    assert lines == [Line(number, line) for number, line in enumerate(told, 1)]


@given(st.binary(max_size=30), st.lists(st.integers(0)), st.integers(1, 5))
def test_long_lines_are_passed_over(text: bytes, cuts: list[int], longest: int) -> None:
    expected = [line if len(line) <= longest else None for line in text.split(b"\n")]
    expected = expected if text.rpartition(b"\n")[2] else expected[:-1]

    assert [line.text for line in split(pieces(text, cuts), longest)] == expected


@given(st.lists(st.tuples(OBJECTS, st.sampled_from([None, 1, 2, "\t"])), max_size=5))
def test_documents_in_any_layout(told: list[tuple[dict[str, Any], int | str | None]]) -> None:
    text = "".join(json.dumps(value, indent=indent) + "\n" for value, indent in told).encode()

    assert [json.loads(line.text or b"") for line in documents(split([text]))] == [value for value, _ in told]


def test_document_is_placed_where_it_begins() -> None:
    text = b'{}\n{\n\n  "a": 1\n}\n[\n\t2\n]'

    assert list(documents(split([text]))) == [
        Line(1, b"{}"),
        Line(2, b'{\n\n  "a": 1\n}'),
        Line(6, b"[\n\t2\n]", ended=False),
    ]


def test_broken_document_costs_no_other_line() -> None:
    text = b'{"resourceSpans":[\n{"a":1}\n{"b":[\n{"c":1}\n'

    assert [line.text for line in documents(split([text]))] == [
        b'{"resourceSpans":[',
        b'{"a":1}',
        b'{"b":[',
        b'{"c":1}',
    ]
