"""How far a value could lie from the truth, given how few runs stand behind it: by resampling the runs.

The bootstrap for means; the delete-one jackknife for everything whose value comes of how runs compare with one another. At
95 %, none under 5 runs, and each interval holds its own value.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, hypot, sqrt
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np

MIN_RUNS: Final = 5
RESAMPLES: Final = 1_000
LEVEL: Final = 0.95

_NORMAL: Final = NormalDist()
Z: Final = _NORMAL.inv_cdf((1 + LEVEL) / 2)


class Interval(NamedTuple):
    """Where the true value lies with 95 % confidence, and by which method that was found."""

    low: float
    high: float
    method: str

    @property
    def error(self) -> float:
        """The standard error that a normal interval of this width would have."""
        return (self.high - self.low) / (2 * Z)


class Bounds(NamedTuple):
    """Between which bounds a number can lie; None: no bound."""

    low: float | None
    high: float | None

    @property
    def width(self) -> float | None:
        """How far apart they are, None where one is missing."""
        return None if self.low is None or self.high is None else self.high - self.low

    def clamp(self, value: float) -> float:
        """The nearest number within."""
        value = value if self.low is None else max(self.low, value)
        return value if self.high is None else min(self.high, value)


SHARE: Final = Bounds(0.0, 1.0)


def bootstrap(
    values: Sequence[float], bounds: Bounds, *, weights: Sequence[int] | None = None, of: str = "runs", seed: int = 0
) -> Interval | None:
    """The bootstrap interval of a (weighted) mean: what means come of 1 000 resamples of the values, with replacement.

    The percentiles are taken as far out as makes the interval of a normal sample as wide as Student's, which plain
    percentiles are not for few values. Of values that are all the same there is nothing to resample: `unseen` says how far
    a value not seen yet could move their mean.

    >>> bootstrap([3, 1, 4, 1, 5, 9, 2, 6], Bounds(0, None))[:2]
    (2.0, 6.25)

    References: B. Efron, *Bootstrap methods*, Annals of Statistics 7, 1979; T. Hesterberg, *What teachers should know about
    the bootstrap*, The American Statistician 69, 2015 (expanded percentiles).
    """
    n = len(values)
    if n < MIN_RUNS:
        return None
    weighing = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    weighed = weighing * np.asarray(values, dtype=np.float64)
    mean, method = float(weighed.sum() / weighing.sum()), f"bootstrap over {of}"
    if min(values) == max(values):
        return _around(values[0], unseen(n, bounds), bounds, method)
    drawn = np.random.default_rng(seed).multinomial(n, [1 / n] * n, RESAMPLES)
    means = np.sort((drawn @ weighed) / (drawn @ weighing))
    tail = _NORMAL.cdf(-sqrt(n / (n - 1)) * student(n - 1))
    low, high = means[floor(tail * (RESAMPLES - 1))], means[ceil((1 - tail) * (RESAMPLES - 1))]
    return Interval(bounds.clamp(min(mean, float(low))), bounds.clamp(max(mean, float(high))), method)


def jackknife(value: float, without: Sequence[float], runs: int, bounds: Bounds) -> Interval | None:
    """The interval from what the value would be without each run in turn (or without each of at least 5 blocks of runs).

    Its half-width is Student's t times the standard error, to which half the estimated bias is added at right angles (an
    entropy's error is mostly bias where the paths are even), and at least 1.5/n of the range: what one or two runs more could
    do. A bootstrap would not do: its samples hold runs twice, whose pairs are alike, so that its interval lies beside the value.

    >>> jackknife(0.5, [0.4, 0.5, 0.6, 0.5, 0.5], 5, SHARE)[:2]
    (0.1497, 0.8503)

    References: B. Efron, C. Stein, *The jackknife estimate of variance*, Annals of Statistics 9, 1981.
    """
    n = len(without)
    if min(n, runs) < MIN_RUNS:
        return None
    if min(without) == max(without) == value:
        return _around(value, unseen(runs, bounds), bounds, "jackknife")
    mean = sum(without) / n
    squares = sum((one - mean) ** 2 for one in without)
    error = hypot(sqrt((n - 1) / n * squares), (n - 1) * (mean - value) / 2)
    return _around(value, max(student(n - 1) * error, 1.5 * (bounds.width or 0.0) / runs), bounds, "jackknife")


def unseen(runs: int, bounds: Bounds) -> float | None:
    """How far a number could be from what it is where all runs are alike, because of what was not seen yet.

    What n like runs leave possible with 95 % confidence is that a share p = 1 − .05^(1/n) of runs is unlike them; then
    2 p (1 − p) of the pairs differ, at most half. None for a number without bounds, about which nothing can be said.

    >>> unseen(5, SHARE), unseen(100, SHARE)
    (0.4951, 0.0573)
    """
    p = min(0.5, 1 - (1 - LEVEL) ** (1 / runs))
    return None if bounds.width is None else 2 * p * (1 - p) * bounds.width


def student(freedom: int) -> float:
    """The two-sided 95 % quantile of Student's t, to .5 % from 4 degrees of freedom on (Cornish and Fisher's expansion).

    >>> student(4), student(30)
    (2.769, 2.042)
    """
    z, v = Z, freedom
    first = (z**3 + z) / (4 * v)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
    return z + first + second + third


def _around(value: float, half: float | None, bounds: Bounds, method: str) -> Interval | None:
    if half is None:
        return None
    return Interval(min(value, bounds.clamp(value - half)), max(value, bounds.clamp(value + half)), method)
