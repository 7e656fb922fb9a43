"""The verdict: a failing agent is never called good, and no tier is made worse than it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.config import ObjectiveSettings, Settings
from otel_reliability.metrics.stability.tier import Tier
from otel_reliability.metrics.success.objective import ErrorBudgetLeft, Objective
from otel_reliability.metrics.success.verdict import GradeRank, Verdict, VerdictRank, assess
from otel_reliability.model.reading import NO_DATA, Reading

TWENTY = 20


def readings(
    success: float | None = None,
    errors: float | None = None,
    score: float | None = None,
    calls: float | None = None,
    failed: float | None = None,
    in_a_row: float | None = None,
) -> dict[str, Reading]:
    given_values = {
        "success_rate": success,
        "error_rate": errors,
        "failed_run_share": errors if failed is None else failed,
        "failed_in_a_row": in_a_row,
        "failed_call_share": calls,
        "score": score,
        "objective": None,
    }
    return {
        name: NO_DATA if value is None else Reading(value, TWENTY)
        for name, value in given_values.items()
    }


@pytest.mark.parametrize(
    ("facts", "verdict", "grade"),
    [
        ({"errors": 1.0, "score": 100.0}, Verdict.FAILING, Tier.CRITICAL),
        ({"success": 0.0, "errors": 0.0, "score": 100.0}, Verdict.FAILING, Tier.CRITICAL),
        ({"errors": 1.0}, Verdict.FAILING, Tier.CRITICAL),
        ({"success": 0.25, "score": 90.0}, Verdict.FAILING, Tier.CRITICAL),
        # Half of the runs fail: less than "more often than not", but nothing to show in green.
        ({"success": 0.5, "score": 90.0}, Verdict.STABLE, Tier.UNSTABLE),
        ({"errors": 0.5, "score": 90.0}, Verdict.STABLE, Tier.UNSTABLE),
        ({"success": 1.0, "errors": 0.0, "score": 65.0}, Verdict.VARIABLE, Tier.VARIABLE),
        ({"errors": 0.0, "score": 90.0}, Verdict.STABLE, Tier.STABLE),
        # Only failures are reported: what is not known to fail is not known to succeed.
        ({"errors": 0.0, "failed": 0.95, "score": 100.0}, Verdict.FAILING, Tier.CRITICAL),
        ({"errors": 0.0, "failed": 0.25, "score": 100.0}, Verdict.STABLE, Tier.VARIABLE),
        # Nothing works, though no run says so.
        ({"errors": 0.0, "score": 100.0, "calls": 1.0}, Verdict.STABLE, Tier.CRITICAL),
        ({"errors": 0.0, "score": 100.0, "calls": 0.6}, Verdict.STABLE, Tier.STABLE),
        ({"success": 1.0, "score": 100.0, "calls": 1.0}, Verdict.STABLE, Tier.STABLE),
        # It worked for long, and no longer does.
        ({"success": 0.8, "score": 100.0, "in_a_row": 10.0}, Verdict.FAILING, Tier.CRITICAL),
        ({"errors": 0.2, "score": 100.0, "in_a_row": 10.0}, Verdict.FAILING, Tier.CRITICAL),
        ({"success": 0.9, "score": 100.0, "in_a_row": 9.0}, Verdict.STABLE, Tier.STABLE),
        ({"score": 30.0}, Verdict.CRITICAL, Tier.CRITICAL),
        ({"success": 0.9}, Verdict.UNDECIDED, Tier.STABLE),
        ({"errors": 0.0}, Verdict.UNDECIDED, None),
        ({}, Verdict.UNDECIDED, None),
    ],
    ids=str,
)
def test_the_verdict_is_the_worse_of_success_and_stability(
    facts: dict[str, float], verdict: Verdict, grade: Tier | None
) -> None:
    found = assess(readings(**facts).__getitem__)

    assert (found.verdict, found.grade) == (verdict, grade)
    failing = verdict is Verdict.FAILING
    rank = None if grade is None else 0.0 if failing else 1.0 + ORDER.index(grade)
    assert GradeRank().derive(readings(**facts)).value == rank


@pytest.mark.parametrize(
    ("objective", "facts", "failing"),
    [
        ({"success": 0.95}, {"success": 0.7}, True),
        ({"success": 0.95}, {"success": 0.9}, False),  # up to 97 % of 20 runs
        ({"success": 0.95}, {"errors": 0.5}, True),
        ({"success": 0.3}, {"success": 0.25}, False),
        ({"success": 0.3}, {"success": 0.0}, True),
        ({"errors": 0.1}, {"errors": 0.5}, True),
        ({"errors": 0.1}, {"errors": 0.15}, False),
        ({"errors": 0.1}, {"success": 0.0, "errors": 0.0}, True),
        ({"errors": 0.1}, {}, False),
    ],
    ids=str,
)
def test_an_agent_with_an_objective_fails_below_it(
    objective: dict[str, float], facts: dict[str, float], failing: bool
) -> None:
    settings = Settings.load({"objectives": [objective]})
    known = readings(score=90.0, **facts) | {"objective": Objective(settings).derive({})}

    assert (assess(known.__getitem__).verdict is Verdict.FAILING) is failing
    assert VerdictRank(settings).derive(known).note == ("failing" if failing else "stable")


def test_the_budget_left_is_what_the_objective_allows_less_what_failed() -> None:
    settings = Settings(objectives=(ObjectiveSettings(errors=0.1),))
    budget = ErrorBudgetLeft(settings)

    assert budget.derive(readings(errors=0.05)).value == pytest.approx(0.5)
    assert budget.derive(readings(errors=0.2)).value == pytest.approx(-1.0)
    assert budget.derive(readings(success=1.0)) == NO_DATA
    assert ErrorBudgetLeft().derive(readings(errors=0.2)) == NO_DATA
    assert budget.series(readings(errors=0.1))[0][0] == (("signal", "errors"),)


@pytest.mark.parametrize(("runs", "failing"), [(1, False), (3, False), (4, True), (20, True)])
def test_a_few_failed_runs_are_no_verdict(runs: int, failing: bool) -> None:
    """Three failures of three leave a success rate of up to 56 %."""
    found = assess({**readings(score=100.0), "failed_run_share": Reading(1.0, runs)}.__getitem__)

    assert (found.verdict is Verdict.FAILING) is failing


SHARES = st.none() | st.integers(0, TWENTY).map(lambda part: part / TWENTY)
ORDER = list(reversed(Tier))


@given(SHARES, SHARES, st.none() | st.floats(0, 100))
def test_success_never_raises_a_grade(
    success: float | None, errors: float | None, score: float | None
) -> None:
    without = assess(readings(score=score).__getitem__).grade
    grade = assess(readings(success, errors, score).__getitem__).grade

    assert without is None or (grade is not None and ORDER.index(grade) <= ORDER.index(without))
