"""The simple jumper."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.change.martingale import Jumper

RANKS = st.lists(st.floats(0, 1), max_size=50)


@given(RANKS)
def test_a_bet_is_fair(ranks: list[float]) -> None:
    """Whatever went before, the mean growth over uniform ranks is 1, less what the bound on extreme ranks costs."""
    jumper = Jumper()
    for p in ranks:
        jumper.bet(p)
    grid = [(n + 0.5) / 5_000 for n in range(5_000)]
    assert 0.99 < sum(Jumper(jumper.weights).bet(p) for p in grid) / len(grid) <= 1 + 1e-12


@pytest.mark.parametrize("p", [0.0, 0.1, 0.9, 1.0])
def test_a_shift_either_way_wins(p: float) -> None:
    """Ranks that stay at one side of ½ let the money grow, and a turn to the other side is found as well."""
    jumper, money = Jumper(), 1.0
    for rank in [1 - p] * 300 + [p] * 60:
        money = money * jumper.bet(rank) if rank == p else 1.0
    assert money > 1_000


def test_the_money_never_overflows_or_runs_out() -> None:
    """After many bets the weights still sum to 1 and none is lost."""
    jumper = Jumper()
    for _ in range(20_000):
        jumper.bet(0.0)
    assert sum(jumper.weights) == pytest.approx(1)
    assert min(jumper.weights) > 1e-5
