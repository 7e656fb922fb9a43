"""What is left of an agent's accuracy under a perturbation: the one formula behind the three robustness metrics."""

from __future__ import annotations

from collections.abc import Sequence

from otel_reliability.metrics.outcomes import passes


def kept_share(passes: int, runs: int, baseline_passes: int, baseline_runs: int) -> float | None:
    """min(accuracy under the condition / baseline accuracy, 1); None without runs of both or a baseline above 0.

    >>> kept_share(2, 4, 4, 4), kept_share(4, 4, 1, 4), kept_share(2, 2, 0, 2)
    (0.5, 1.0, None)
    """
    if not runs or not baseline_passes:
        return None
    return min(passes / runs / (baseline_passes / baseline_runs), 1.0)


def kept_accuracy(perturbed: Sequence[float], baseline: Sequence[float]) -> float | None:
    """The share of its baseline accuracy that the agent keeps, from the outcomes of its runs under a condition and without.

    This is R_fault, R_struct and R_prompt, by what disturbed the runs. Accuracies are over the runs of all tasks together;
    an outcome below 1 is a failure.

    >>> kept_accuracy([1, 0, 0, 0], [1, 1, 1, 1])
    0.25
    """
    return kept_share(passes(perturbed), len(perturbed), passes(baseline), len(baseline))
