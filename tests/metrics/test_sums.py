"""Sums that can be undone, and counted values."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.metrics._support.sums import Counts, ExactSum, FixedSum

FLOATS = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)


@given(st.lists(FLOATS, max_size=20))
def test_the_value_is_the_true_sum_rounded_once(values: list[float]) -> None:
    """Whatever the sizes, from the smallest float there is to the greatest."""
    total = ExactSum()
    for value in values:
        total.add(value)
    assert total.value == float(sum(map(Fraction, values), Fraction()))
    assert total.mean(3) == float(sum(map(Fraction, values), Fraction()) / 3)


@given(st.lists(FLOATS, max_size=10), st.lists(FLOATS, max_size=10), st.integers(1, 5))
def test_adding_minus_once_undoes_adding_once(staying: list[float], passing: list[float], times: int) -> None:
    """What came and went, in another order, leaves no trace; a float sum would keep its rounding."""
    total, alone = ExactSum(), ExactSum()
    for value in (*passing, *staying):
        total.add(value, times)
    for value in passing:
        total.add(value, -times)
    for value in staying:
        alone.add(value, times)
    assert total.value == alone.value


def test_small_numbers_survive_large_ones() -> None:
    """0.1 is still there after 1e300 has come and gone."""
    total = ExactSum()
    for value in (0.1, 1e300, 5e-324):
        total.add(value)
    total.add(1e300, -1)
    total.add(0.1, -1)
    assert total.value == 5e-324


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_cannot_be_summed(value: float) -> None:
    """The doors refuse such evidence; a sum that met it could never be right again."""
    with pytest.raises((ValueError, OverflowError)):
        ExactSum().add(value)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 1000)), min_size=1, max_size=20))
def test_fixed_sums_are_the_mean_to_the_last_digits_and_undo(values: list[tuple[float, int]]) -> None:
    """A weighted mean is right to 1e-15, and what leaves leaves nothing behind."""
    total, alone = FixedSum(), FixedSum()
    for value, times in values:
        total.add(value, times)
    weight = sum(times for _, times in values)
    true = sum((Fraction(value) * times for value, times in values), Fraction()) / weight
    assert abs(total.mean(weight) - true) < 1e-15
    for value, times in values[1:]:
        total.add(value, -times)
    alone.add(*values[0])
    assert total.value == alone.value


@pytest.mark.parametrize("number", [1, 2, 3, 10, 1_000])
def test_the_ends_are_exact(number: int) -> None:
    """All equal is 0 and all different is 1, to the last bit; of one value there is nothing to say: 0."""
    equal, different = Counts[int](), Counts[int]()
    for value in range(number):
        equal.count(7)
        different.count(value)
    assert equal.bits() == equal.evenness() == 0.0
    assert different.evenness() == (1.0 if number > 1 else 0.0)


def test_a_mixture_falls_as_the_window_grows() -> None:
    """Half and half is 1.0 for 2 runs and 1/6 for 64: the normaliser is the number of runs."""
    values = Counts[int]()
    for value in range(64):
        values.count(value % 2)
    assert values.evenness() == pytest.approx(1 / 6)
    assert values.bits() == 1.0
    assert math.isclose(values.evenness() * 6, values.bits())
