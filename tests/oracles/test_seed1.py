"""The evaluation methodology: what its authors' code computes (`expected`), and what the page says
(`published`).
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from otel_reliability.config import MetricSettings, Settings
from otel_reliability.metrics.base import Profile
from otel_reliability.model.row import Row
from otel_reliability.model.run import Outcome
from otel_reliability.testing import row
from otel_reliability.windows.window import AgentWindow
from tests.metrics.reference_evaluation import NAIVE
from tests.oracles.reading import close, each
from tests.windows.runs import window_over

CASES = each("oracles/seed1.json", "cases")
IN_RANGE = [case for case in CASES if case.id != "pred_conf_outside"]
"""A confidence out of range tests the reference formulas alone: no run has one, because it is
refused where it is read.
"""
PROFILES: tuple[Profile, ...] = ("published", "hal-harness")
NAMES: Final = {
    "C_out": "outcome_consistency",
    "C_traj_d": "trajectory_distribution",
    "C_traj_s": "trajectory_sequence",
    "C_conf": "confidence_consistency",
    "C_res": "resource_consistency",
    "R_Con": "consistency",
    "P_rc": "risk_coverage",
    "P_cal": "calibration",
    "P_auroc": "discrimination",
    "P_brier": "brier_score",
    "R_Pred": "predictability",
    "R_fault": "fault_robustness",
    "R_struct": "structure_robustness",
    "R_prompt": "prompt_robustness",
    "R_Rob": "robustness",
    "S_comp": "compliance",
    "S_harm": "harm_severity",
    "R_Saf": "safety",
    "R": "reliability",
}
CONDITIONS: Final = {
    "runs": "baseline",
    "fault_runs": "fault",
    "struct_runs": "structure",
    "prompt_runs": "prompt",
}


def oracle(case: dict[str, Any], profile: Profile) -> dict[str, float | None]:
    """What the case expects under a profile. P_rc of tied confidences depends on their order in the
    reference code.
    """
    expected = {name: case["expected"][name] for name in NAMES}
    if profile == "published":
        return expected | case["published"]
    return {
        name: value
        for name, value in expected.items()
        if name != "P_rc" or not case.get("p_rc_ties")
    }


def _row(run: dict[str, Any], condition: str) -> Row:
    latencies = run["call_latencies_ms"]
    return row(
        [call["name"] for call in run["calls"]],
        task=run["task_id"],
        condition=condition,
        outcome=Outcome.SUCCESS if run["outcome"] >= 1 else Outcome.FAILURE,
        confidence=run["confidence"],
        cost=run["cost"],
        start_ns=0,
        end_ns=round((run["time_s"] or 0) * 1e9),
        model_calls=len(latencies),
        failed_calls=sum(not call["ok"] for call in run["calls"]),
        latency_ns=round(sum(latencies) / len(latencies) * 1e6) if latencies else None,
        violations=None
        if run["violations"] is None
        else tuple(("rule", word) for word in run["violations"]),
    )


def _rows(case: dict[str, Any]) -> list[Row]:
    return [
        _row(run, condition) for runs, condition in CONDITIONS.items() for run in case.get(runs, [])
    ]


def _settings(profile: Profile) -> Settings:
    return Settings(metrics=MetricSettings(profile=profile))


def _window(case: dict[str, Any], profile: Profile) -> AgentWindow:
    return window_over(_rows(case), _settings(profile))


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("case", CASES)
def test_reference_formulas_agree_with_the_oracle(case: dict[str, Any], profile: Profile) -> None:
    """The formulas that every metric is compared with are those of the methodology's authors."""
    rows = _rows(case)
    settings = _settings(profile)
    expected = {
        NAMES[name]: value for name, value in oracle(case, profile).items() if NAMES[name] in NAIVE
    }

    found = {name: NAIVE[name](rows, settings) for name in expected}

    assert {
        name: (found[name], value)
        for name, value in expected.items()
        if not close(found[name], value)
    } == {}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("case", IN_RANGE)
def test_windows_agree_with_the_oracle(case: dict[str, Any], profile: Profile) -> None:
    window = _window(case, profile)
    expected = oracle(case, profile)

    found = {name: window.reading(NAMES[name]).value for name in expected}

    assert {
        name: (found[name], value)
        for name, value in expected.items()
        if not close(found[name], value)
    } == {}


@pytest.mark.parametrize("case", IN_RANGE)
def test_aggregates_name_their_parts(case: dict[str, Any]) -> None:
    window = _window(case, "published")

    for aggregate, parts in {
        "consistency": (
            "outcome_consistency",
            "trajectory_distribution",
            "trajectory_sequence",
            "resource_consistency",
        ),
        "robustness": ("fault_robustness", "structure_robustness", "prompt_robustness"),
        "reliability": ("consistency", "predictability", "robustness"),
    }.items():
        present = tuple(part for part in parts if window.reading(part).value is not None)
        assert present == window.reading(aggregate).parts
        assert bool(present) == (window.reading(aggregate).value is not None)
