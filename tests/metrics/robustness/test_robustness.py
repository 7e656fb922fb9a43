from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.metrics.robustness import kept_accuracy

OUTCOMES = st.lists(st.integers(0, 1), max_size=20)


@given(perturbed=OUTCOMES, baseline=OUTCOMES)
def test_a_share_is_claimed_only_of_something(perturbed: list[int], baseline: list[int]) -> None:
    """It needs runs under the condition and a baseline that succeeds at times, and is never above 1."""
    kept = kept_accuracy(perturbed, baseline)

    assert (kept is None) == (not perturbed or not any(baseline))
    assert kept is None or 0.0 <= kept <= 1.0


def test_more_runs_on_one_side_weigh_nothing() -> None:
    """Accuracies are compared, not counts."""
    assert kept_accuracy([1, 0] * 50, [1, 0]) == 1.0
    assert kept_accuracy([1, 0.9], [1, 1]) == 0.5
