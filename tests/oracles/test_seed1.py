"""The evaluation methodology: what its authors' code computes (`expected`), and what the page says (`published`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from otel_reliability.config import MetricSettings, Settings
from otel_reliability.metrics.base import Profile
from otel_reliability.metrics.consistency.consistency import consistency
from otel_reliability.metrics.consistency.outcome_consistency import outcome_consistency
from otel_reliability.metrics.consistency.spread import confidence_consistency, resource_consistency
from otel_reliability.metrics.consistency.trajectories import trajectory_distribution, trajectory_sequence
from otel_reliability.metrics.examples import row
from otel_reliability.metrics.predictability.brier_score import brier_score, predictability
from otel_reliability.metrics.predictability.calibration import calibration
from otel_reliability.metrics.predictability.discrimination import discrimination
from otel_reliability.metrics.predictability.risk_coverage import risk_coverage
from otel_reliability.metrics.reliability import reliability
from otel_reliability.metrics.robustness import kept_accuracy, robustness
from otel_reliability.metrics.safety import compliance, harm_severity, safety
from otel_reliability.model.row import Row
from otel_reliability.model.run import Outcome
from otel_reliability.windows.window import AgentWindow
from tests.oracles.reading import close, each
from tests.windows.runs import window_over

CASES = each("oracles/seed1.json", "cases")
IN_RANGE = [case for case in CASES if case.id != "pred_conf_outside"]
"""Evidence out of range tests the bare functions alone: it is refused before there is a row."""
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
CONDITIONS: Final = {"runs": "baseline", "fault_runs": "fault", "struct_runs": "structure", "prompt_runs": "prompt"}


def oracle(case: dict[str, Any], profile: Profile) -> dict[str, float | None]:
    """What the case expects under a profile. P_rc of tied confidences depends on their order in the reference code."""
    expected = {name: case["expected"][name] for name in NAMES}
    if profile == "published":
        return expected | case["published"]
    return {name: value for name, value in expected.items() if name != "P_rc" or not case.get("p_rc_ties")}


def _tasks(runs: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    tasks: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        tasks.setdefault(run["task_id"], []).append(run)
    return list(tasks.values())


def _resources(task: list[dict[str, Any]]) -> dict[str, list[float | None]]:
    if len(task) < 2:
        return {}
    latencies = [run["call_latencies_ms"] for run in task]
    return {
        "cost": [run["cost"] for run in task],
        "time": [run["time_s"] for run in task],
        "model_calls": [len(values) for values in latencies],
        "actions": [len(run["calls"]) for run in task],
        "errors": [sum(not call["ok"] for call in run["calls"]) for run in task],
        "latency": [sum(values) / len(values) if values else None for values in latencies],
    }


def _outcomes(case: dict[str, Any], runs: str) -> list[float]:
    return [run["outcome"] for run in case.get(runs, [])]


def measured(case: dict[str, Any], profile: Profile) -> dict[str, float | None]:
    runs, tasks = case["runs"], _tasks(case["runs"])
    paths = [[[call["name"] for call in run["calls"]] for run in task if run["outcome"] >= 1] for task in tasks]
    confidences, outcomes = [run["confidence"] for run in runs], _outcomes(case, "runs")
    judged = [run["violations"] for run in runs]
    found: dict[str, float | None] = {
        "C_out": outcome_consistency([[run["outcome"] for run in task] for task in tasks], profile),
        "C_traj_d": trajectory_distribution(paths, profile),
        "C_traj_s": trajectory_sequence(paths),
        "C_conf": confidence_consistency([[run["confidence"] for run in task] for task in tasks]),
        "C_res": resource_consistency(map(_resources, tasks)),
        "P_rc": risk_coverage(confidences, outcomes, profile),
        "P_cal": calibration(confidences, outcomes),
        "P_auroc": discrimination(confidences, outcomes),
        "P_brier": brier_score(confidences, outcomes),
        "R_fault": kept_accuracy(_outcomes(case, "fault_runs"), outcomes),
        "R_struct": kept_accuracy(_outcomes(case, "struct_runs"), outcomes),
        "R_prompt": kept_accuracy(_outcomes(case, "prompt_runs"), outcomes),
        "S_comp": compliance(judged),
        "S_harm": harm_severity(judged),
    }
    found["R_Con"] = consistency(found["C_out"], found["C_traj_d"], found["C_traj_s"], found["C_res"])
    found["R_Pred"] = predictability(found["P_brier"])
    found["R_Rob"] = robustness(found["R_fault"], found["R_struct"], found["R_prompt"])
    found["R_Saf"] = safety(found["S_comp"], found["S_harm"])
    found["R"] = reliability(found["R_Con"], found["R_Pred"], found["R_Rob"])
    return found


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("case", CASES)
def test_bare_functions_agree_with_the_oracle(case: dict[str, Any], profile: Profile) -> None:
    found, expected = measured(case, profile), oracle(case, profile)

    assert {name: (found[name], value) for name, value in expected.items() if not close(found[name], value)} == {}


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
        violations=None if run["violations"] is None else tuple(("rule", word) for word in run["violations"]),
    )


def _rows(case: dict[str, Any]) -> Iterator[Row]:
    for runs, condition in CONDITIONS.items():
        yield from (_row(run, condition) for run in case.get(runs, []))


def _window(case: dict[str, Any], profile: Profile) -> AgentWindow:
    return window_over(_rows(case), Settings(metrics=MetricSettings(profile=profile)))


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("case", IN_RANGE)
def test_windows_agree_with_the_oracle(case: dict[str, Any], profile: Profile) -> None:
    window, expected = _window(case, profile), oracle(case, profile)

    found = {name: window.reading(NAMES[name]).value for name in expected}

    assert {name: (found[name], value) for name, value in expected.items() if not close(found[name], value)} == {}


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
