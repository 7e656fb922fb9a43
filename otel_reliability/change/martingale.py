"""The simple jumper: a bet against uniform ranks that finds its own direction and strength."""

from __future__ import annotations

from typing import Final, TypeAlias

Weights: TypeAlias = tuple[float, float, float, float, float]

STRONG: Final = 1.6
WEAK: Final = 0.8
JUMP: Final = 0.02
"""The share of the money that changes its strength before each bet, so that a lost direction is found again."""

EVEN: Final[Weights] = (0.2, 0.2, 0.2, 0.2, 0.2)

KEPT: Final = 1 - JUMP
SHARED: Final = JUMP / len(EVEN)


class Jumper:
    """Money on the five strengths ε ∈ {-1.6, -.8, 0, .8, 1.6}; `bet` returns the growth of the whole.

    Each step first jumps (`w ← .98 w + .02 · mean`), then bets (`w ← w (1 + ε(p - ½))`); the growth is the sum after over
    the sum before. Negative strengths win on small ranks (values greater than before). For uniform ranks the growth
    is 1 on average, whatever went before: no bet can win against an agent that does not change. The weights are kept at
    a sum of 1, which changes no growth and never overflows.

    >>> jumper = Jumper()
    >>> [round(jumper.bet(0.05), 3) for _ in range(5)]
    [1.0, 1.254, 1.401, 1.487, 1.542]

    References: Vovk, Gammerman, Shafer, *Algorithmic Learning in a Random World*, 2nd ed., ch. 8 (simple jumper).
    """

    __slots__ = ("weights",)

    def __init__(self, weights: Weights = EVEN) -> None:
        self.weights = weights

    def bet(self, p: float) -> float:
        """Return the growth of the money by a bet on this rank. Written out: it runs for every signal of every observation."""
        weak = WEAK * (p - 0.5)
        strong = STRONG * (p - 0.5)
        a, b, c, d, e = self.weights
        a = (KEPT * a + SHARED) * (1 - strong)
        b = (KEPT * b + SHARED) * (1 - weak)
        c = KEPT * c + SHARED
        d = (KEPT * d + SHARED) * (1 + weak)
        e = (KEPT * e + SHARED) * (1 + strong)
        growth = a + b + c + d + e
        self.weights = (a / growth, b / growth, c / growth, d / growth, e / growth)
        return growth
