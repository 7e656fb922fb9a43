"""Two shares compared within strata, so that their mix cannot be the difference."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import TypeAlias

Share: TypeAlias = tuple[int, int]
"""So many, of so many."""


def difference_within(strata: Iterable[tuple[Share, Share]]) -> float:
    """Return by how many standard deviations the later shares differ from the earlier ones within
    strata (Mantel and Haenszel's test, without a correction for continuity); 0 where no stratum
    could tell. Each stratum has at least one of either side.

    >>> difference_within([((5, 10), (5, 10)), ((1, 10), (1, 10))])
    0.0
    >>> round(difference_within([((2, 10), (8, 10))]), 2)
    2.62

    References: N. Mantel, W. Haenszel, *Statistical aspects of the analysis of data from
    retrospective studies of disease*, JNCI 22, 1959.
    """
    deviation = variance = 0.0
    for (before, earlier), (after, later) in strata:
        every = earlier + later
        having = before + after
        deviation += after - having * later / every
        variance += earlier * later * having * (every - having) / (every**2 * (every - 1))
    return deviation / sqrt(variance) if variance else 0.0
