"""Sequential tests of a mean, valid at every look: a decision may be made as soon as there is one,
however often the data are examined.

A bet against "the mean is at most m" of values x in [low, high] multiplies its wealth by
1 + λ (x − m), with λ between 0 and 1 / (m − low). If the mean is at most m, no bet has an expected
gain, so the wealth of any mixture of bets exceeds 1/α at some time with a probability of at most α
(Ville). The mixture here is over a grid of λ. With values of 0 and 1 it is the mixture of the
likelihood ratios of all rates above m against m.

Values may come from several tasks with a mean each, if every round has one value of each task: the
wealth of a round is multiplied by Π (1 + λ (x_t − m)), whose expectation is at most
(1 + λ (mean of the tasks' means − m))^T (the geometric mean is at most the arithmetic one). So what
is tested is the mean over tasks, at the ends of rounds. Within a round, its missing values count as
the worst ones: the wealth at the end of the round cannot be less.

References: I. Waudby-Smith, A. Ramdas, *Estimating means of bounded random variables by betting*,
JRSS B 86, 2024 (section 5: mixtures of bets on a grid); J. Ville, *Étude critique de la notion de
collectif*, 1939.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from math import log
from typing import Final, NamedTuple

import numpy as np

BETS: Final = 100
"""Bets of a mixture."""
_SHARES: Final = np.arange(1, BETS + 1) / BETS
"""Each bet as a share of the largest one."""
_EDGES: Final = np.arange(BETS + 1) / BETS
_LOG_WEIGHTS: Final = np.log(np.diff((_EDGES + 1 - np.sqrt(1 - _EDGES)) / 2))
"""Weight of each bet: half is spread evenly, half more densely towards the largest bet, which wins
soonest where the mean lies at its bound.
"""
STEPS: Final = 40
"""Halvings by which the end of an interval is found."""


class SequentialDecision(enum.Enum):
    """The result of a sequential test."""

    PASS = "pass"  # noqa: S105  not a password
    FAIL = "fail"
    UNDECIDED = "undecided"


class Range(NamedTuple):
    """Least and greatest possible value of one observation."""

    low: float
    high: float


SHARE: Final = Range(0.0, 1.0)


def log_wealth(counts: Mapping[float, int], mean: float, low: float) -> float:
    """Return the logarithm of the wealth of the bets against "the mean is at most `mean`", after so
    many observations of each value, none below `low`.

    >>> round(log_wealth({1.0: 28}, 0.9, 0.0), 2)
    2.1
    """
    if mean <= low:
        return float("inf") if any(n and value > mean for value, n in counts.items()) else 0.0
    bets = _SHARES / (mean - low)
    wealth = _LOG_WEIGHTS.copy()
    with np.errstate(divide="ignore"):
        for value, number in counts.items():
            if number:
                wealth += number * np.log(np.maximum(1 + bets * (value - mean), 0.0))
    most = float(wealth.max())
    return most if most == float("-inf") else most + log(float(np.exp(wealth - most).sum()))


def decide(
    counts: Mapping[float, int],
    mean: float,
    alpha: float,
    *,
    missing: int = 0,
    within: Range = SHARE,
) -> SequentialDecision:
    """Return PASS if the mean is shown to be at least `mean`, FAIL if it is shown to be less.

    Either is wrong with a probability of at most `alpha`, over all looks together: only one of the
    two claims is false. `missing`: observations that the current round still lacks.

    >>> decide({1.0: 39}, 0.9, 0.05), decide({0.0: 4, 1.0: 1}, 0.9, 0.05)
    (<SequentialDecision.PASS: 'pass'>, <SequentialDecision.FAIL: 'fail'>)
    >>> decide({0.0: 4, 1.0: 1}, 0.9, 0.05, missing=5)
    <SequentialDecision.UNDECIDED: 'undecided'>
    """
    limit = -log(alpha)
    if mean <= within.low:
        return SequentialDecision.PASS
    worst = _with(counts, within.low, missing)
    if log_wealth(worst, mean, within.low) >= limit:
        return SequentialDecision.PASS
    best = _mirrored(_with(counts, within.high, missing))
    if log_wealth(best, -mean, -within.high) >= limit:
        return SequentialDecision.FAIL
    return SequentialDecision.UNDECIDED


def interval(
    counts: Mapping[float, int], alpha: float, *, missing: int = 0, within: Range = SHARE
) -> tuple[float, float]:
    """Return the confidence interval of the mean at this look: the means that neither bet rejects,
    at `alpha` / 2 each. The intervals of all looks hold the mean together, with a probability of at
    least 1 − `alpha`.

    >>> [round(end, 2) for end in interval({0.0: 2, 1.0: 18}, 0.05)]
    [0.6, 1.0]
    """
    low = _end(_with(counts, within.low, missing), alpha / 2, within)
    mirror = Range(-within.high, -within.low)
    high = -_end(_mirrored(_with(counts, within.high, missing)), alpha / 2, mirror)
    return low, high


def _end(counts: Mapping[float, int], alpha: float, within: Range) -> float:
    """Return the least mean that is not rejected from below, by halving: the wealth falls as the
    mean rises.
    """
    rejected, kept = within
    for _ in range(STEPS):
        middle = (rejected + kept) / 2
        if log_wealth(counts, middle, within.low) >= -log(alpha):
            rejected = middle
        else:
            kept = middle
    return rejected


def _with(counts: Mapping[float, int], value: float, number: int) -> Mapping[float, int]:
    return {**counts, value: counts.get(value, 0) + number}


def _mirrored(counts: Mapping[float, int]) -> Mapping[float, int]:
    return {-value: number for value, number in counts.items()}
