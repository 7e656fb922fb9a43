from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.statistics.intervals import (
    MIN_RUNS,
    SHARE,
    Bounds,
    Interval,
    jackknife,
    student,
    unseen,
)
from otel_reliability.statistics.resampling import bootstrap

VALUES = st.lists(st.floats(0, 1), min_size=MIN_RUNS, max_size=30)


@given(VALUES, st.data())
def test_a_bootstrap_holds_the_mean(values: list[float], data: st.DataObject) -> None:
    weights = data.draw(st.lists(st.integers(1, 9), min_size=len(values), max_size=len(values)))
    interval = bootstrap(values, SHARE, weights=weights)
    mean = sum(v * w for v, w in zip(values, weights, strict=True)) / sum(weights)
    assert interval is not None
    assert 0 <= interval.low <= mean + 1e-12
    assert mean - 1e-12 <= interval.high <= 1


@given(st.floats(0, 1), VALUES)
def test_a_jackknife_holds_the_value(value: float, without: list[float]) -> None:
    interval = jackknife(value, without, len(without), SHARE)
    assert interval is not None
    assert 0 <= interval.low <= value <= interval.high <= 1


@pytest.mark.parametrize("n", range(MIN_RUNS))
def test_too_few_give_none(n: int) -> None:
    assert bootstrap([0.5] * n, SHARE) is None
    assert jackknife(0.5, [0.5] * n, 100, SHARE) is None
    assert jackknife(0.5, [0.5] * 100, n, SHARE) is None


def test_the_same_values_give_the_same_interval() -> None:
    values = [0.1, 0.4, 0.2, 0.9, 0.3, 0.3]
    assert bootstrap(values, SHARE) == bootstrap(values, SHARE)


def test_weights_count_as_repeats_in_the_mean() -> None:
    even = bootstrap([0.0, 1.0] * 20, SHARE)
    heavy = bootstrap([0.0, 1.0] * 20, SHARE, weights=[1, 9] * 20)
    assert even is not None
    assert heavy is not None
    assert even.low < 0.5 < even.high < heavy.high
    assert heavy.low > 0.75


def test_like_runs_leave_room_for_what_was_not_seen() -> None:
    assert bootstrap([0.0] * 10, SHARE) == Interval(
        0.0, unseen(10, SHARE) or 0, "bootstrap over runs"
    )
    assert jackknife(1.0, [1.0] * 10, 10, SHARE) == Interval(
        1 - (unseen(10, SHARE) or 0), 1.0, "jackknife"
    )
    assert bootstrap([0.0] * 10, Bounds(0.0, None)) is None
    assert jackknife(0.0, [0.0] * 10, 10, Bounds(0.0, None)) is None


def test_unseen_shrinks_with_runs() -> None:
    room = [unseen(n, SHARE) or 0 for n in (5, 10, 20, 100, 1_000)]
    assert room == sorted(room, reverse=True)
    assert room[0] < 0.5
    assert room[-1] < 0.01


@pytest.mark.parametrize(
    ("freedom", "expected"), [(4, 2.776), (6, 2.447), (10, 2.228), (29, 2.045), (1_000, 1.962)]
)
def test_student_is_the_table(freedom: int, expected: float) -> None:
    """The quantiles of the printed tables."""
    assert student(freedom) == pytest.approx(expected, rel=0.005)


def entropy(labels: Sequence[int]) -> float:
    counts = np.bincount(labels)
    shares = counts[counts > 0] / len(labels)
    return float(-(shares * np.log2(shares)).sum() / math.log2(len(labels)))


def alike(labels: Sequence[int]) -> float:
    counts = np.bincount(labels)
    n = len(labels)
    return float((counts * (counts - 1)).sum() / (n * (n - 1)))


PATHS = {
    "usual": [0.9, 0.05, 0.05],
    "two": [0.6, 0.4],
    "even": [1 / 3] * 3,
    "tail": [1 / k / 3.6 for k in range(1, 21)],
    "many": [0.02] * 50,
}


@pytest.mark.parametrize("n", [5, 10, 30])
@pytest.mark.parametrize("measure", [entropy, alike])
@pytest.mark.parametrize("kind", PATHS)
def test_jackknife_intervals_cover(
    kind: str, measure: Callable[[Sequence[int]], float], n: int
) -> None:
    dice = np.random.default_rng(5)
    shares = np.array(PATHS[kind]) / sum(PATHS[kind])
    samples = dice.choice(len(shares), (1_000, n), p=shares)
    truth = np.mean([measure(sample) for sample in samples])
    covered = 0
    for sample in samples[:200]:
        without = [measure([*sample[:at], *sample[at + 1 :]]) for at in range(n)]
        interval = jackknife(measure(sample), without, n, SHARE)
        covered += interval is not None and interval.low - 1e-9 <= truth <= interval.high + 1e-9
    assert covered >= 0.9 * 200


DRAWS: dict[
    str,
    tuple[
        Callable[[np.random.Generator, int], np.ndarray[tuple[int], np.dtype[np.float64]]], float
    ],
] = {
    "even": (lambda dice, n: dice.random(n), 0.5),
    "skewed": (lambda dice, n: np.minimum(dice.exponential(0.2, n), 1), 0.2 * (1 - math.exp(-5))),
    "few values": (lambda dice, n: dice.choice([0.0, 0.5, 1.0], n, p=[0.5, 0.3, 0.2]), 0.35),
    "two heaps": (lambda dice, n: np.where(dice.random(n) < 0.3, 0.9, 0.2), 0.41),
}


@pytest.mark.parametrize("n", [5, 10, 40])
@pytest.mark.parametrize("kind", DRAWS)
def test_bootstrap_intervals_cover(kind: str, n: int) -> None:
    draw, truth = DRAWS[kind]
    dice = np.random.default_rng(6)
    covered = 0
    for _ in range(200):
        interval = bootstrap(draw(dice, n).tolist(), SHARE)
        covered += interval is not None and interval.low <= truth <= interval.high
    assert covered >= (0.85 if (kind, n) == ("skewed", 5) else 0.9) * 200
