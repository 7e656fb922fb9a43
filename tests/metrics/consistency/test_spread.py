from __future__ import annotations

import math
import statistics
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.metrics.consistency import confidence_consistency, resource_consistency
from otel_reliability.metrics.consistency.spread import Spread, variation

AMOUNTS = st.floats(1e-9, 1e12)


@given(stay=st.lists(AMOUNTS, min_size=2, max_size=20), passing=st.lists(AMOUNTS, max_size=10))
def test_a_spread_is_exact_whatever_passed_through(stay: list[float], passing: list[float]) -> None:
    """It is the textbook's deviation over mean in rationals, without the cancellation of sums of squares."""
    spread = Spread()
    for value in (*passing, *stay):
        spread.add(int(value * 2**80))
    for value in passing:
        spread.evict(int(value * 2**80))
    exact = [Fraction(int(value * 2**80)) for value in stay]
    expected = math.sqrt(statistics.variance(exact) / statistics.mean(exact) ** 2)

    assert spread.variation() == pytest.approx(expected, rel=1e-15, abs=1e-300)


def test_close_values_keep_their_spread() -> None:
    """Where naive sums of squares lose everything."""
    assert variation([1e9, 1e9 + 1]) == pytest.approx(math.sqrt(0.5) / (1e9 + 0.5), rel=1e-14)


@pytest.mark.parametrize("values", [[], [1.0], [0.0, 0.0], [-1.0, -2.0]])
def test_no_spread_without_two_values_and_a_mean_above_zero(values: list[float]) -> None:
    """There is nothing to compare, or nothing to compare with."""
    assert variation(values) is None


def test_values_that_are_no_numbers_are_missing() -> None:
    """NaN and the infinite are no evidence, as in the reference."""
    bad = [float("nan"), float("inf"), None]

    assert confidence_consistency([[0.5, 0.5, *bad]]) == 1.0
    assert resource_consistency([{"cost": [2.0, 2.0, *bad], "time": bad}]) == 1.0
    assert confidence_consistency([bad]) is None
