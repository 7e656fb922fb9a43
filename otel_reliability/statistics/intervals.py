"""95 % confidence intervals of a value that rests on few runs.

Every interval contains its own value, and there is none below 5 runs. Wilson's interval suits
shares, the bootstrap (`resampling`) means, the delete-one jackknife every value that results from
comparing runs with one another.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot, sqrt
from statistics import NormalDist
from typing import Final, NamedTuple

MIN_RUNS: Final = 5
LEVEL: Final = 0.95

NORMAL: Final = NormalDist()
Z: Final = NORMAL.inv_cdf((1 + LEVEL) / 2)


class Interval(NamedTuple):
    """Bounds of a 95 % confidence interval, and the method that gave them."""

    low: float
    high: float
    method: str

    @property
    def error(self) -> float:
        """Standard error of a normal variable with an interval of this width."""
        return (self.high - self.low) / (2 * Z)

    def including(self, value: float) -> Interval:
        """Return the interval, extended to a value that rounding has left outside.

        >>> Interval(0.0, 0.3, "jackknife").including(0.1 + 0.2).high
        0.3
        """
        return Interval(min(self.low, value), max(self.high, value), self.method)


class Bounds(NamedTuple):
    """Least and greatest value that a number can have; None: unbounded."""

    low: float | None
    high: float | None

    @property
    def width(self) -> float | None:
        """Distance between the bounds, None where one is missing."""
        return None if self.low is None or self.high is None else self.high - self.low

    def clamp(self, value: float) -> float:
        """Return the nearest number within the bounds."""
        value = value if self.low is None else max(self.low, value)
        return value if self.high is None else min(self.high, value)


SHARE: Final = Bounds(0.0, 1.0)


def wilson(count: int, runs: int) -> tuple[float, float]:
    """Return the Wilson score interval of a share: (p̂ + z²/2n ± z √(p̂(1 − p̂)/n + z²/4n²)) / (1 +
    z²/n), two-sided.

    It stays within [0, 1] and keeps its coverage for few runs and for shares near 0 and 1, where p̂
    ± z √(p̂(1 − p̂)/n) does not. Five passes of five are no proof of 100 %:

    >>> low, high = wilson(5, 5)
    >>> round(low, 3), high
    (0.566, 1.0)

    References: E. B. Wilson, *Probable Inference, the Law of Succession, and Statistical
    Inference*, JASA 22 (1927).
    """
    share = count / runs
    spread = Z * Z / runs
    middle = share + spread / 2
    reach = Z * sqrt(share * (1 - share) / runs + spread / (4 * runs))
    low = (middle - reach) / (1 + spread)
    high = (middle + reach) / (1 + spread)
    return (0.0 if count == 0 else low, 1.0 if count == runs else high)


def jackknife(value: float, without: Sequence[float], runs: int, bounds: Bounds) -> Interval | None:
    """Return the interval from the values without each run in turn (or without each of at least 5
    blocks of runs).

    Its half-width is Student's t times the standard error, to which half the estimated bias is
    added at right angles (an entropy's error is mostly bias where the paths are even), and at least
    1.5/n of the range: the effect of one or two more runs. A bootstrap is unsuitable: its samples
    contain runs twice, whose pairs are equal, so that its interval lies next to the value.

    >>> jackknife(0.5, [0.4, 0.5, 0.6, 0.5, 0.5], 5, SHARE)[:2]
    (0.1497, 0.8503)

    References: B. Efron, C. Stein, *The jackknife estimate of variance*, Annals of Statistics 9,
    1981.
    """
    n = len(without)
    if min(n, runs) < MIN_RUNS:
        return None
    if min(without) == max(without) == value:
        return around(value, unseen(runs, bounds), bounds, "jackknife")
    mean = sum(without) / n
    squares = sum((one - mean) ** 2 for one in without)
    error = hypot(sqrt((n - 1) / n * squares), (n - 1) * (mean - value) / 2)
    return around(
        value, max(student(n - 1) * error, 1.5 * (bounds.width or 0.0) / runs), bounds, "jackknife"
    )


def unseen(runs: int, bounds: Bounds) -> float | None:
    """Return how far a number could be from its value where all runs are equal, because of runs not
    seen yet.

    With 95 % confidence, n equal runs leave it possible that a share p = 1 − .05^(1/n) of runs is
    unlike them; then 2 p (1 − p) of the pairs differ, at most half. None for an unbounded number.

    >>> unseen(5, SHARE), unseen(100, SHARE)
    (0.4951, 0.0573)
    """
    p = min(0.5, 1 - (1 - LEVEL) ** (1 / runs))
    return None if bounds.width is None else 2 * p * (1 - p) * bounds.width


def student(freedom: int) -> float:
    """Return the two-sided 95 % quantile of Student's t, to .5 % from 4 degrees of freedom
    (Cornish–Fisher expansion).

    >>> student(4), student(30)
    (2.769, 2.042)
    """
    z = Z
    v = freedom
    first = (z**3 + z) / (4 * v)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
    return z + first + second + third


def around(value: float, half: float | None, bounds: Bounds, method: str) -> Interval | None:
    """Return the interval of this half-width around a value, clamped to the bounds; None without a
    half-width.
    """
    if half is None:
        return None
    return Interval(
        min(value, bounds.clamp(value - half)), max(value, bounds.clamp(value + half)), method
    )
