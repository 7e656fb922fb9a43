from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

import pytest

from otel_reliability.experiments.decision import (
    Results,
    SequentialTest,
    TargetData,
    is_sequential,
    no_loss_since,
    observed_by,
)
from otel_reliability.experiments.journal import AttemptResult
from otel_reliability.report.target import parse
from otel_reliability.statistics.sequential import Range, SequentialDecision

BASELINE = ("baseline",)


def results(
    outcomes: Mapping[str, Iterable[bool]], condition: str = "baseline", into: Results | None = None
) -> Results:
    found = Results(list(outcomes)) if into is None else into
    for task, passes in outcomes.items():
        for trial, success in enumerate(passes):
            found.add(
                AttemptResult(task, trial, condition, success, "check", not success, 1, None, 1.0)
            )
    return found


def observed(text: str, found: Results) -> TargetData:
    return observed_by(parse(text), found.task_ids, found)


def test_round_lacks_the_tasks_that_are_behind() -> None:
    found = results({"a": [True, True, False], "b": [True]})

    assert observed("success_rate>=0.9", found) == TargetData({1.0: 3, 0.0: 1}, 2)


def test_pass_hat_k_observes_blocks_of_k_attempts() -> None:
    found = results({"a": [True, True, True, False], "b": [True, True, True]})

    assert observed("pass_hat_k.2>=0.9", found) == TargetData({1.0: 2, 0.0: 1}, 1)
    assert observed("pass_at_k.2>=0.9", found).counts == {1.0: 3}


def test_robustness_compares_trials_under_both_conditions() -> None:
    found = results({"a": [True, True]})
    results({"a": [True, False, True]}, "fault", found)

    seen = observed("fault_robustness>=0.8", found)

    assert seen.within == Range(-0.8, 1.0)
    assert {round(value, 6): number for value, number in seen.counts.items()} == {0.2: 1, -0.8: 1}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("success_rate>=0.7", SequentialDecision.PASS),
        ("error_rate<=0.3", SequentialDecision.PASS),
        ("error_rate>=0.3", SequentialDecision.FAIL),
        ("success_rate>=0.9", SequentialDecision.UNDECIDED),
    ],
)
def test_both_directions_are_decided(text: str, expected: SequentialDecision) -> None:
    found = results({"a": itertools.repeat(True, 10), "b": itertools.repeat(True, 10)})
    target = parse(text)
    test = SequentialTest(target, found.task_ids, 0.05)

    test.update(found)

    assert test.decision is expected


def test_decision_stays_once_it_is_made() -> None:
    found = results({"a": [False] * 10})
    test = SequentialTest(parse("success_rate>=0.9"), ["a"], 0.05)
    test.update(found)
    results({"a": [True] * 500}, into=found)
    test.update(found)

    assert test.decision is SequentialDecision.FAIL


def test_only_rates_of_attempts_are_decided_early() -> None:
    early = ["success_rate>=0.9", "pass_hat_k.4>=0.5", "error_rate<0.1"]
    late = [
        "score>=80",
        "pass_hat_k>=0.5",
        'agents["x"].success_rate>=0.9',
        "success_rate==1",
        'tasks["a"].runs>=1',
    ]

    assert all(is_sequential(parse(text), BASELINE) for text in early)
    assert not any(is_sequential(parse(text), BASELINE) for text in late)
    assert not is_sequential(parse("fault_robustness>=0.9"), BASELINE)
    assert is_sequential(parse("fault_robustness>=0.9"), ("baseline", "fault"))


def test_loss_since_an_earlier_experiment_is_found_task_by_task() -> None:
    earlier = results({"a": [True] * 20, "b": [False] * 20})
    target = no_loss_since("earlier.jsonl")
    now = {
        SequentialDecision.FAIL: {"a": [False] * 20, "b": [False] * 20},
        SequentialDecision.UNDECIDED: {"a": [True] * 20, "b": [False] * 20},
        SequentialDecision.PASS: {"a": [True] * 20, "b": [True] * 20},
    }
    for expected, outcomes in now.items():
        found = results(outcomes, into=Results(["a", "b"], earlier))
        test = SequentialTest(target, found.task_ids, 0.05)
        test.update(found)

        assert test.decision is expected
