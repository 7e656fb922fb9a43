from __future__ import annotations

import random

import pytest

from otel_reliability.statistics.permutation import paired_p


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
