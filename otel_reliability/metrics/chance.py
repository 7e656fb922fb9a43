"""Chances, and what becomes of them when there are several."""

from __future__ import annotations

from collections.abc import Sequence
from math import erfc, sqrt


def holm(chances: Sequence[float]) -> list[float]:
    """The chances adjusted for their number: below a level, the chance of any false word is below that level.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]

    References: S. Holm, *A simple sequentially rejective multiple test procedure*, Scandinavian Journal of Statistics 6,
    1979.
    """
    order = sorted(range(len(chances)), key=lambda i: chances[i])
    adjusted, greatest = [0.0] * len(chances), 0.0
    for place, i in enumerate(order):
        greatest = max(greatest, min(1.0, chances[i] * (len(chances) - place)))
        adjusted[i] = greatest
    return adjusted


def two_sided(deviations: float) -> float:
    """The chance that a normal number is at least so many standard deviations from its mean, on either side.

    >>> two_sided(1.96)
    0.05
    """
    return erfc(abs(deviations) / sqrt(2))
