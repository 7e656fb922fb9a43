from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.metrics.examples import row
from otel_reliability.metrics.passes import TARGETS, summaries, summarize
from otel_reliability.model.row import OTHER_TASK, Row
from otel_reliability.model.run import Outcome

PASSED, FAILED = Outcome.SUCCESS, Outcome.FAILURE


def attempt(start: int, outcome: Outcome, **facts: Any) -> Row:
    """An attempt that began then."""
    return row(start_ns=start, outcome=outcome, **facts)


@given(outcomes=st.lists(st.integers(0, 1), min_size=1, max_size=60))
def test_summaries_are_whole_percents_that_agree(outcomes: list[int]) -> None:
    """Every target is from 0 to 100, and the pessimistic end of the curve is the passhat of all."""
    summary = summarize(outcomes)
    assert summary is not None

    assert all(0 <= value <= 100 for path, value in summary.metrics_object().items() if path != "reliability.runs")
    assert summary.passhat_k == summary.decay_curve[-1] <= summary.pass_at_k
    assert (summary.graceful_degradation == 100) == all(outcomes)


def test_an_unknown_path_is_none_and_never_zero() -> None:
    """Nor is the curve a target."""
    summary = summarize([0])
    assert summary is not None

    assert summary.resolve_target("reliability.passhat_k") == 0
    unknown = ["reliability.decay_curve", "reliability.passes", "passhat_k", "", "reliability."]
    assert [summary.resolve_target(path) for path in unknown] == [None] * 5
    assert set(TARGETS) == set(summary.metrics_object())


def test_attempts_stand_in_the_order_in_which_they_began() -> None:
    """Not in that of their ends; perturbed runs and unknown outcomes are no attempts."""
    rows = [
        attempt(30, FAILED, end_ns=40, task="a"),
        attempt(10, PASSED, end_ns=90, task="a"),
        attempt(20, PASSED, end_ns=50, task="a"),
        attempt(0, FAILED, task="a", condition="fault"),
        attempt(0, Outcome.COMPLETED, task="a"),
    ]
    found = summaries(rows)["a"]

    assert (found.runs, found.decay_curve, found.graceful_degradation) == (3, (100, 100, 29), 50)


def test_each_task_has_a_summary() -> None:
    """Where any run names a task, those that name none, and a mixture of tasks, are left out."""
    rows = [
        attempt(0, PASSED, task="a"),
        attempt(1, FAILED, task="b"),
        attempt(2, FAILED),
        attempt(3, FAILED, task=OTHER_TASK),
    ]

    assert {task: found.pass_at_k for task, found in summaries(rows).items()} == {"a": 100, "b": 0}


def test_without_task_ids_the_window_is_one_task() -> None:
    """All runs are attempts at it."""
    assert summaries([attempt(0, PASSED), attempt(1, FAILED)])[None].runs == 2
    assert summaries([]) == {}
