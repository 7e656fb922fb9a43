from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.errors import ConfigurationError
from otel_reliability.metrics.base import Metric
from otel_reliability.metrics.passes.attempts import VarianceAmplification
from otel_reliability.metrics.passes.decay_curve import MAX_ENTRIES, DecayCurve, decay_curve, entry
from otel_reliability.metrics.passes.run_counts import confidence_band, recommend_runs
from otel_reliability.metrics.passes.series import PassAtK, PassHatK
from otel_reliability.metrics.passes.summary import summaries, summarize
from otel_reliability.model.row import OTHER_TASK, Row
from otel_reliability.model.run import Outcome
from otel_reliability.testing import row

PASSED = Outcome.SUCCESS
FAILED = Outcome.FAILURE
LEVELS = st.sampled_from([90, 95, 99])


def over(metric: Metric, *tasks: str | None, passed: int = 10**6) -> Metric:
    """The metric over one run for each name of a task, of which the first `passed` succeeded."""
    for at, task in enumerate(tasks):
        metric.add(row(task=task, outcome=PASSED if at < passed else FAILED))
    return metric


def ks(metric: Metric) -> list[str]:
    return [attributes[0][1] for attributes, _ in metric.series()]


def test_powers_of_two_are_emitted() -> None:
    assert ks(over(PassAtK(), *["a"] * 9)) == ["1", "2", "4", "8"]
    assert ks(over(PassAtK(), *["a"] * 5)) == ["1", "2", "4"]
    assert ks(over(DecayCurve(), *["a"] * 9, "b", "b", "b")) == ["1", "2"]
    assert ks(over(DecayCurve())) == []


def test_the_plain_reading_is_that_at_the_greatest_k() -> None:
    reading = over(PassHatK(), "a", "a", "a", passed=2).value()

    assert (reading.value, reading.runs, reading.note) == (0.0, 3, "k = 3")


@given(outcomes=st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), min_size=1, max_size=20))
def test_optimism_grows_and_pessimism_grows_with_k(outcomes: list[tuple[str, bool]]) -> None:
    optimistic = PassAtK()
    pessimistic = PassHatK()
    for task, passed in outcomes:
        for metric in (optimistic, pessimistic):
            metric.add(row(task=task, outcome=PASSED if passed else FAILED))
    rising = [reading.value or 0.0 for reading in optimistic.by_k().values()]
    falling = [reading.value or 0.0 for reading in pessimistic.by_k().values()]

    assert rising == sorted(rising)
    assert falling == sorted(falling, reverse=True)
    assert abs(rising[0] - falling[0]) < 1e-12


def attempt(start: int, outcome: Outcome, **facts: Any) -> Row:
    return row(start_ns=start, outcome=outcome, **facts)


@given(outcomes=st.lists(st.booleans(), min_size=1, max_size=60))
def test_summaries_are_whole_percents_that_agree(outcomes: list[bool]) -> None:
    summary = summarize(outcomes)
    percents = (
        summary.pass_at_k,
        summary.variance_amplification,
        summary.graceful_degradation,
        *summary.decay_curve,
    )

    assert all(0 <= value <= 100 for value in percents)
    assert summary.passhat_k == summary.decay_curve[-1] <= summary.pass_at_k
    assert (summary.graceful_degradation == 100) == all(outcomes)


def test_attempts_stand_in_the_order_in_which_they_began() -> None:
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
    rows = [
        attempt(0, PASSED, task="a"),
        attempt(1, FAILED, task="b"),
        attempt(2, FAILED),
        attempt(3, FAILED, task=OTHER_TASK),
    ]

    assert {task: found.pass_at_k for task, found in summaries(rows).items()} == {"a": 100, "b": 0}


def test_a_summary_without_task_ids_is_of_one_task() -> None:
    assert summaries([attempt(0, PASSED), attempt(1, FAILED)])[None].runs == 2
    assert summaries([]) == {}


@given(k=st.integers(1, 600), share=st.floats(0, 1))
def test_the_truncation_is_exact(k: int, share: float) -> None:
    """Whether a float or whole numbers decide, the entry is ⌊100 · c^k / k^k⌋."""
    passed = round(share * k)
    assert entry(passed, k) == 100 * passed**k // k**k


def test_a_curve_ends_at_the_longest() -> None:
    assert len(decay_curve([True] * (MAX_ENTRIES + 5))) == MAX_ENTRIES


def test_runs_of_equally_flaky_tasks_all_count() -> None:
    """One pass of four and three passes of four are equally flaky; the reading rests on both tasks'
    runs.
    """
    metric = VarianceAmplification()
    for task, passed in (("a", 1), ("b", 3)):
        for attempt in range(4):
            metric.add(row(task=task, outcome=PASSED if attempt < passed else FAILED))

    assert metric.value() == (87.0, 8, (), "worst of 2 tasks")


@given(half_width=st.floats(0.001, 1.0), confidence=LEVELS)
def test_the_recommended_runs_are_enough_and_one_less_is_not(
    half_width: float, confidence: int
) -> None:
    runs = recommend_runs(half_width, confidence)

    assert confidence_band(runs, confidence) <= half_width * (1 + 1e-9)
    assert runs == 1 or confidence_band(runs - 1, confidence) > half_width * (1 - 1e-9)


@pytest.mark.parametrize(
    ("ask", "wrong", "complaint"),
    [
        (
            recommend_runs,
            [0, -0.05, 5, "wide", float("nan"), "1/0", True],
            r"write 5 points as 0\.05",
        ),
        (partial(recommend_runs, 0.05), [0, 80, 0.95, 100], "is not one of 90, 95 and 99"),
        (confidence_band, [0, -1, True], "is not a whole number from 1"),
    ],
    ids=["half width", "confidence", "runs"],
)
def test_numbers_that_recommend_nothing_are_refused(
    ask: Callable[[Any], Any], wrong: list[Any], complaint: str
) -> None:
    for value in wrong:
        with pytest.raises(ConfigurationError, match=complaint):
            ask(value)
