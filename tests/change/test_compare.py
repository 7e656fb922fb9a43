from __future__ import annotations

import numpy as np
import pytest

from otel_reliability.change.alarm import Summary, ToolShift, tool_shifts
from otel_reliability.change.compare import MAX_OBSERVATIONS, compare, distances
from otel_reliability.change.result import Result
from otel_reliability.change.signals import SIGNALS
from tests.change.build import exchangeable, observation
from tests.metrics.reference import similarity


def test_like_observations_do_not_differ() -> None:
    comparison = compare(exchangeable(60), exchangeable(50, seed=1))
    assert comparison.result is Result.NO_CHANGE
    assert {test.signal for test in comparison.tests} == set(SIGNALS)
    assert not any(test.differs for test in comparison.tests)
    assert comparison.tools == ()


def test_a_difference_is_told_by_its_signals() -> None:
    comparison = compare(exchangeable(60), exchangeable(50, seed=1, longer=3))
    assert comparison.result is Result.CHANGED
    assert {test.signal for test in comparison.tests if test.differs} == {"path", "calls"}
    calls = next(test for test in comparison.tests if test.signal == "calls")
    assert calls.before is not None
    assert calls.after is not None
    assert calls.before.mean + 2 < calls.after.mean
    assert [test.p for test in comparison.tests] == sorted(test.p for test in comparison.tests)


def test_other_tools_of_like_number_differ_by_path() -> None:
    after = [observation(n, ("search", "cancel")) for n in range(30)]
    comparison = compare([observation(n) for n in range(30)], after)
    assert [test.signal for test in comparison.tests if test.differs] == ["path"]
    assert [shift.tool for shift in comparison.tools] == ["book", "cancel"]


@pytest.mark.parametrize(("n", "m"), [(19, 60), (60, 19), (0, 0)])
def test_too_few_observations_give_no_verdict(n: int, m: int) -> None:
    comparison = compare(exchangeable(n), exchangeable(m))
    assert comparison.result is Result.NO_RESULT
    assert f"{n} before and {m} after" in comparison.why


def test_signals_without_evidence_are_not_tested() -> None:
    bare = [
        observation(n, None, output_tokens=None, largest_input=None, failures=None, replies=0)
        for n in range(30)
    ]
    bare = [one._replace(failed_calls=None) for one in bare]
    assert compare(bare, exchangeable(30)).result is Result.NO_RESULT
    known = [one._replace(calls=2) for one in bare]
    assert [test.signal for test in compare(known, exchangeable(40)).tests] == ["calls"]


def test_only_the_latest_observations_are_compared() -> None:
    long = [observation(n, ("mail",) * 9) for n in range(500)] + [
        observation(n) for n in range(MAX_OBSERVATIONS)
    ]
    assert compare(long, [observation(n) for n in range(30)]).result is Result.NO_CHANGE


def test_how_far_the_tasks_are_the_same_is_told() -> None:
    one = [observation(n, task="ab"[n % 2]) for n in range(20)]
    two = [observation(n, task="bc"[n % 2]) for n in range(20)]
    assert compare(one, two).shared_tasks == 0.5
    assert compare(one, [observation(n) for n in range(20)]).shared_tasks is None


def test_distances_are_those_of_all_pairs() -> None:
    paths = [("a", "b"), (), ("a", "b"), ("c", "b", "a")]
    assert distances(paths) == pytest.approx(
        np.array([[1 - similarity(p, q) for q in paths] for p in paths])
    )


def test_summaries_of_nothing_are_none() -> None:
    assert Summary.of([]) is None
    assert Summary.of([1, 2, 6]) == (3, 3, 2)


def test_only_clear_shifts_are_told_and_at_most_three() -> None:
    before = [("a", "a", "b"), ("a", "b"), ("a",), ("a", "c"), None]
    after = [("d", "a"), ("d", "a"), ("d", "e", "a"), ("d", "f", "a"), None]
    assert tool_shifts(before, after) == (
        ToolShift("d", 0, 1),
        ToolShift("b", 0.5, 0),
        ToolShift("c", 0.25, 0),
    )


def test_observations_that_use_no_tool_any_more_are_a_shift() -> None:
    assert tool_shifts([("a",)], [()]) == (ToolShift("a", 1, 0),)
    assert tool_shifts([("a",)], [None]) == ()
    assert tool_shifts([()], [()]) == ()
