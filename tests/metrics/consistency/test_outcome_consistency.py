from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.metrics.consistency import outcome_agreement, outcome_consistency

TASKS = st.lists(st.lists(st.integers(0, 1), min_size=2, max_size=30), min_size=1, max_size=8)


@given(tasks=TASKS)
def test_as_published_it_is_the_share_of_unanimous_tasks(tasks: list[list[int]]) -> None:
    """For any mixed task the sample variance exceeds the greatest there can be."""
    unanimous = sum(len(set(task)) == 1 for task in tasks)
    assert outcome_consistency(tasks) == unanimous / len(tasks)


@given(tasks=TASKS)
def test_todays_form_is_the_agreement(tasks: list[list[int]]) -> None:
    """The profile of the authors' code, and the number beside ours, are one."""
    assert outcome_consistency(tasks, "hal-harness") == outcome_agreement(tasks)


def test_a_partial_reward_is_a_failure() -> None:
    """As the reference truncates it."""
    assert outcome_consistency([[1, 0.9]]) == 0.0
    assert outcome_agreement([[0.9, 0.5]]) == 1.0
