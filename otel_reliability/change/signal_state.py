"""The state of one signal: its ranks, the bet on them, and Shiryaev and Roberts' sum
of the bets.
"""

from __future__ import annotations

import struct
from array import array
from base64 import b64decode, b64encode
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct, convert

from otel_reliability.change.alarm import SignalChange, Summary
from otel_reliability.change.betting import START, Weights, bet, tie_breaker
from otel_reliability.model.observation import Observation

WINDOW: Final = 500
"""Number of the latest values that a rank is taken among. Thinning them at random breaks the
guarantee (measured).
"""
MIN_PAST: Final = 3
"""Earlier values of its group without which a value is ranked among the rest."""
REST: Final = (1 << 32) - 1
"""The group of the values that came while their own groups had too few."""
MIN_REST: Final = 100
"""Earlier values of the rest without which a value there has no rank: while few groups have a past,
a mix that moves would look like a change of the agent."""
_NARROW: Final = "I"
_WIDE: Final = "Q"
"""Types of arrays of 32 and 64 bits."""
_SINGLE: Final = struct.Struct("=f")
_BITS: Final = struct.Struct("=I")
_SIGN: Final = 1 << 31
_ALL: Final = (1 << 32) - 1


class Place(Struct, gc=False):
    """The place of a value among those of its group before it: their number, and how many are equal
    to it and greater.
    """

    past: int
    equal: int
    greater: int

    def rank(self, u: float) -> float:
        """Return the rank: small for a great value. u, from 0 to 1, breaks ties."""
        return (self.greater + u * (self.equal + 1)) / (self.past + 1)


class Ranks:
    """The latest values of one signal, and the place of a new one among those of its group.

    **The rank** is `p = (greater + u * (equal + 1)) / (n + 1)`: of the n values of the group before
    it, so many are greater and so many equal.

    **No rank** (None) has a value while all of all groups are equal: there is nothing to detect,
    and a rank would be only the noise of u.

    **New groups** have too few values to rank among. A value whose group, other than 0, has fewer
    than `MIN_PAST` enters that group, and a second time the group `REST`, where it is ranked; it
    has no rank while `REST` has fewer than `MIN_REST`.

    **Entries** are whole numbers: the group, and behind it the value in single precision (exact to
    16 million tokens), so that they sort by both. They take half the size while there is no group
    but 0. The last `WINDOW` entries are kept.

    >>> ranks = Ranks()
    >>> places = [ranks.add(value) for value in (5, 7, 5, 1)]
    >>> [place and place.rank(0.5) for place in places]
    [None, 0.25, 0.6666666666666666, 0.875]
    """

    __slots__ = ("_differing", "_latest", "_sorted")

    def __init__(self, latest: array[int] | None = None) -> None:
        self._latest = array(_NARROW) if latest is None else latest
        self._sorted = array(self._latest.typecode, sorted(self._latest))
        self._differing = sum(map(_differ, self._latest, self._latest[1:]))
        """Number of values that differ from the one before."""

    @property
    def constant(self) -> bool:
        """True if all values are equal."""
        return not self._differing

    def add(self, value: float, group: int = 0) -> Place | None:
        """Add a value of a group. Return its place among those before it; None: it has no rank."""
        key = group << 32 | _ordered_bits(value)
        if self._latest:
            self._differing += _differ(self._latest[-1], key)
        constant = self.constant
        place = self._enter(key)
        min_past = 0
        if group and place.past < MIN_PAST:
            place = self._enter(REST << 32 | key & _ALL)
            min_past = MIN_REST
        self._drop_oldest()
        return None if constant or place.past < min_past else place

    def _enter(self, key: int) -> Place:
        """Add a value of a group; return its place among those before it."""
        group = key >> 32
        if group and self._sorted.typecode == _NARROW:
            self._latest = array(_WIDE, self._latest)
            self._sorted = array(_WIDE, self._sorted)
        ordered = self._sorted
        begin = bisect_left(ordered, group << 32)
        end = bisect_left(ordered, group + 1 << 32, begin)
        low = bisect_left(ordered, key, begin, end)
        high = bisect_right(ordered, key, low, end)
        ordered.insert(high, key)
        self._latest.append(key)
        return Place(end - begin, high - low, end - high)

    def _drop_oldest(self) -> None:
        latest = self._latest
        ordered = self._sorted
        while len(latest) > WINDOW:
            self._differing -= _differ(latest[0], latest[1])
            del ordered[bisect_left(ordered, latest[0])], latest[0]

    def split(self, after: int) -> tuple[list[float], list[float]]:
        """Return the kept values, oldest first: those before the last `after`, and these."""
        values = _values([key for key in self._latest if key >> 32 != REST]).tolist()
        cut = max(0, len(values) - after)
        return values[:cut], values[cut:]

    def to_data(self) -> tuple[str, str]:
        """Return the values, oldest first, as base64 of single-precision numbers, a fifth of a list
        of numbers; and their groups as base64 of whole ones, empty where there is none.
        """
        groups = array("I", [key >> 32 for key in self._latest])
        return (
            b64encode(_values(self._latest).tobytes()).decode("ascii"),
            b64encode(groups.tobytes()).decode("ascii") if any(groups) else "",
        )

    @classmethod
    def from_data(cls, values: str, groups: str) -> Ranks:
        """Return the ranks that `to_data` gave."""
        known = array("f")
        known.frombytes(b64decode(values))
        of = array("I")
        of.frombytes(b64decode(groups))
        keys = zip(of or [0] * len(known), known, strict=True)
        typecode = _WIDE if of else _NARROW
        return cls(array(typecode, [group << 32 | _ordered_bits(value) for group, value in keys]))


def _values(keys: Iterable[int]) -> array[float]:
    """Return the values of keys."""
    bits = [key & _ALL for key in keys]
    found = array("f")
    found.frombytes(
        array("I", [one ^ _SIGN if one & _SIGN else one ^ _ALL for one in bits]).tobytes()
    )
    return found


def _ordered_bits(value: float) -> int:
    """Return the bits of a value in single precision, so that they compare as values do.

    >>> _ordered_bits(-1.5) < _ordered_bits(0.0) == _ordered_bits(-0.0) < _ordered_bits(7)
    True
    """
    (bits,) = _BITS.unpack(_SINGLE.pack(value + 0.0))
    return bits ^ _ALL if bits & _SIGN else bits | _SIGN


def _differ(one: int, other: int) -> bool:
    return (one ^ other) & _ALL != 0


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
        self._weights = START
        self.forget_since()

    def add(
        self, value: float, observation: Observation, ordinal: int, group: int, *, count: bool
    ) -> None:
        """Add the signal's value of an observation of this group. `count` False: it is ranked and
        bet on, but adds no evidence.
        """
        place = self._ranks.add(value, group)
        if place is None:
            if self._ranks.constant and self._weights is not START:
                self._begin()
            return
        unit = observation.id.encode("utf-8", "surrogatepass")
        p = place.rank(tie_breaker(b"%d%b%b" % (ordinal, self._name, unit)))
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
        values, groups = self._ranks.to_data()
        return {
            "values": values,
            "groups": groups,
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
        state._ranks = Ranks.from_data(data["values"], data.get("groups", ""))
        weights = convert(data["weights"], Weights)
        state._weights = weights if len(weights) == len(START) else START
        state.evidence = data["evidence"]
        state._gain = data["gain"]
        state.values_since = data["values_since"]
        state._since = convert(data["since"], tuple[int, int])
        return state
