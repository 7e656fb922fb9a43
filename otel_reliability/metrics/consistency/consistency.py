"""consistency (R_Con): how repeatable the agent's work is, in one number."""

from __future__ import annotations

from otel_reliability.metrics._support.sums import mean_of_present
from otel_reliability.metrics.base import Composite
from otel_reliability.model.reading import MetricSpec


class Consistency(Composite):
    """R_Con = ⅓ C_out + ⅓ mean(C_traj_d, C_traj_s) + ⅓ C_res, renormalised over what exists. The
    reading names these parts.

    Weights go by category: the two trajectory metrics share one third, so that they do not weigh
    double. An agent that fails every time in the same way has C_out = 1 and no trajectories: read
    R_Con beside the pass rate.

    >>> from otel_reliability.model.reading import Reading
    >>> parts = {"outcome_consistency": Reading(1.0, 8), "resource_consistency": Reading(0.5, 9)}
    >>> Consistency().derive(parts)
    Reading(value=0.75, runs=9, parts=('outcome_consistency', 'resource_consistency'), note='')
    >>> round(Consistency().formula(0.0, 0.8, 0.6, 1.0), 4)
    0.5667
    """

    spec = MetricSpec(
        name="consistency",
        title="Consistency (R_Con)",
        family="consistency",
        direction="higher",
        description=(
            "How repeatable the agent's work is: outcomes, trajectories and resources, a "
            "third each."
        ),
        formula=(
            "⅓ C_out + ⅓ mean(C_traj_d, C_traj_s) + ⅓ C_res, renormalised over the parts that exist"
        ),
        required_data="any of its parts",
        source="HAL reliability, evaluation methodology: R_Con",
        improve="Inspect its lowest part first.",
        interval="comparison",
    )
    needs = (
        "outcome_consistency",
        "trajectory_distribution",
        "trajectory_sequence",
        "resource_consistency",
    )

    def formula(self, *parts: float | None) -> float | None:
        outcome, *trajectories, resource = parts
        return mean_of_present((outcome, mean_of_present(trajectories), resource))
