"""One signal under watch: its ranks, the bet on them, and Shiryaev and Roberts' sum of the bets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from otel_reliability.change.alarm import Summary, Told
from otel_reliability.change.martingale import Jumper
from otel_reliability.change.rank import Ranks, tie_breaker


class Watch:
    """What is known of one signal of one agent.

    `evidence` is Shiryaev and Roberts' statistic `R ← (R + 1) · growth`: the sum, over all units at which a change may
    have begun, of what a bet that began there would have made of 1. As each of them makes 1 on average while nothing
    changes, R grows by 1 a unit on average, and passes c no sooner than in c units on average.

    `since` is the unit at which the best of those bets began, our estimate of where the change lies. While all kept values
    are the same, nothing is bet and there is no evidence: an agent that always does the same thing never alarms.

    References: M. Pollak, *Optimal detection of a change in distribution*, Annals of Statistics 13, 1985.
    """

    __slots__ = ("_gain", "_jumper", "_ranks", "_since", "_values_since", "evidence", "signal")

    def __init__(self, signal: str) -> None:
        self.signal = signal
        self._ranks = Ranks()
        self._since = (0, 0)
        self._begin()

    def _begin(self) -> None:
        """Nothing has been bet on yet."""
        self.evidence = 0.0
        self._jumper = Jumper()
        self.forget_since()

    def see(self, value: float, unit_id: str, ordinal: int, ns: int, *, count: bool) -> None:
        """The signal's next value. `count` False: it is ranked and bet on, but the evidence stays as it is."""
        p = self._ranks.rank(value, tie_breaker(unit_id, self.signal, ordinal))
        if p is None:
            self._begin()
            return
        growth = self._jumper.bet(p)
        if count:
            self.evidence = (self.evidence + 1) * growth
        if not self._values_since:
            self._since = (ordinal, ns)
        self._gain *= growth
        self._values_since += 1
        if self._gain <= 1:
            self.forget_since()

    def forget_since(self) -> None:
        """A change, if there is one, begins after this unit."""
        self._gain, self._values_since = 1.0, 0

    @property
    def values_since(self) -> int:
        """How many values came since the change probably began."""
        return self._values_since

    def told(self) -> Told:
        """What an alarm says of this signal."""
        before, after = self._ranks.split(self._values_since)
        return Told(self.signal, self.evidence, *self._since, Summary.of(before), Summary.of(after))

    def to_state(self) -> dict[str, Any]:
        """Everything, in plain values."""
        return {
            "values": self._ranks.to_state(),
            "weights": list(self._jumper.weights),
            "evidence": self.evidence,
            "gain": self._gain,
            "since": list(self._since),
            "values_since": self._values_since,
        }

    @classmethod
    def from_state(cls, signal: str, state: Mapping[str, Any]) -> Watch:
        """What `to_state` wrote."""
        watch = cls(signal)
        watch._ranks = Ranks.from_state(state["values"])
        a, b, c, d, e = state["weights"]
        watch._jumper = Jumper((a, b, c, d, e))
        watch.evidence, watch._gain = state["evidence"], state["gain"]
        ordinal, ns = state["since"]
        watch._since, watch._values_since = (ordinal, ns), state["values_since"]
        return watch
