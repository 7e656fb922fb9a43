"""robustness (R_Rob): how much of its accuracy the agent keeps when it is disturbed, in one number."""

from __future__ import annotations

from otel_reliability.metrics.means import mean_of_present


def robustness(fault: float | None, structure: float | None, prompt: float | None) -> float | None:
    """R_Rob: the mean of R_fault, R_struct and R_prompt, over those that exist.

    >>> robustness(0.5, 0.75, 0.25), robustness(None, 0.5, None)
    (0.5, 0.5)
    """
    return mean_of_present((fault, structure, prompt))
