"""p-values: of a normal deviation, of several tests at once, and of the numbers of two groups of
runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import erfc, hypot, sqrt
from typing import Final, TypeAlias

from otel_reliability.statistics.intervals import Interval

SIGNIFICANCE_LEVEL: Final = 0.05
"""The adjusted p-value up to which a difference of two groups of runs is larger than chance."""
OF_NUMBERS: Final = 0.01
"""The part of it that the numbers of two groups have; the features of their runs have the rest."""

Estimate: TypeAlias = tuple[float, Interval]
"""A number of a group of runs, and its interval."""


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for their number: the probability of any false rejection at a level is then
    at most that level.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]

    References: S. Holm, *A simple sequentially rejective multiple test procedure*, Scandinavian
    Journal of Statistics 6, 1979.
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    greatest = 0.0
    for rank, i in enumerate(order):
        greatest = max(greatest, min(1.0, p_values[i] * (len(p_values) - rank)))
        adjusted[i] = greatest
    return adjusted


def two_sided(deviations: float) -> float:
    """Return the probability that a normal variable is at least this many standard deviations from
    its mean.

    >>> two_sided(1.96)
    0.05
    """
    return erfc(abs(deviations) / sqrt(2))


def p_values_of(before: Mapping[str, Estimate], after: Mapping[str, Estimate]) -> dict[str, float]:
    """Return the p-value of the difference of each number that both groups have.

    A difference is weighed by the standard errors of its two intervals. With several numbers one of
    them would differ by chance alone: the p-values are adjusted by Holm's rule.

    >>> entropies = (0.0, Interval(0.0, 0.1, "jackknife")), (0.32, Interval(0.2, 0.4, "jackknife"))
    >>> p_values_of(
    ...     *(
    ...         {"path_entropy": each, "loops": (0.0, Interval(0.0, 0.0, "bootstrap"))}
    ...         for each in entropies
    ...     )
    ... )
    {'path_entropy': 0.00, 'loops': 1.0}
    """
    names = [name for name in before if name in after]
    adjusted = holm([_p(before[name], after[name]) for name in names])
    return dict(zip(names, adjusted, strict=True))


def _p(before: Estimate, after: Estimate) -> float:
    (old, one), (new, other) = before, after
    error = hypot(one.error, other.error)
    if not error:
        return 1.0 if old == new else 0.0
    return two_sided((new - old) / error)
