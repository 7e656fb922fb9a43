"""brier_score (P_brier): how close the agent's confidence comes to what happened."""

from __future__ import annotations

from collections.abc import Sequence

from otel_reliability.metrics.means import mean_of_present
from otel_reliability.metrics.predictability.samples import samples


def squared_error(confidence: float, success: bool) -> float:
    """(c − y)² of one attempt.

    >>> squared_error(0.5, True)
    0.25
    """
    return (confidence - success) ** 2


def brier_score(confidences: Sequence[float | None], outcomes: Sequence[float]) -> float | None:
    """P_brier = 1 − mean of (c − y)², pooled over attempts of all tasks. Higher is better; 0.75 is a constant ½.

    Attempts without a confidence are left out; an outcome below 1 is a failure. None where no attempt is left.

    >>> brier_score([0.9, 0.2], [1, 0])
    0.975
    """
    error = mean_of_present(squared_error(*sample) for sample in samples(confidences, outcomes))
    return None if error is None else 1.0 - error
