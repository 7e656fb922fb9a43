"""Recognizes tasks that come in blocks: then observations are not exchangeable, and there is no
result on change.

A benchmark that runs task 1 eight times, then task 2 eight times, changes its numbers every eight
observations although the agent stays the same. Neighbours then share a task far more often than
chance would have it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from itertools import pairwise
from math import sqrt
from typing import Final

MIN_OBSERVATIONS: Final = 20
SIGNIFICANT: Final = 4.0
"""Standard deviations above the expected number of equal neighbours, under a random order."""

MATERIAL: Final = 0.2
"""Share of the possible excess of equal neighbours. Blocks of two reach .5; a mix that changes once
from six tasks to six others, which is a change to report, .09.
"""


def in_blocks(tasks: Iterable[Hashable]) -> bool:
    """Return whether equal tasks follow one another far more often than in a random order of the
    same tasks.

    With n observations of which n_t have task t, a random order has Σ n_t (n_t - 1) / n equal
    neighbours, with the variance of the runs test for several categories.

    >>> in_blocks([1] * 8 + [2] * 8 + [3] * 8), in_blocks([1, 2, 3] * 8), in_blocks([1] * 24)
    (True, False, False)

    References: F. Barton, F. David, *Multiple runs*, Biometrika 44, 1957.
    """
    order = list(tasks)
    n = len(order)
    counts = Counter(order).values()
    if n < MIN_OBSERVATIONS or len(counts) < 2:
        return False
    squares = sum(c * c for c in counts)
    cubes = sum(c * c * c for c in counts)
    expected = (squares - n) / n
    variance = (squares * (squares + n * (n + 1)) - 2 * n * cubes - n**3) / (n * n * (n - 1))
    excess = sum(one == other for one, other in pairwise(order)) - expected
    return excess >= SIGNIFICANT * sqrt(variance) and excess >= MATERIAL * (n - 1 - expected)
