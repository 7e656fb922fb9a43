"""The state of one signal: its ranks, the bet on them, and Shiryaev and Roberts' sum
of the bets.
"""

from __future__ import annotations

from array import array
from base64 import b64decode, b64encode
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from math import sqrt
from typing import Any, Final, TypeAlias

from msgspec import convert

from otel_reliability.change.alarm import SignalChange, Summary
from otel_reliability.model.blake2 import blake2b
from otel_reliability.model.observation import Observation

Weights: TypeAlias = tuple[float, float, float, float, float]

WINDOW: Final = 500
"""Number of the latest values that a rank is taken among. Thinning them at random breaks the
guarantee (measured).
"""
STRENGTH: Final = 1.6
"""Strength of the two linear bets."""
JUMP: Final = 0.02
"""The share of the money that changes its bet each time, so that a lost direction is found again.
"""
MIN_RANK: Final = 1e-4
"""Distance from 0 and from 1 below which a rank counts as so far: an extreme bet pays at most 50
times its stake.
"""
EVEN: Final[Weights] = (0.2, 0.2, 0.2, 0.2, 0.2)
KEPT: Final = 1 - JUMP
SHARED: Final = JUMP / len(EVEN)
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


class Ranks:
    """The last 500 values of one signal, and the rank of a new one among them.

    `p = (greater + u * (equal + 1)) / (n + 1)`, with n the values before it and u the tie breaker:
    small for a great value. A value that is equal to all of them has no rank (None): where nothing
    differs there is nothing to detect, and a rank would be only the noise of u. Values are kept in
    single precision (exact to 16 million tokens).

    >>> ranks = Ranks()
    >>> [p and round(p, 4) for p in (ranks.rank(value, b"") for value in (5, 7, 5, 1))]
    [None, 0.4466, 0.9288, 0.9733]
    """

    __slots__ = ("_latest", "_sorted")

    def __init__(self, values: array[float] | None = None) -> None:
        self._latest = array("f") if values is None else values
        self._sorted = array("f", sorted(self._latest))

    def rank(self, value: float, name: bytes) -> float | None:
        """Return the rank of a value among those before it, which it then joins. `name` breaks
        ties.
        """
        latest = self._latest
        ordered = self._sorted
        latest.append(value)
        value = latest[-1]
        n = len(ordered)
        low = bisect_left(ordered, value)
        high = bisect_right(ordered, value, low)
        ordered.insert(high, value)
        if n == WINDOW:
            del ordered[bisect_left(ordered, latest[0])], latest[0]
        equal = high - low
        return None if equal == n else (n - high + tie_breaker(name) * (equal + 1)) / (n + 1)

    def split(self, after: int) -> tuple[list[float], list[float]]:
        """Return the kept values, oldest first: those before the last `after`, and these."""
        values = self._latest.tolist()
        cut = max(0, len(values) - after)
        return values[:cut], values[cut:]

    def to_data(self) -> str:
        """Return the values, oldest first, as base64 of single-precision numbers: a fifth of a list
        of numbers.
        """
        return b64encode(self._latest.tobytes()).decode("ascii")

    @classmethod
    def from_data(cls, data: str) -> Ranks:
        """Return the ranks of which `to_data` gave the values."""
        values = array("f")
        values.frombytes(b64decode(data))
        return cls(values)


def bet(weights: Weights, p: float) -> tuple[float, Weights]:
    """Return the growth of the money on five bets by a rank p, and how it is then distributed (the
    simple jumper).

    The bets pay `1 - 1.6 (p - ½)` and `1 + 1.6 (p - ½)`, which win where many values shift a little
    to the greater or to the smaller; `½ / √p` and `½ / √(1 - p)`, which win where some values lie
    beyond nearly all before; and 1. Each has mean 1 for a uniform p, so no money can be won from an
    agent that does not change. Each step first jumps (`w ← .98 w + .02 · mean`), then bets; the
    growth is the sum after over the sum before. The weights are kept at a sum of 1, which changes
    no growth and never overflows. Written out: it runs for every signal of every observation.

    >>> growth, weights = bet(EVEN, 0.05)
    >>> round(growth, 3), round(bet(weights, 0.05)[0], 3)
    (1.15, 1.608)

    References: Vovk, Gammerman, Shafer, *Algorithmic Learning in a Random World*, 2nd ed., ch. 8
    (simple jumper, power martingale). The choice of bets: docs/explanation/validation.md.
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

    `evidence` is Shiryaev and Roberts' statistic `R ← (R + 1) · growth`: the sum, over all
    observations at which a change may have begun, of the money that a bet from there on would have
    made of 1. As each of them makes 1 on average while nothing changes, R grows by 1 per
    observation on average, and passes c no sooner than in c observations on average.

    `since` is the observation at which the best of those bets began, the estimate of where the
    change lies. While all kept values are equal, nothing is bet and there is no evidence: an agent
    that always does the same never alarms.

    References: M. Pollak, *Optimal detection of a change in distribution*, Annals of Statistics 13,
    1985.
    """

    __slots__ = (
        "_gain",
        "_name",
        "_ranks",
        "_since",
        "_weights",
        "evidence",
        "signal",
        "values_since",
    )

    def __init__(self, signal: str) -> None:
        self.signal = signal
        self._name = f"\0{signal}\0".encode()
        self._ranks = Ranks()
        self._since = (0, 0)
        self._begin()

    def _begin(self) -> None:
        self.evidence = 0.0
        self._weights = EVEN
        self.forget_since()

    def add(self, value: float, observation: Observation, ordinal: int, *, count: bool) -> None:
        """Add the signal's value of an observation. `count` False: it is ranked and bet on, but
        adds no evidence.
        """
        p = self._ranks.rank(
            value,
            b"%d%b%b" % (ordinal, self._name, observation.id.encode("utf-8", "surrogatepass")),
        )
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
        return SignalChange(
            self.signal, self.evidence, *self._since, Summary.of(before), Summary.of(after)
        )

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
        state.evidence = data["evidence"]
        state._gain = data["gain"]
        state.values_since = data["values_since"]
        state._since = convert(data["since"], tuple[int, int])
        return state
