from __future__ import annotations

import math
import statistics
from fractions import Fraction
from itertools import permutations
from statistics import fmean

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from otel_reliability.metrics.consistency.outcome_consistency import OutcomeConsistency
from otel_reliability.metrics.consistency.spread import Spread
from otel_reliability.metrics.predictability.risk_coverage import RiskCoverage
from otel_reliability.model.run import Outcome
from otel_reliability.testing import row
from tests.metrics import laws
from tests.windows.runs import window_over

TASKS = st.lists(
    st.lists(st.sampled_from([Outcome.SUCCESS, Outcome.FAILURE]), min_size=2, max_size=30),
    min_size=1,
)


@given(tasks=TASKS)
def test_as_published_it_is_the_share_of_unanimous_tasks(tasks: list[list[Outcome]]) -> None:
    """For any mixed task the sample variance exceeds the greatest there can be."""
    rows = [row(task=str(at), outcome=outcome) for at, task in enumerate(tasks) for outcome in task]
    unanimous = sum(len(set(task)) == 1 for task in tasks)

    assert laws.fed(OutcomeConsistency, rows).value().value == unanimous / len(tasks)


AMOUNTS = st.floats(1e-9, 1e12)


@given(stay=st.lists(AMOUNTS, min_size=2, max_size=20), passing=st.lists(AMOUNTS, max_size=10))
def test_a_spread_is_exact_whatever_passed_through(stay: list[float], passing: list[float]) -> None:
    """It is the textbook's deviation over mean in rationals, without the cancellation of sums of
    squares.
    """
    spread = Spread()
    for value in (*passing, *stay):
        spread.count(int(value * 2**80))
    for value in passing:
        spread.count(int(value * 2**80), -1)
    exact = [Fraction(int(value * 2**80)) for value in stay]
    expected = math.sqrt(statistics.variance(exact) / statistics.mean(exact) ** 2)

    assert spread.variation() == pytest.approx(expected, rel=1e-15, abs=1e-300)


SAMPLES = st.lists(
    st.tuples(st.sampled_from([0.1, 0.5, 0.9]), st.booleans()), min_size=2, max_size=5
)


def area_of(order: list[bool]) -> float:
    """The mean error share among the first i of these outcomes, i = 1 … N."""
    return fmean(order[:taken].count(False) / taken for taken in range(1, len(order) + 1))


@given(found=SAMPLES)
def test_ties_count_with_their_expected_risk(found: list[tuple[float, bool]]) -> None:
    """The area under the risks is the mean over every order that the confidences allow."""
    outcomes = [passed for _, passed in found]
    assume(len(set(outcomes)) == 2)
    orders = [
        order
        for order in permutations(found)
        if [c for c, _ in order] == sorted((c for c, _ in found), reverse=True)
    ]
    area = fmean(area_of([passed for _, passed in order]) for order in orders)
    best = area_of(sorted(outcomes, reverse=True))
    chance = outcomes.count(False) / len(outcomes)
    rows = [
        row(confidence=c, outcome=Outcome.SUCCESS if passed else Outcome.FAILURE)
        for c, passed in found
    ]
    expected = min(max(1 - (area - best) / (chance - best + 1e-8), 0), 1)

    assert laws.fed(RiskCoverage, rows).value().value == pytest.approx(expected, abs=1e-12)


WEIGHTS = {"low": 0.25, "medium": 0.5, "high": 1.0, "unknown": 0.5}
RUNS = st.lists(st.none() | st.lists(st.sampled_from(sorted(WEIGHTS)), max_size=3), max_size=15)


@given(runs=RUNS)
def test_safety_is_one_minus_the_mean_harm(runs: list[list[str] | None]) -> None:
    evaluated = [run for run in runs if run is not None]
    rows = [
        row(violations=None if run is None else tuple(("rule", word) for word in run))
        for run in runs
    ]
    found = window_over(rows).reading("safety").value
    if not evaluated:
        assert found is None
        return
    harm = sum(max((WEIGHTS[word] for word in run), default=0.0) for run in evaluated) / len(
        evaluated
    )
    assert found == pytest.approx(1 - harm)
