"""Bets on ranks: what detectors gain evidence by."""

from __future__ import annotations

from bisect import bisect_right
from math import sqrt
from typing import Final, TypeAlias

from otel_reliability.model.blake2 import blake2b

Weights: TypeAlias = tuple[float, ...]
"""The share of the money that is on each bet."""

STRENGTH: Final = 1.6
"""Strength of the two linear bets."""
JUMP: Final = 0.02
"""The share of the money that changes its bet each time, so that a lost direction is found again.
"""
MIN_RANK: Final = 1e-4
"""Distance from 0 and from 1 below which a rank counts as so far: an extreme bet pays at most 50
times its stake.
"""
EDGES: Final = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4)
"""Ranks below which the step bets win."""
STEPS: Final = tuple(
    tuple(0.5 / edge if at <= number else 0.5 / (1 - edge) for number, edge in enumerate(EDGES))
    for at in range(len(EDGES) + 1)
)
"""Payments of the step bets for a rank, by the number of edges at or below it."""
START: Final[Weights] = (0.14,) * 5 + (0.06,) * 5
"""The shares at the start, and of the money that changes its bet. The step bets have less: with
equal shares a swap of a model by its twin is found less often.
"""
KEPT: Final = 1 - JUMP
SHARED: Final = JUMP * START[0]
SHARED_BY_STEPS: Final = JUMP * START[-1]
_UNUSED_BITS: Final = 64 - 53
_STEP: Final = 2.0**-53


def tie_breaker(name: bytes) -> float:
    """Return the first 53 bits of a name's hash, as a number in [0, 1): the same observations give
    the same numbers everywhere.

    >>> tie_breaker(b"41 calls run-1") == tie_breaker(b"41 calls run-1") != tie_breaker(
    ...     b"42 calls run-1"
    ... )
    True
    """
    return (int.from_bytes(blake2b(name, digest_size=8).digest(), "big") >> _UNUSED_BITS) * _STEP


def bet(weights: Weights, p: float) -> tuple[float, Weights]:
    """Return the growth of the money on ten bets by a rank p, and how it is then distributed (the
    simple jumper).

    The bets pay `1 - 1.6 (p - ½)` and `1 + 1.6 (p - ½)`, which win where many values shift a little
    to the greater or to the smaller; `½ / √p` and `½ / √(1 - p)`, which win where some values lie
    beyond nearly all before; 1; and, for r of 1/64, 1/32, …, 1/4, `½ / r` where p < r, else
    `½ / (1 - r)`, which win where a value that was rare comes often, as an error does: the ranks of
    equal values are spread evenly below r. Each has mean 1 for a uniform p, so no money can be won
    from an agent that does not change. Each step first jumps (`w ← .98 w + .02 · start`), then
    bets; the growth is the sum after over the sum before. The weights are kept at a sum of 1, which
    changes no growth and never overflows. Written out: it runs for every signal of every
    observation.

    >>> growth, weights = bet(START, 0.05)
    >>> round(growth, 3), round(bet(weights, 0.05)[0], 3)
    (1.706, 3.695)

    References: Vovk, Gammerman, Shafer, *Algorithmic Learning in a Random World*, 2nd ed., ch. 8
    (simple jumper, power martingale). The choice of bets: docs/explanation/validation.md.
    """
    linear = STRENGTH * (p - 0.5)
    a, b, c, d, e, f, g, h, i, j = weights
    v, w, x, y, z = STEPS[bisect_right(EDGES, p)]
    a = (KEPT * a + SHARED) * (1 - linear)
    b = (KEPT * b + SHARED) * (0.5 / sqrt(max(p, MIN_RANK)))
    c = KEPT * c + SHARED
    d = (KEPT * d + SHARED) * (0.5 / sqrt(max(1 - p, MIN_RANK)))
    e = (KEPT * e + SHARED) * (1 + linear)
    f = (KEPT * f + SHARED_BY_STEPS) * v
    g = (KEPT * g + SHARED_BY_STEPS) * w
    h = (KEPT * h + SHARED_BY_STEPS) * x
    i = (KEPT * i + SHARED_BY_STEPS) * y
    j = (KEPT * j + SHARED_BY_STEPS) * z
    growth = a + b + c + d + e + f + g + h + i + j
    first = (a / growth, b / growth, c / growth, d / growth, e / growth)
    return growth, (*first, f / growth, g / growth, h / growth, i / growth, j / growth)
