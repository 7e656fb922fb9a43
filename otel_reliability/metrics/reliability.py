"""reliability (R): the overall number of the evaluation methodology."""

from __future__ import annotations

from otel_reliability.metrics.means import mean_of_present


def reliability(consistency: float | None, predictability: float | None, robustness: float | None) -> float | None:
    """R: the mean of R_Con, R_Pred and R_Rob, over those that exist. Safety is no part of it.

    A missing dimension silently raises or lowers R, so read beside it which ones it was made of.

    >>> round(reliability(0.9, 0.75, 0.6), 4), reliability(None, 0.975, None)
    (0.75, 0.975)
    """
    return mean_of_present((consistency, predictability, robustness))
