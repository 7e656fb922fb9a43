"""The evaluation metrics and the passes: each agrees with its plain formula, and none speaks without evidence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.config import MetricSettings, Settings
from otel_reliability.metrics import SPECS, TABLE
from otel_reliability.metrics.base import ENDS_COUNT, Metric, Profile
from otel_reliability.metrics.examples import row
from otel_reliability.model.row import OTHER_TASK, Row
from otel_reliability.model.run import Outcome
from tests.metrics import laws
from tests.metrics.reference_evaluation import NAIVE
from tests.metrics.strategies import rows
from tests.windows.windows import window_over

METRICS: dict[str, type[Metric]] = {
    cls.spec.name: cls for cls in TABLE if issubclass(cls, Metric) and cls.spec.name in NAIVE
}
FAMILIES = {"consistency", "predictability", "robustness", "safety", "passes", "reliability"}
AGGREGATES = {"consistency", "predictability", "robustness", "safety", "reliability"}
OURS = sorted(spec.name for spec in SPECS if spec.family in FAMILIES)


def make(name: str, profile: Profile) -> Callable[[], Metric]:
    """What makes the metric of that name under a profile."""
    return lambda: METRICS[name](Settings(metrics=MetricSettings(profile=profile)))


def test_every_metric_has_a_formula() -> None:
    """The table of pairs is complete."""
    assert set(OURS) - AGGREGATES == set(NAIVE)


@pytest.mark.parametrize("profile", ["published", "hal-harness"])
@given(rows=rows(), window=st.sampled_from([1, 2, 5, 10, 24]))
def test_metrics_agree_with_their_formulas(profile: Profile, rows: list[Row], window: int) -> None:
    """At every step of a sliding window each metric says what the plain formula gives over the rows in it."""
    settings = Settings(metrics=MetricSettings(profile=profile))
    for name, formula in NAIVE.items():
        laws.agrees(make(name, profile), lambda inside, formula=formula: formula(inside, settings), rows, window)


CONDITIONS: list[dict[str, Any]] = [{"condition": "fault"}, {"condition": "structure"}, {"condition": "prompt"}]
COMPLETE: dict[str, Any] = {
    "path": "search reply",
    "task": "refund",
    "outcome": Outcome.SUCCESS,
    "confidence": 0.8,
    "cost": 1.0,
    "violations": (),
}
"""Fields of a run that gives evidence to everything."""


def evidence(**changes: Any) -> list[Row]:
    """Four baseline runs (one of them a failure) and one under each condition, all with these fields."""
    fields: dict[str, Any] = COMPLETE | changes
    failed: dict[str, Any] = {"outcome": Outcome.FAILURE} | changes
    runs = [row(**fields), row(**fields), row(**fields), row(**fields | failed)]
    return [*runs, *(row(**condition | fields) for condition in CONDITIONS)]


NO_TIMES: dict[str, Any] = {"cost": None, "start_ns": 0, "end_ns": 0, "tool_calls": None, "failed_calls": None}
NEEDS_OUTCOMES = {
    "outcome_consistency",
    "outcome_agreement",
    "trajectory_distribution",
    "trajectory_sequence",
    "brier_score",
    "calibration",
    "discrimination",
    "risk_coverage",
    "predictability",
    "fault_robustness",
    "structure_robustness",
    "prompt_robustness",
    "robustness",
    "pass_at_k",
    "pass_hat_k",
    "decay_curve",
    "variance_amplification",
    "graceful_degradation",
}
NEEDS_CONFIDENCE = {"brier_score", "calibration", "discrimination", "risk_coverage", "predictability"}
NEEDS_TASKS = {
    "outcome_consistency",
    "outcome_agreement",
    "trajectory_distribution",
    "trajectory_sequence",
    "confidence_consistency",
    "resource_consistency",
    "consistency",
}
PASSES = {"pass_at_k", "pass_hat_k", "decay_curve", "variance_amplification", "graceful_degradation"}
MISSING: dict[str, tuple[dict[str, Any], set[str]]] = {
    "nothing": ({}, set()),
    "outcomes": ({"outcome": Outcome.COMPLETED}, NEEDS_OUTCOMES),
    "unknown outcomes": ({"outcome": Outcome.UNKNOWN}, NEEDS_OUTCOMES),
    "confidence": ({"confidence": None}, NEEDS_CONFIDENCE | {"confidence_consistency"}),
    "task ids": ({"task": None}, NEEDS_TASKS),
    "a task of its own": ({"task": OTHER_TASK}, NEEDS_TASKS | PASSES),
    "judgement": ({"violations": None}, {"compliance", "harm_severity", "safety"}),
    "paths": ({"path": None}, {"trajectory_distribution", "trajectory_sequence"}),
    "resources": (NO_TIMES, {"resource_consistency"}),
    "successes": (
        {"outcome": Outcome.FAILURE},
        {
            "trajectory_distribution",
            "trajectory_sequence",
            "discrimination",
            "risk_coverage",
            "fault_robustness",
            "structure_robustness",
            "prompt_robustness",
            "robustness",
        },
    ),
    "failures": ({"outcome": Outcome.SUCCESS}, {"discrimination", "risk_coverage"}),
    "baseline runs": (
        {"condition": "fault"},
        set(OURS),
    ),
}


@pytest.mark.parametrize("missing", MISSING)
def test_no_evidence_gives_no_value(missing: str) -> None:
    """Exactly the metrics that need the missing evidence have no value; the others have one, with runs behind it."""
    changes, silent = MISSING[missing]
    readings = window_over(evidence(**changes)).readings()

    assert sorted(silent) == [name for name in OURS if readings[name].value is None]
    assert all(readings[name].runs > 0 for name in OURS if name not in silent)


@pytest.mark.parametrize("name", OURS)
def test_one_run_of_a_task_is_no_repeat(name: str) -> None:
    """What compares attempts has no value where each task was attempted once."""
    rows = [row("search", task=task, outcome=Outcome.SUCCESS, cost=1.0, confidence=0.5) for task in ("a", "b")]

    value = window_over(rows).reading(name).value

    assert value is None or name not in NEEDS_TASKS


@given(rows=rows(least=1))
def test_perturbed_runs_move_robustness_alone(rows: list[Row]) -> None:
    """With the perturbed runs left out, every reading but those of robustness (and R, which holds them) is the same."""
    everything = window_over(rows).readings()
    undisturbed = window_over([each for each in rows if each.baseline]).readings()
    moved = {name for name in OURS if everything[name] != undisturbed[name]}

    assert moved <= {"fault_robustness", "structure_robustness", "prompt_robustness", "robustness", "reliability"}


def test_readings_that_rest_on_ends_without_error_say_so() -> None:
    """Where `outcome.fallback: status` made a success of an end, every number that uses it says so, aggregates included."""
    assumed: dict[str, Any] = COMPLETE | {"by_status": True}
    readings = window_over([*evidence(), row(**assumed)]).readings()

    noted = {name for name in OURS if ENDS_COUNT in readings[name].note}
    assert noted == NEEDS_OUTCOMES | {"consistency", "reliability"}
    assert not any(ENDS_COUNT in reading.note for reading in window_over(evidence()).readings().values())
