"""Within which bounds a share lies that was seen in a few runs only."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final

LEVEL: Final = 0.95


def wilson(count: int, runs: int, level: float = LEVEL) -> tuple[float, float]:
    """The Wilson score interval of a share: (p̂ + z²/2n ± z √(p̂(1 − p̂)/n + z²/4n²)) / (1 + z²/n), two-sided.

    It holds the share itself, stays within [0, 1], and is honest where the usual p̂ ± z √(p̂(1 − p̂)/n) is not: for few runs,
    and for shares near 0 and 1. Five passes of five are no proof of 100 %:

    >>> low, high = wilson(5, 5)
    >>> round(low, 3), high
    (0.566, 1.0)

    References: E. B. Wilson, *Probable Inference, the Law of Succession, and Statistical Inference*, JASA 22 (1927).
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    share, spread = count / runs, z * z / runs
    middle = share + spread / 2
    reach = z * math.sqrt(share * (1 - share) / runs + spread / (4 * runs))
    low, high = (middle - reach) / (1 + spread), (middle + reach) / (1 + spread)
    return (0.0 if count == 0 else low, 1.0 if count == runs else high)
