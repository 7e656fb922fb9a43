"""Hypergeometric probabilities: how many of a part have something, if those that have it were drawn
at random.
"""

from __future__ import annotations

from math import comb


def upper_tail(having: int, part: int, all_having: int, every: int) -> float:
    """Return the probability that at least so many of a part have something that so many of all
    have, if these were drawn at random (Fisher's exact test, one-sided).

    >>> round(upper_tail(5, 5, 5, 10) * 252)
    1
    """
    ways = (
        comb(all_having, here) * comb(every - all_having, part - here)
        for here in range(having, min(part, all_having) + 1)
    )
    return sum(ways) / comb(every, part)


def of_shares(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Return the two-sided p-value of the difference of two shares, each as so many of so many
    (Fisher's exact test).

    >>> of_shares((0, 5), (5, 5)) * 252
    2.0
    """
    (one, first), (other, second) = before, after
    having = one + other
    every = first + second
    more = upper_tail(other, second, having, every)
    fewer = upper_tail(second - other, second, every - having, every)
    return min(1.0, 2.0 * min(more, fewer))
