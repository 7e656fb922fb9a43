"""The evaluation methodology: what its authors' code computes (`expected`), and what the page says (`published`)."""

from __future__ import annotations

from typing import Any

import pytest

from otel_reliability.metrics.consistency import (
    confidence_consistency,
    consistency,
    outcome_consistency,
    resource_consistency,
    trajectory_distribution,
    trajectory_sequence,
)
from otel_reliability.metrics.predictability import (
    brier_score,
    calibration,
    discrimination,
    predictability,
    risk_coverage,
)
from otel_reliability.metrics.profiles import Profile
from otel_reliability.metrics.reliability import reliability
from otel_reliability.metrics.robustness import kept_accuracy, robustness
from otel_reliability.metrics.safety import compliance, harm_severity, safety
from tests.oracles.reading import close, each

CASES = each("oracles/seed1.json", "cases")
PROFILES: tuple[Profile, ...] = ("published", "hal-harness")
METRICS = (
    "C_out",
    "C_traj_d",
    "C_traj_s",
    "C_conf",
    "C_res",
    "R_Con",
    "P_rc",
    "P_cal",
    "P_auroc",
    "P_brier",
    "R_Pred",
    "R_fault",
    "R_struct",
    "R_prompt",
    "R_Rob",
    "S_comp",
    "S_harm",
    "R_Saf",
    "R",
)


def oracle(case: dict[str, Any], profile: Profile) -> dict[str, float | None]:
    """What the case expects under a profile. P_rc of tied confidences depends on their order in the reference code."""
    expected = {name: case["expected"][name] for name in METRICS}
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
    """All metrics of a case by the bare functions."""
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
def test_bare_functions_agree(case: dict[str, Any], profile: Profile) -> None:
    """Every metric on plain sequences agrees with the oracle to 1e-9, and has no value exactly where the oracle has none."""
    found, expected = measured(case, profile), oracle(case, profile)

    assert {name: (found[name], value) for name, value in expected.items() if not close(found[name], value)} == {}
