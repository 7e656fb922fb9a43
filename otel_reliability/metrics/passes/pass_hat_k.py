"""pass_hat_k (pass^k): would all of k attempts succeed?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import comb

from otel_reliability.metrics.outcomes import passes


def all_of(passed: int, runs: int, k: int) -> Fraction:
    """C(c, k) / C(n, k): the chance that k of the n attempts, drawn without replacement, are all passes.

    >>> all_of(3, 4, 2)
    Fraction(1, 2)
    """
    return Fraction(comb(passed, k), comb(runs, k))


def pass_hat_k(tasks: Iterable[Sequence[float]], k: int) -> float | None:
    """pass^k, unbiased: the mean of C(c, k)/C(n, k) over the tasks with at least k attempts; None without any.

    `tasks` holds the outcomes of the attempts at each task; an outcome below 1 is a failure. Falls as k grows; at k = 1 it
    is the mean pass rate.

    >>> pass_hat_k([[1, 1, 1, 0], [1, 1, 1, 1]], 2)
    0.75
    """
    found = [all_of(passes(outcomes), len(outcomes), k) for outcomes in tasks if len(outcomes) >= k]
    return float(sum(found) / len(found)) if found else None
