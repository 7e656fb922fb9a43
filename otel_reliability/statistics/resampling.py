"""The bootstrap interval of a mean."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, sqrt
from typing import Final

import numpy as np

from otel_reliability.statistics.intervals import (
    MIN_RUNS,
    NORMAL,
    Bounds,
    Interval,
    around,
    student,
    unseen,
)

RESAMPLES: Final = 1_000
SEED: Final = 0


def bootstrap(
    values: Sequence[float],
    bounds: Bounds,
    *,
    weights: Sequence[int] | None = None,
    of: str = "runs",
) -> Interval | None:
    """Return the bootstrap interval of a (weighted) mean, from the means of 1 000 seeded resamples
    with replacement.

    The percentiles are taken so far out that the interval of a normal sample is as wide as
    Student's, which plain percentiles are not for few values. Equal values leave nothing to
    resample: `unseen` then gives how far a value not seen yet could move their mean.

    >>> bootstrap([3, 1, 4, 1, 5, 9, 2, 6], Bounds(0, None))[:2]
    (2.0, 6.25)

    References: B. Efron, *Bootstrap methods*, Annals of Statistics 7, 1979; T. Hesterberg, *What
    teachers should know about the bootstrap*, The American Statistician 69, 2015 (expanded
    percentiles).
    """
    n = len(values)
    if n < MIN_RUNS:
        return None
    weighing = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    weighted = weighing * np.asarray(values, dtype=np.float64)
    mean = float(weighted.sum() / weighing.sum())
    method = f"bootstrap over {of}"
    if min(values) == max(values):
        return around(values[0], unseen(n, bounds), bounds, method)
    drawn = np.random.default_rng(SEED).multinomial(n, [1 / n] * n, RESAMPLES)
    means = np.sort((drawn @ weighted) / (drawn @ weighing))
    tail = NORMAL.cdf(-sqrt(n / (n - 1)) * student(n - 1))
    low = means[floor(tail * (RESAMPLES - 1))]
    high = means[ceil((1 - tail) * (RESAMPLES - 1))]
    return Interval(
        bounds.clamp(min(mean, float(low))), bounds.clamp(max(mean, float(high))), method
    )


def shuffled(n: int) -> list[int]:
    """Return the numbers 0 … n − 1 in a seeded random order."""
    order: list[int] = np.random.default_rng(SEED).permutation(n).tolist()
    return order
