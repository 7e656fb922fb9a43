"""The evaluation metrics and the passes: none has a value without data."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from otel_reliability.metrics import SPECS
from otel_reliability.metrics.base import ENDS_COUNT
from otel_reliability.model.row import OTHER_TASK, Row
from otel_reliability.model.run import Outcome
from otel_reliability.testing import row
from tests.metrics.strategies import rows
from tests.windows.runs import window_over

FAMILIES = {"consistency", "predictability", "robustness", "safety", "passes", "reliability"}
OURS = sorted(spec.name for spec in SPECS if spec.family in FAMILIES)


CONDITIONS: list[dict[str, Any]] = [
    {"condition": "fault"},
    {"condition": "structure"},
    {"condition": "prompt"},
]
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
    """Four baseline runs (one of them a failure) and one under each condition, all with these
    fields.
    """
    fields: dict[str, Any] = COMPLETE | changes
    failed: dict[str, Any] = {"outcome": Outcome.FAILURE} | changes
    runs = [row(**fields), row(**fields), row(**fields), row(**fields | failed)]
    return [*runs, *(row(**condition | fields) for condition in CONDITIONS)]


NO_TIMES: dict[str, Any] = {
    "cost": None,
    "start_ns": 0,
    "end_ns": 0,
    "tool_calls": None,
    "failed_calls": None,
}
AGREEMENT = {"outcome_consistency", "outcome_agreement"}
TRAJECTORIES = {"trajectory_distribution", "trajectory_sequence"}
RANKED = {"discrimination", "risk_coverage"}
PREDICTIONS = {"brier_score", "calibration", "predictability"} | RANKED
ROBUSTNESS = {"fault_robustness", "structure_robustness", "prompt_robustness", "robustness"}
PASSES = {
    "pass_at_k",
    "pass_hat_k",
    "decay_curve",
    "variance_amplification",
    "graceful_degradation",
}
NEEDS_OUTCOMES = AGREEMENT | TRAJECTORIES | PREDICTIONS | ROBUSTNESS | PASSES
NEEDS_TASKS = (
    AGREEMENT | TRAJECTORIES | {"confidence_consistency", "resource_consistency", "consistency"}
)
MISSING: dict[str, tuple[dict[str, Any], set[str]]] = {
    "nothing": ({}, set()),
    "outcomes": ({"outcome": Outcome.COMPLETED}, NEEDS_OUTCOMES),
    "unknown outcomes": ({"outcome": Outcome.UNKNOWN}, NEEDS_OUTCOMES),
    "confidence": ({"confidence": None}, PREDICTIONS | {"confidence_consistency"}),
    "task ids": ({"task": None}, NEEDS_TASKS),
    "a task of its own": ({"task": OTHER_TASK}, NEEDS_TASKS | PASSES),
    "judgement": ({"violations": None}, {"compliance", "harm_severity", "safety"}),
    "paths": ({"path": None}, TRAJECTORIES),
    "resources": (NO_TIMES, {"resource_consistency"}),
    "successes": ({"outcome": Outcome.FAILURE}, TRAJECTORIES | RANKED | ROBUSTNESS),
    "failures": ({"outcome": Outcome.SUCCESS}, RANKED),
    "baseline runs": ({"condition": "fault"}, set(OURS)),
}


@pytest.mark.parametrize("missing", MISSING)
def test_no_evidence_gives_no_value(missing: str) -> None:
    changes, silent = MISSING[missing]
    readings = window_over(evidence(**changes)).readings()

    assert sorted(silent) == [name for name in OURS if readings[name].value is None]
    assert all(readings[name].runs > 0 for name in OURS if name not in silent)


@given(rows=rows(least=1))
def test_perturbed_runs_move_robustness_alone(rows: list[Row]) -> None:
    everything = window_over(rows).readings()
    undisturbed = window_over([each for each in rows if each.undisturbed]).readings()
    moved = {name for name in everything if everything[name] != undisturbed[name]}

    assert moved <= ROBUSTNESS | {"reliability"}


def test_readings_that_rest_on_ends_without_error_say_so() -> None:
    assumed: dict[str, Any] = COMPLETE | {"by_status": True}
    readings = window_over([*evidence(), row(**assumed)]).readings()

    noted = {name for name in OURS if ENDS_COUNT in readings[name].note}
    assert noted == NEEDS_OUTCOMES | {"consistency", "reliability"}
    assert not any(
        ENDS_COUNT in reading.note for reading in window_over(evidence()).readings().values()
    )
