"""pass_at_k: would at least one of k attempts succeed?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import comb

from otel_reliability.metrics.outcomes import passes


def any_of(passed: int, runs: int, k: int) -> Fraction:
    """1 − C(n − c, k) / C(n, k): the chance that k of the n attempts, drawn without replacement, hold a pass.

    >>> any_of(1, 4, 2)
    Fraction(1, 2)
    """
    return 1 - Fraction(comb(runs - passed, k), comb(runs, k))


def pass_at_k(tasks: Iterable[Sequence[float]], k: int) -> float | None:
    """pass@k, unbiased: the mean of 1 − C(n − c, k)/C(n, k) over the tasks with at least k attempts; None without any.

    `tasks` holds the outcomes of the attempts at each task; an outcome below 1 is a failure. Grows with k.

    >>> pass_at_k([[1, 0, 0, 0], [1, 1, 1, 1]], 2)
    0.75
    """
    found = [any_of(passes(outcomes), len(outcomes), k) for outcomes in tasks if len(outcomes) >= k]
    return float(sum(found) / len(found)) if found else None
