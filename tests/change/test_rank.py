"""Ranks among the latest values."""

from __future__ import annotations

import json
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.change.rank import WINDOW, Ranks, tie_breaker
from tests.change.build import u_of

VALUES = st.lists(st.one_of(st.integers(0, 3), st.floats(-1e6, 1e6, width=32), st.integers(0, 10**7)), max_size=60)


def naive(before: list[float], value: float, name: bytes = b"") -> float | None:
    """The formula as written, over the values before; None where they are all the same."""
    before = list(array("f", before[-WINDOW:]))
    (value,) = array("f", [value])
    greater, equal = sum(b > value for b in before), sum(b == value for b in before)
    return (greater + tie_breaker(name) * (equal + 1)) / (len(before) + 1) if equal < len(before) else None


@given(VALUES, st.binary(max_size=9))
def test_a_rank_is_the_formula(values: list[float], name: bytes) -> None:
    """The rank kept up to date equals the naive count among the values before."""
    ranks = Ranks()
    for i, value in enumerate(values):
        assert ranks.rank(value, name) == naive(values[:i], value, name)


def test_only_the_last_500_count() -> None:
    """A value leaves when 500 newer ones are there, and an equal one that stays is not taken for it."""
    ranks, values = Ranks(), [float(i % 7) for i in range(2 * WINDOW)]
    for i, value in enumerate(values):
        assert ranks.rank(value, b"") == naive(values[:i], value)


@given(VALUES, st.integers(0, 60))
def test_a_restored_rank_goes_on(values: list[float], cut: int) -> None:
    """Writing the state as JSON and reading it changes no later rank."""
    whole, first = Ranks(), Ranks()
    expected = [whole.rank(value, b"") for value in values]
    before = [first.rank(value, b"") for value in values[:cut]]
    second = Ranks.from_data(json.loads(json.dumps(first.to_data())))
    assert before + [second.rank(value, b"") for value in values[cut:]] == expected


def test_split_gives_the_latest_values_apart() -> None:
    """The values are told in the order in which they came; more than there are is all of them."""
    ranks = Ranks()
    for value in (3, 1, 2):
        ranks.rank(value, b"")
    assert ranks.split(1) == ([3, 1], [2])
    assert ranks.split(9) == ([], [3, 1, 2])


def test_ties_are_broken_evenly_and_by_nothing_but_names() -> None:
    """Over units, signals and ordinals alike the tie breaker is spread over [0, 1)."""
    tenths = [0] * 10
    for n in range(4_000):
        tenths[int(10 * u_of(f"run-{n % 100}", "calls", n))] += 1
    assert min(tenths) > 320
    assert len({u_of("a", "calls", 1), u_of("b", "calls", 1), u_of("a", "path", 1)}) == 3


@pytest.mark.parametrize("unit_id", ["", "\ud800", "ü" * 1_000])
def test_any_id_breaks_ties(unit_id: str) -> None:
    """Ids that are empty, long or no valid text do as well as others."""
    assert 0 <= u_of(unit_id, "path", 0) < 1
