"""variance_amplification: how flaky are the attempts?"""

from __future__ import annotations

from math import isqrt


def variance_amplification(passed: int, runs: int) -> int | None:
    """100 · (population standard deviation of the attempts) / 0.5, rounded half away from zero; None without attempts.

    0: all end alike; 100: half and half. With c passes of n it is 200·√(c(n − c)) / n, rounded in whole numbers.

    >>> variance_amplification(3, 4), variance_amplification(2, 4), variance_amplification(4, 4)
    (87, 100, 0)
    """
    if not runs:
        return None
    doubled = isqrt(160_000 * passed * (runs - passed) // (runs * runs))
    return (doubled + 1) // 2
