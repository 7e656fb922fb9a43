"""The family-wise error of contrasts, with and without blocks, and their power."""

from __future__ import annotations

import numpy as np
import pytest

from otel_reliability.statistics.contrast import contrast, deals

RUNS = 60
EACH = list(range(RUNS))
IN_FOURS = [at // 4 for at in range(RUNS)]
UNEVEN = sorted(np.random.default_rng(1).integers(0, 14, RUNS).tolist())


@pytest.mark.parametrize("blocks", [EACH, IN_FOURS, UNEVEN], ids=["none", "even", "uneven"])
@pytest.mark.parametrize("by_block", [False, True])
def test_at_most_one_in_twenty_shuffles_has_a_finding(blocks: list[int], by_block: bool) -> None:
    """Features depend on the block; groups are drawn by run, or by block."""
    rng = np.random.default_rng(7)
    of_block = rng.random((RUNS, 25))
    columns = (rng.random((RUNS, 25)) < of_block[blocks]).astype(float)
    found = 0
    for seed in range(200):
        drawn = rng.random(RUNS) < 0.4
        second = drawn[blocks] if by_block else drawn
        found += min(contrast(columns, second.tolist(), blocks, level=0.05, seed=seed).p) <= 0.05

    assert found <= 17  # of 200: 5 %, and two standard errors


def test_deals_keep_runs_of_a_block_together() -> None:
    groups = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    blocks = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2])
    dealt = deals(groups, blocks)

    assert {tuple(row) for row in dealt.reshape(-1, 3).tolist()} == {(0.0,) * 3, (1.0,) * 3}
    assert (dealt.sum(axis=1) == 3).all()
    assert (deals(groups, blocks, swap=False) == groups).all()


def test_a_difference_of_the_size_named_is_found_in_four_of_five_cases() -> None:
    rng = np.random.default_rng(3)
    found = 0
    for seed in range(100):
        second = [True] * 40 + [False] * 40
        noise = (rng.random((80, 20)) < 0.5).astype(float)
        size = contrast(noise, second, list(range(80)), level=0.05, seed=seed).detectable.share
        shares = np.where(second, 0.5 + size / 2, 0.5 - size / 2)
        noise[:, 0] = rng.random(80) < shares
        found += contrast(noise, second, list(range(80)), level=0.05, seed=seed).p[0] <= 0.05

    assert found >= 72  # of 100: 80 %, less two standard errors


def test_numbers_are_ranked_and_unknown_ones_left_out() -> None:
    column = np.array([[1.0], [2.0], [3.0], [4.0], [np.nan]] * 8)
    huge = column.copy()
    huge[huge == 4.0] = 1e9
    second = [False, False, True, True, True] * 8

    assert contrast(huge, second, EACH[:40], level=0.05) == contrast(
        column, second, EACH[:40], level=0.05
    )
    assert contrast(column, second, EACH[:40], level=0.05).p[0] < 0.01
