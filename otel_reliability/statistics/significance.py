"""p-values: of a normal deviation, and of several tests at once."""

from __future__ import annotations

from collections.abc import Sequence
from math import erfc, sqrt


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for their number: the probability of any false rejection at a level is then at most that level.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]

    References: S. Holm, *A simple sequentially rejective multiple test procedure*, Scandinavian Journal of Statistics 6,
    1979.
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, greatest = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        greatest = max(greatest, min(1.0, p_values[i] * (len(p_values) - rank)))
        adjusted[i] = greatest
    return adjusted


def two_sided(deviations: float) -> float:
    """Return the probability that a normal variable is at least this many standard deviations from its mean.

    >>> two_sided(1.96)
    0.05
    """
    return erfc(abs(deviations) / sqrt(2))
