"""The best cut against an enumeration of all orders, and its promise on coins."""

from __future__ import annotations

import random
from itertools import combinations
from math import comb, log

import pytest

from otel_reliability.statistics.cut import MIN_SIDE, best_cut


def _likelihood(failed: list[bool]) -> float:
    """The largest log-likelihood over the cuts, by the definition."""

    def of(side: list[bool]) -> float:
        share = sum(side) / len(side)
        return sum(log(share if each else 1 - share) for each in side)

    cuts = range(MIN_SIDE, len(failed) - MIN_SIDE + 1)
    return max(of(failed[:at]) + of(failed[at:]) for at in cuts)


@pytest.mark.parametrize("failing", [{7, 8, 9, 10, 11}, {0, 1, 2, 3, 5, 6}, {7, 8, 10, 11}])
def test_the_p_value_is_the_share_of_orders_with_a_cut_as_good(failing: set[int]) -> None:
    runs = 12
    failed = [at in failing for at in range(runs)]
    least = _likelihood(failed) - 1e-9
    orders = combinations(range(runs), len(failing))
    as_good = sum(
        _likelihood([at in order for at in range(runs)]) >= least for order in map(set, orders)
    )

    found = best_cut(failed)

    assert found is not None
    assert found.p == pytest.approx(as_good / comb(runs, len(failing)))


def test_runs_that_fail_at_random_have_a_cut_as_rarely_as_promised() -> None:
    chance = random.Random(7)
    found = [best_cut([chance.random() < 0.3 for _ in range(60)]) for _ in range(1_000)]

    assert sum(one is not None and one.p <= 0.05 for one in found) <= 60
