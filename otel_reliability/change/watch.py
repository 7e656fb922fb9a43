"""One signal under watch: its ranks, the bet on them, and Shiryaev and Roberts' sum of the bets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from otel_reliability.change.alarm import Summary, Told
from otel_reliability.change.compiled import growth
from otel_reliability.change.martingale import EVEN, Jumper
from otel_reliability.change.rank import Ranks
from otel_reliability.change.units import Unit

At: TypeAlias = tuple[bytes, bytes, tuple[int, int]]
"""Which unit a value is of: its ordinal and its id as bytes, which break ties, and its ordinal with its start."""


def at(unit: Unit, ordinal: int) -> At:
    """The same for all signals of a unit."""
    return b"%d" % ordinal, unit.id.encode("utf-8", "surrogatepass"), (ordinal, unit.start_ns)


class Watch:
    """What is known of one signal of one agent.

    `evidence` is Shiryaev and Roberts' statistic `R ← (R + 1) · growth`: the sum, over all units at which a change may
    have begun, of what a bet that began there would have made of 1. As each of them makes 1 on average while nothing
    changes, R grows by 1 a unit on average, and passes c no sooner than in c units on average.

    `since` is the unit at which the best of those bets began, our estimate of where the change lies. While all kept values
    are the same, nothing is bet and there is no evidence: an agent that always does the same thing never alarms.

    References: M. Pollak, *Optimal detection of a change in distribution*, Annals of Statistics 13, 1985.
    """

    __slots__ = ("_gain", "_jumper", "_name", "_ranks", "_since", "_values_since", "evidence", "signal")

    def __init__(self, signal: str) -> None:
        self.signal = signal
        self._name = f"\0{signal}\0".encode()
        self._ranks = Ranks()
        self._since = (0, 0)
        self._begin()

    def _begin(self) -> None:
        """Nothing has been bet on yet."""
        self.evidence = 0.0
        self._jumper = Jumper()
        self.forget_since()

    def see(self, value: float, where: At, *, count: bool) -> None:
        """The signal's next value. `count` False: it is ranked and bet on, but the evidence stays as it is."""
        ordinal, unit_id, since = where
        grown = growth(self._ranks, self._jumper, value, ordinal + self._name + unit_id)
        if grown is None:
            if self._jumper.weights is not EVEN:
                self._begin()
            return
        if count:
            self.evidence = (self.evidence + 1) * grown
        won = self._values_since
        if not won:
            self._since = since
        gain = self._gain * grown
        self._gain, self._values_since = (gain, won + 1) if gain > 1 else (1.0, 0)

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
