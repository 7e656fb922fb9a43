"""How a bet on one value of a signal grows: its rank among the latest values, and the bet on that."""

from __future__ import annotations

from otel_reliability.change.martingale import Jumper
from otel_reliability.change.rank import Ranks, spread


def growth(ranks: Ranks, jumper: Jumper, value: float, name: bytes) -> float | None:
    """The growth of the money by the bet on a value, which the kept ones then hold; None where it has no rank.

    `name` breaks ties: ordinal, signal and unit id, as in `rank.tie_breaker`.
    """
    p = ranks.rank(value, 0.0 if value == ranks.only else spread(name))
    return None if p is None else jumper.bet(p)
