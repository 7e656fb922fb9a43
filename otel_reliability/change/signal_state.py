"""The state of one signal: its ranks, the bet on them, and Shiryaev and Roberts' sum of the bets."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any, Final, TypeAlias

from msgspec import convert

from otel_reliability.change.alarm import SignalChange, Summary
from otel_reliability.change.rank import Ranks
from otel_reliability.model.observation import Observation

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


def bet(weights: Weights, p: float) -> tuple[float, Weights]:
    """Return the growth of the money on five bets by a rank p, and how it is then distributed (the simple jumper).

    The bets pay `1 - 1.6 (p - ½)` and `1 + 1.6 (p - ½)`, which win where many values shift a little to the greater or to the
    smaller; `½ / √p` and `½ / √(1 - p)`, which win where some values lie beyond nearly all before; and 1. Each has mean 1 for
    a uniform p, so no money can be won from an agent that does not change. Each step first jumps (`w ← .98 w + .02 · mean`),
    then bets; the growth is the sum after over the sum before. The weights are kept at a sum of 1, which changes no growth
    and never overflows. Written out: it runs for every signal of every observation.

    >>> growth, weights = bet(EVEN, 0.05)
    >>> round(growth, 3), round(bet(weights, 0.05)[0], 3)
    (1.15, 1.608)

    References: Vovk, Gammerman, Shafer, *Algorithmic Learning in a Random World*, 2nd ed., ch. 8 (simple jumper, power
    martingale). The choice of bets: docs/explanation/validation.md.
    """
    linear = STRENGTH * (p - 0.5)
    a, b, c, d, e = weights
    a = (KEPT * a + SHARED) * (1 - linear)
    b = (KEPT * b + SHARED) * (0.5 / sqrt(max(p, MIN_RANK)))
    c = KEPT * c + SHARED
    d = (KEPT * d + SHARED) * (0.5 / sqrt(max(1 - p, MIN_RANK)))
    e = (KEPT * e + SHARED) * (1 + linear)
    growth = a + b + c + d + e
    return growth, (a / growth, b / growth, c / growth, d / growth, e / growth)


class SignalState:
    """The state of one signal of one agent.

    `evidence` is Shiryaev and Roberts' statistic `R ← (R + 1) · growth`: the sum, over all observations at which a change may
    have begun, of the money that a bet from there on would have made of 1. As each of them makes 1 on average while nothing
    changes, R grows by 1 per observation on average, and passes c no sooner than in c observations on average.

    `since` is the observation at which the best of those bets began, the estimate of where the change lies. While all kept
    values are equal, nothing is bet and there is no evidence: an agent that always does the same never alarms.

    References: M. Pollak, *Optimal detection of a change in distribution*, Annals of Statistics 13, 1985.
    """

    __slots__ = ("_gain", "_name", "_ranks", "_since", "_weights", "evidence", "signal", "values_since")

    def __init__(self, signal: str) -> None:
        self.signal = signal
        self._name = f"\0{signal}\0".encode()
        self._ranks = Ranks()
        self._since = (0, 0)
        self._begin()

    def _begin(self) -> None:
        """Start without a bet."""
        self.evidence = 0.0
        self._weights = EVEN
        self.forget_since()

    def add(self, value: float, observation: Observation, ordinal: int, *, count: bool) -> None:
        """Add the signal's value of an observation. `count` False: it is ranked and bet on, but adds no evidence."""
        p = self._ranks.rank(value, b"%d%b%b" % (ordinal, self._name, observation.id.encode("utf-8", "surrogatepass")))
        if p is None:
            if self._weights is not EVEN:
                self._begin()
            return
        growth, self._weights = bet(self._weights, p)
        if count:
            self.evidence = (self.evidence + 1) * growth
        if not self.values_since:
            self._since = (ordinal, observation.start_ns)
        gain = self._gain * growth
        self._gain, self.values_since = (gain, self.values_since + 1) if gain > 1 else (1.0, 0)

    def forget_since(self) -> None:
        """Let a change, if there is one, begin after this observation."""
        self._gain = 1.0
        self.values_since = 0
        """The number of values since the change probably began."""

    def change(self) -> SignalChange:
        """Return what an alarm reports of this signal."""
        before, after = self._ranks.split(self.values_since)
        return SignalChange(self.signal, self.evidence, *self._since, Summary.of(before), Summary.of(after))

    def to_data(self) -> dict[str, Any]:
        """Return the state as plain values."""
        return {
            "values": self._ranks.to_data(),
            "weights": list(self._weights),
            "evidence": self.evidence,
            "gain": self._gain,
            "since": list(self._since),
            "values_since": self.values_since,
        }

    @classmethod
    def from_data(cls, signal: str, data: Mapping[str, Any]) -> SignalState:
        """Return the state that `to_data` gave."""
        state = cls(signal)
        state._ranks = Ranks.from_data(data["values"])
        state._weights = convert(data["weights"], Weights)
        state.evidence, state._gain, state.values_since = data["evidence"], data["gain"], data["values_since"]
        state._since = convert(data["since"], tuple[int, int])
        return state
