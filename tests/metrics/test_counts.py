"""Counted values."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.metrics._support.counts import Multiset
from tests.metrics.reference import entropy


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), max_size=60))
def test_a_multiset_is_a_counter_at_every_step(steps: list[tuple[str, bool]]) -> None:
    """Total, distinct values, the greatest count and the entropy are those of a plain counter, after adds and removals."""
    values, plain = Multiset[str](), Counter[str]()
    for value, remove in steps:
        if remove and plain[value]:
            values.remove(value)
            plain[value] -= 1
        else:
            values.add(value)
            plain[value] += 1
        there = +plain
        assert (values.total, values.distinct, values.modal) == (
            there.total(),
            len(there),
            max(there.values(), default=0),
        )
        assert values.bits() == pytest.approx(entropy(there.elements()), abs=1e-12)


@given(st.lists(st.sampled_from("abc"), max_size=30), st.lists(st.sampled_from("abcd"), max_size=30))
def test_entropy_is_of_the_values_alone(staying: list[str], passing: list[str]) -> None:
    """What came and went changes not a bit of it."""
    one, other = Multiset[str](), Multiset[str]()
    for value in (*passing, *staying):
        one.add(value)
    for value in passing:
        one.remove(value)
    for value in reversed(staying):
        other.add(value)
    assert (one.bits(), one.evenness(), one.modal) == (other.bits(), other.evenness(), other.modal)


@pytest.mark.parametrize("number", [1, 2, 3, 10, 1_000])
def test_the_ends_are_exact(number: int) -> None:
    """All equal is 0 and all different is 1, to the last bit; of one value there is nothing to say: 0."""
    equal, different = Multiset[int](), Multiset[int]()
    for value in range(number):
        equal.add(7)
        different.add(value)
    assert equal.bits() == equal.evenness() == 0.0
    assert different.evenness() == (1.0 if number > 1 else 0.0)


def test_a_mixture_falls_as_the_window_grows() -> None:
    """Half and half is 1.0 for 2 runs and 1/6 for 64: the normaliser is the number of runs."""
    values = Multiset[int]()
    for value in range(64):
        values.add(value % 2)
    assert values.evenness() == pytest.approx(1 / 6)
    assert values.bits() == 1.0
    assert math.isclose(values.evenness() * 6, values.bits())
