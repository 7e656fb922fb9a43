"""Counted values."""

from __future__ import annotations

import math

import pytest

from otel_reliability.metrics._support.counts import Counts


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
