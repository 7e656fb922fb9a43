"""Failed runs in a row: what counts, and what neither counts nor ends the row."""

from __future__ import annotations

import pytest

from otel_reliability.metrics.success.failed_in_a_row import FailedInARow
from otel_reliability.model.run import Outcome
from otel_reliability.testing import row

END = {
    "e": Outcome.FAILURE,
    "f": Outcome.FAILURE,
    "s": Outcome.SUCCESS,
    "c": Outcome.COMPLETED,
    "u": Outcome.UNKNOWN,
}


def measured(ends: str) -> float | None:
    """The value for runs written as task (a dot: none) and end, oldest first."""
    metric = FailedInARow()
    for task, end in ends.split():
        ended_in_error = None if end == "u" else end == "e"
        known = None if task == "." else task
        metric.add(row(task=known, outcome=END[end], ended_in_error=ended_in_error))
    return metric.value().value


@pytest.mark.parametrize(
    ("ends", "value"),
    [
        (".s .f .f", 2),
        (".f .f", 2),
        (".f .s", 0),
        (".f .c", 0),
        (".s .e .f", 2),
        (".s .f .u .f .u", 2),
        (".u .u", None),
        ("", None),
    ],
)
def test_runs_count_that_failed_since_the_latest_that_did_not(
    ends: str, value: float | None
) -> None:
    assert measured(ends) == value


@pytest.mark.parametrize(
    ("ends", "value"),
    [
        ("as bs af bf af", 3),
        ("as bf bf bf", 0),
        ("as bs cf cf bf cf", 1),
        ("bs as bf .f", 2),
        ("af bf cf", 0),
    ],
)
def test_a_task_at_which_no_run_succeeded_is_no_sign_of_failing_now(
    ends: str, value: float
) -> None:
    """The last tasks of a test suite may be hard ones."""
    assert measured(ends) == value


def test_a_success_by_its_outcome_is_none_that_failed() -> None:
    metric = FailedInARow()
    metric.add(row(outcome=Outcome.SUCCESS, ended_in_error=True))

    assert metric.value().value == 0
