from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.statistics.permutation import DEALS, distance_p, paired_p, scalar_p


def test_the_chance_is_that_of_all_deals() -> None:
    values = [3.0, 5.0, 8.0, 1.0, 1.0, 2.0, 4.0]
    ranks = np.array([4, 6, 7, 1.5, 1.5, 3, 5])
    sums = [abs(sum(ranks[list(side)]) - 12) for side in itertools.combinations(range(7), 3)]
    expected = sum(s >= sums[0] for s in sums) / len(sums)
    assert scalar_p(values[:3], values[3:], seed=1) == pytest.approx(expected, abs=0.02)


def test_chance_is_the_same_for_the_same_seed() -> None:
    dice = random.Random(1)
    one = [dice.random() for _ in range(30)]
    two = [dice.random() + 0.3 for _ in range(30)]
    assert scalar_p(one, two, 7) == scalar_p(one, two, 7)


@given(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=20), st.integers(1, 3))
def test_chance_depends_on_ranks_only(values: list[float], cut: int) -> None:
    scaled = [value**3 for value in values]
    if len(set(scaled)) == len(set(values)):
        assert scalar_p(values[:cut], values[cut:], 0) == scalar_p(scaled[:cut], scaled[cut:], 0)


def test_no_chance_is_zero() -> None:
    assert scalar_p([0.0] * 50, [1.0] * 50, seed=0) == 1 / (1 + DEALS)


def test_distances_that_differ_between_the_sides_only() -> None:
    place = np.array([0.0] * 20 + [1.0] * 20)
    apart = np.abs(place[:, None] - place[None, :])
    assert distance_p(apart, 20, seed=0) < 0.001
    mixed = np.random.default_rng(1).permutation(40)
    assert distance_p(apart[np.ix_(mixed, mixed)], 20, seed=0) > 0.01


def test_the_chances_are_even_where_nothing_differs() -> None:
    dice = np.random.default_rng(2)
    chances = [
        scalar_p(dice.normal(size=20).tolist(), dice.normal(size=25).tolist(), seed)
        for seed in range(60)
    ]
    assert 1 <= sum(p <= 0.1 for p in chances) <= 14


@pytest.mark.parametrize(
    ("runs", "before", "after", "streak"),
    [(8, 40, 4, 1), (8, 40, 4, 4), (20, 40, 10, 5), (8, 10, 10, 1)],
)
def test_paired_shares_of_one_behaviour_seldom_differ(
    monkeypatch: pytest.MonkeyPatch, runs: int, before: int, after: int, streak: int
) -> None:
    """Also where one side is short, and where failures come in streaks, which a test of single
    calls would find different.
    """
    monkeypatch.setattr("otel_reliability.statistics.permutation.DEALS", 999)
    dice = random.Random(0)

    def calls() -> list[bool]:
        failed: list[bool] = []
        while len(failed) < before + after:
            failed += [True] * streak if dice.random() < 0.1 / streak else [False]
        return failed

    errors = 0
    samples = 150
    for _ in range(samples):
        made = [calls() for _ in range(runs)]
        sides = [
            [(sum(part), len(part)) for part in (one[:before], one[before : before + after])]
            for one in made
        ]
        errors += paired_p([one for one, _ in sides], [two for _, two in sides], seed=0) <= 0.05
    assert errors <= 0.1 * samples


def test_paired_shares_that_differ_are_found() -> None:
    dice = random.Random(1)
    found = 0
    for _ in range(20):
        before = [(sum(dice.random() < 0.05 for _ in range(30)), 30) for _ in range(12)]
        after = [(sum(dice.random() < 0.3 for _ in range(15)), 15) for _ in range(12)]
        found += paired_p(before, after, seed=0) <= 0.05
    assert found >= 18
