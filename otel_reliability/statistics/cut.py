"""The best cut of a sequence of runs into an earlier and a later part whose shares of failures
differ, tested as the best of all cuts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]

MIN_SIDE: Final = 3
"""Runs on either side of a cut, at least."""
HOPELESS: Final = 1.5
"""Gain in log-likelihood below which the best cut is no finding even if it were the only one: its
p-value would be about 0.08.
"""
_ROUNDING: Final = 1e-9


class Cut(NamedTuple):
    """A cut: the number of runs before it, and the probability of one at least as good, anywhere,
    if the same failures came in random order.
    """

    at: int
    p: float


def best_cut(failed: Sequence[bool]) -> Cut | None:
    """Return the cut whose two sides, each with a failure rate of its own, explain the sequence
    best; None where no cut is worth testing.

    The p-value is exact, given the number of failures: it counts the orders in which any cut is as
    good, so it needs no correction for the cuts tried.

    >>> best_cut([False] * 20 + [True] * 20)
    Cut(at=20, p=0.0000)
    >>> found = best_cut([False] * 5 + [True] * 5)
    >>> found.at, round(found.p * 252)  # the two orders that part them wholly
    (5, 2)
    >>> best_cut([False, True] * 20), best_cut([True] * 40), best_cut([False] * 2 + [True] * 3)
    (None, None, None)

    References: K. J. Worsley, *The power of likelihood ratio and cumulative sum tests for a change
    in a binomial probability*, Biometrika 70, 1983.
    """
    runs = len(failed)
    failures = sum(failed)
    cuts = np.arange(MIN_SIDE, runs - MIN_SIDE + 1)
    if not len(cuts) or not 0 < failures < runs:
        return None
    numbers = np.arange(runs + 1, dtype=np.float64)
    logs: Floats = numbers * np.log(np.maximum(numbers, 1.0))
    before = np.cumsum(np.array(failed, dtype=np.int64))[cuts - 1]
    likelihoods = _likelihood(logs, before, cuts, failures)
    best = int(likelihoods.argmax())
    uncut = float(logs[failures] + logs[runs - failures] - logs[runs])
    if likelihoods[best] - uncut < HOPELESS:
        return None
    least = float(likelihoods[best]) - _ROUNDING
    return Cut(int(cuts[best]), _share_of_orders(logs, failures, least))


def _likelihood(logs: Floats, before: Counts, at: Counts | int, failures: int) -> Floats:
    """Return the log-likelihood of cuts at these runs, with so many of the failures before them;
    `logs` holds n log n of every number.
    """
    rest = len(logs) - 1 - at
    after = failures - before
    of_first = logs[before] + logs[at - before] - logs[at]
    return of_first + logs[after] + logs[rest - after] - logs[rest]


def _share_of_orders(logs: Floats, failures: int, least: float) -> float:
    """Return the share of orders in which some cut has at least this likelihood: run by run, the
    probability of each number of failures so far, less the orders that had such a cut.
    """
    runs = len(logs) - 1
    so_far = np.arange(failures + 1)
    without = np.zeros(failures + 1)
    without[0] = 1.0
    found = 0.0
    for at in range(1, runs - MIN_SIDE + 1):
        fails = np.minimum((failures - so_far) / (runs - at + 1), 1.0)
        moved = without * (1.0 - fails)
        moved[1:] += (without * fails)[:-1]
        if at >= MIN_SIDE:
            first = max(0, failures - (runs - at))
            possible = so_far[first : at + 1]
            as_good = possible[_likelihood(logs, possible, at, failures) >= least]
            found += float(moved[as_good].sum())
            moved[as_good] = 0.0
        without = moved
    return min(found, 1.0)
