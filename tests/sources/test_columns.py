from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.sources import columns
from otel_reliability.sources.batch import fault, ordered, parent, parent_remote

IDS = st.sampled_from([b"", bytes(8), bytes(16), b"12345678", b"1234567890123456", b"short"])
TIMES = st.sampled_from([0, 1, 2, 2**63 - 1, 2**63])
SOUND = st.tuples(
    st.just(b"1234567890123456"), st.just(b"12345678"), st.sampled_from([b"", b"12345678"]), st.just(1), st.just(2)
)
ROWS = st.lists(SOUND | st.tuples(IDS, IDS, IDS, TIMES, TIMES), max_size=4)


@given(ROWS)
def test_problems_are_those_of_each_span(rows: list[tuple[bytes, bytes, bytes, int, int]]) -> None:
    """All at once, or one by one: the same spans are sound, and of the others the same is said."""
    alone = [fault(*row) for row in rows]
    together = columns.problems(*(list(column) for column in zip(*rows, strict=True))) if rows else None

    assert (alone if any(alone) else None) == together


@given(st.lists(IDS), st.lists(st.integers(0, 0x3FF)), st.lists(st.tuples(TIMES, TIMES)))
def test_fields_are_those_of_each_span(parents: list[bytes], flags: list[int], times: list[tuple[int, int]]) -> None:
    """Parents, remoteness and ends are what the rules of one span make of each."""
    starts, ends = [start for start, _ in times], [end for _, end in times]

    assert list(columns.above(parents)) == list(map(parent, parents))
    assert list(columns.remote(flags)) == list(map(parent_remote, flags))
    assert list(columns.later(starts, ends)) == list(map(ordered, starts, ends))
