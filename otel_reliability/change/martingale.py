"""The jumper: bets against uniform ranks that find their own direction and strength."""

from __future__ import annotations

from math import sqrt
from typing import Final, TypeAlias

Weights: TypeAlias = tuple[float, float, float, float, float]

STRENGTH: Final = 1.6
"""Strength of the two linear bets."""
JUMP: Final = 0.02
"""The share of the money that changes its bet each time, so that a lost direction is found again."""
MIN_RANK: Final = 1e-4
"""Distance from 0 and from 1 below which a rank counts as so far: an extreme bet pays at most 50 times its stake."""

EVEN: Final[Weights] = (0.2, 0.2, 0.2, 0.2, 0.2)

KEPT: Final = 1 - JUMP
SHARED: Final = JUMP / len(EVEN)


class Jumper:
    """Money on five bets; `bet` returns the growth of the whole.

    On a rank p the bets pay `1 - 1.6 (p - ½)` and `1 + 1.6 (p - ½)`, which win where many values shift a little to the greater
    or to the smaller; `½ / √p` and `½ / √(1 - p)`, which win where some values lie beyond nearly all before; and 1. Each has
    mean 1 for a uniform p, so no money can be won from an agent that does not change. Each step first jumps
    (`w ← .98 w + .02 · mean`), then bets; the growth is the sum after over the sum before. The weights are kept at a sum of
    1, which changes no growth and never overflows.

    >>> jumper = Jumper()
    >>> [round(jumper.bet(0.05), 3) for _ in range(5)]
    [1.15, 1.608, 1.856, 1.976, 2.041]

    References: Vovk, Gammerman, Shafer, *Algorithmic Learning in a Random World*, 2nd ed., ch. 8 (simple jumper, power
    martingale). The choice of bets: docs/validation.md.
    """

    __slots__ = ("weights",)

    def __init__(self, weights: Weights = EVEN) -> None:
        self.weights = weights

    def bet(self, p: float) -> float:
        """Return the growth of the money by a bet on this rank. Written out: it runs for every signal of every observation."""
        linear = STRENGTH * (p - 0.5)
        a, b, c, d, e = self.weights
        a = (KEPT * a + SHARED) * (1 - linear)
        b = (KEPT * b + SHARED) * (0.5 / sqrt(max(p, MIN_RANK)))
        c = KEPT * c + SHARED
        d = (KEPT * d + SHARED) * (0.5 / sqrt(max(1 - p, MIN_RANK)))
        e = (KEPT * e + SHARED) * (1 + linear)
        growth = a + b + c + d + e
        self.weights = (a / growth, b / growth, c / growth, d / growth, e / growth)
        return growth
