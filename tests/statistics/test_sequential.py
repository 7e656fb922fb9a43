from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from otel_reliability.statistics.sequential import (
    Range,
    SequentialDecision,
    decide,
    interval,
    log_wealth,
)

ALPHA = 0.05
EXPERIMENTS = 200
TARGET = 0.9


def outcome_of(values: np.ndarray, alpha: float = ALPHA) -> tuple[SequentialDecision, int]:
    """Decide after every value, as an experiment does; return the decision and the runs."""
    counts = Counter[float]()
    for runs, value in enumerate(values, 1):
        counts[float(value)] += 1
        found = decide(counts, TARGET, alpha)
        if found is not SequentialDecision.UNDECIDED:
            return found, runs
    return SequentialDecision.UNDECIDED, len(values)


@pytest.mark.parametrize("rate", [0.85, 0.9, 0.93])
def test_wrong_decisions_stay_within_alpha_at_every_look(rate: float) -> None:
    """Near the target, where looks at fixed-sample tests would go wrong most."""
    draws = np.random.default_rng(0).random((EXPERIMENTS, 100)) < rate
    wrong = SequentialDecision.PASS if rate < TARGET else SequentialDecision.FAIL

    found = Counter(outcome_of(row)[0] for row in draws)

    assert found[wrong] <= 0.1 * EXPERIMENTS  # .05 and three standard errors


@pytest.mark.parametrize(
    ("rate", "expected"), [(0.8, SequentialDecision.FAIL), (1.0, SequentialDecision.PASS)]
)
def test_ten_points_away_takes_less_than_half_of_a_fixed_design(
    rate: float, expected: SequentialDecision
) -> None:
    draws = np.random.default_rng(1).random((60, 385)) < rate

    found = [outcome_of(row) for row in draws]

    assert np.mean([decision is expected for decision, _ in found]) > 0.95
    assert np.mean([runs for _, runs in found]) < 385 / 2


def test_mean_over_unlike_tasks_is_tested_at_ends_of_rounds() -> None:
    """Half of the tasks always pass, half at .8: the mean is the target, so neither claim holds
    more often than alpha.
    """
    rates = np.array([1.0, 0.8] * 2)
    draws = np.random.default_rng(2).random((EXPERIMENTS, 40, 4)) < rates
    wrong = 0
    for rounds in draws:
        counts = Counter[float]()
        for values in rounds:
            counts.update(map(float, values))
            if decide(counts, TARGET, ALPHA) is SequentialDecision.FAIL:
                wrong += 1
                break

    assert wrong <= 0.1 * EXPERIMENTS


def test_missing_values_of_a_round_never_decide_what_its_end_would_not() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        counts = Counter(map(float, rng.integers(0, 2, rng.integers(0, 40))))
        missing = int(rng.integers(1, 8))
        early = decide(counts, 0.6, ALPHA, missing=missing)
        for ones in range(missing + 1):
            full = counts + Counter({1.0: ones, 0.0: missing - ones})
            if early is not SequentialDecision.UNDECIDED:
                assert decide(full, 0.6, ALPHA) is early


def test_interval_agrees_with_decisions() -> None:
    counts = {0.0: 6, 1.0: 60}
    low, high = interval(counts, 2 * ALPHA)

    assert decide(counts, low - 0.01, ALPHA) is SequentialDecision.PASS
    assert decide(counts, high + 0.01, ALPHA) is SequentialDecision.FAIL
    assert decide(counts, (low + high) / 2, ALPHA) is SequentialDecision.UNDECIDED


def test_differences_are_bounded_by_their_range() -> None:
    """A kept share r is tested by fault − r · baseline, from −r to 1."""
    within = Range(-0.8, 1.0)
    lost = {-0.8: 12, 0.2: 2}
    kept = {0.2: 60}

    assert decide(lost, 0.0, ALPHA, within=within) is SequentialDecision.FAIL
    assert decide(kept, 0.0, ALPHA, within=within) is SequentialDecision.PASS


def test_targets_at_the_bounds() -> None:
    assert decide({0.0: 3}, 0.0, ALPHA) is SequentialDecision.PASS
    assert decide({1.0: 1000}, 1.0, ALPHA) is SequentialDecision.UNDECIDED
    assert decide({1.0: 10, 0.0: 1}, 1.0, ALPHA) is SequentialDecision.FAIL
    assert log_wealth({}, 0.5, 0.0) == pytest.approx(0.0)
