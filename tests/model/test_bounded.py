from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.model.attributes import LONGEST, bounded


@given(st.text(max_size=LONGEST))
def test_what_is_short_stays_as_it_is(text: str) -> None:
    """Names that people give are short."""
    assert bounded(text) == text


@given(st.integers(LONGEST + 1, 5_000), st.text(max_size=3), st.text(max_size=3))
def test_what_is_long_is_cut_and_stays_apart(length: int, one: str, other: str) -> None:
    """Texts that differ at their end only are still two, and a text is cut the same every time."""
    start = "x" * length

    assert len(bounded(start + one)) == LONGEST
    assert (bounded(start + one) == bounded(start + other)) == (one == other)


def test_half_a_surrogate_pair_is_cut_too() -> None:
    """No text on the wire can hold one, but JSON can say it."""
    assert len(bounded("\ud800" * 1_000)) == LONGEST
