"""The state of one signal: its ranks, the bet on them, and Shiryaev and Roberts' sum of the bets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from otel_reliability.change.alarm import SignalChange, Summary
from otel_reliability.change.martingale import EVEN, Jumper
from otel_reliability.change.observation import Observation
from otel_reliability.change.rank import Ranks


class SignalState:
    """The state of one signal of one agent.

    `evidence` is Shiryaev and Roberts' statistic `R ← (R + 1) · growth`: the sum, over all observations at which a change may
    have begun, of the money that a bet from there on would have made of 1. As each of them makes 1 on average while nothing
    changes, R grows by 1 per observation on average, and passes c no sooner than in c observations on average.

    `since` is the observation at which the best of those bets began, the estimate of where the change lies. While all kept
    values are equal, nothing is bet and there is no evidence: an agent that always does the same never alarms.

    References: M. Pollak, *Optimal detection of a change in distribution*, Annals of Statistics 13, 1985.
    """

    __slots__ = ("_gain", "_jumper", "_name", "_ranks", "_since", "evidence", "signal", "values_since")

    def __init__(self, signal: str) -> None:
        self.signal = signal
        self._name = f"\0{signal}\0".encode()
        self._ranks = Ranks()
        self._since = (0, 0)
        self._begin()

    def _begin(self) -> None:
        """Start without a bet."""
        self.evidence = 0.0
        self._jumper = Jumper()
        self.forget_since()

    def add(self, value: float, observation: Observation, ordinal: int, *, count: bool) -> None:
        """Add the signal's value of an observation. `count` False: it is ranked and bet on, but adds no evidence."""
        p = self._ranks.rank(value, b"%d%b%b" % (ordinal, self._name, observation.id.encode("utf-8", "surrogatepass")))
        if p is None:
            if self._jumper.weights is not EVEN:
                self._begin()
            return
        growth = self._jumper.bet(p)
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
            "weights": list(self._jumper.weights),
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
        a, b, c, d, e = data["weights"]
        state._jumper = Jumper((a, b, c, d, e))
        state.evidence, state._gain, state.values_since = data["evidence"], data["gain"], data["values_since"]
        ordinal, ns = data["since"]
        state._since = (ordinal, ns)
        return state
