from __future__ import annotations

import math
import statistics
from fractions import Fraction
from itertools import permutations
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.metrics.base import Profile
from otel_reliability.metrics.consistency.outcome_consistency import outcome_agreement, outcome_consistency
from otel_reliability.metrics.consistency.spread import Spread, confidence_consistency, resource_consistency, variation
from otel_reliability.metrics.predictability.brier_score import brier_score
from otel_reliability.metrics.predictability.risk_coverage import _risks, risk_coverage
from otel_reliability.metrics.predictability.samples import blocks
from otel_reliability.metrics.safety import compliance, harm_severity, safety, weight

# --- Consistency ----------------------------------------------------------------------------------------------------------


TASKS = st.lists(st.lists(st.integers(0, 1), min_size=2, max_size=30), min_size=1, max_size=8)


@given(tasks=TASKS)
def test_as_published_it_is_the_share_of_unanimous_tasks(tasks: list[list[int]]) -> None:
    """For any mixed task the sample variance exceeds the greatest there can be."""
    unanimous = sum(len(set(task)) == 1 for task in tasks)
    assert outcome_consistency(tasks) == unanimous / len(tasks)


def test_a_partial_reward_is_a_failure() -> None:
    """As the reference truncates it."""
    assert outcome_consistency([[1, 0.9]]) == 0.0
    assert outcome_agreement([[0.9, 0.5]]) == 1.0


AMOUNTS = st.floats(1e-9, 1e12)


@given(stay=st.lists(AMOUNTS, min_size=2, max_size=20), passing=st.lists(AMOUNTS, max_size=10))
def test_a_spread_is_exact_whatever_passed_through(stay: list[float], passing: list[float]) -> None:
    """It is the textbook's deviation over mean in rationals, without the cancellation of sums of squares."""
    spread = Spread()
    for value in (*passing, *stay):
        spread.count(int(value * 2**80))
    for value in passing:
        spread.count(int(value * 2**80), -1)
    exact = [Fraction(int(value * 2**80)) for value in stay]
    expected = math.sqrt(statistics.variance(exact) / statistics.mean(exact) ** 2)

    assert spread.variation() == pytest.approx(expected, rel=1e-15, abs=1e-300)


@pytest.mark.parametrize("values", [[], [1.0], [0.0, 0.0], [-1.0, -2.0]])
def test_no_spread_without_two_values_and_a_mean_above_zero(values: list[float]) -> None:
    assert variation(values) is None


def test_values_that_are_no_numbers_are_missing() -> None:
    bad = [float("nan"), float("inf"), None]

    assert confidence_consistency([[0.5, 0.5, *bad]]) == 1.0
    assert resource_consistency([{"cost": [2.0, 2.0, *bad], "time": bad}]) == 1.0
    assert confidence_consistency([bad]) is None


# --- Predictability -------------------------------------------------------------------------------------------------------


def test_each_attempt_needs_an_outcome() -> None:
    with pytest.raises(ValueError, match="shorter"):
        brier_score([0.5, 0.5], [1])


SAMPLES = st.lists(st.tuples(st.sampled_from([0.1, 0.5, 0.9]), st.booleans()), min_size=1, max_size=5)


@given(found=SAMPLES)
def test_ties_count_with_their_expected_risk(found: list[tuple[float, bool]]) -> None:
    """The risk among the i surest is the mean over every order that the confidences allow."""
    orders = [
        order for order in permutations(found) if [c for c, _ in order] == sorted((c for c, _ in found), reverse=True)
    ]
    expected = [
        fmean(sum(not passed for _, passed in order[:taken]) / taken for order in orders)
        for taken in range(1, len(found) + 1)
    ]
    assert _risks(blocks(found)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("profile", ["published", "hal-harness"])
@given(found=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), min_size=2, max_size=30))
def test_the_order_of_the_samples_is_nothing(profile: Profile, found: list[tuple[float, int]]) -> None:
    """Equal confidences too may come in any order: the reference's values depend on it, ours do not."""
    forth, back = ([*zip(*order, strict=True)] for order in (found, found[::-1]))
    assert risk_coverage(forth[0], forth[1], profile) == risk_coverage(back[0], back[1], profile)


def test_what_is_not_a_number_is_left_out() -> None:
    assert risk_coverage([0.9, math.nan, None, 0.1], [1, 0, 0, 0]) == 1.0


# --- Robustness -----------------------------------------------------------------------------------------------------------


# --- Safety ---------------------------------------------------------------------------------------------------------------


RUNS = st.lists(
    st.none() | st.lists(st.sampled_from(["low", "medium", "high", "odd", "HIGH"]), max_size=3), max_size=15
)


@given(runs=RUNS)
def test_safety_is_one_minus_the_mean_harm(runs: list[list[str] | None]) -> None:
    judged = [run for run in runs if run is not None]
    found = safety(compliance(runs), harm_severity(runs))
    if not judged:
        assert found is None
        return
    harm = sum(max(map(weight, run), default=0.0) for run in judged) / len(judged)
    assert found == pytest.approx(1 - harm)
