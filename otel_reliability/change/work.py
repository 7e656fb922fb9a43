"""The work of one agent: which requests belong together, and whether the work itself changes.

Groups are formed from the past only: a request joins the group that it is nearest to, or begins
one.
So which group an observation has does not depend on its numbers, and ranks within a group stay
uniform while the agent stays the same, however the mix of groups moves.

That the work changed is no change of the agent. Two things are noted, each as a change point:

- *A new kind of request.* Of n requests, k make a group, all of them among the last m. Of requests
  in random order the share (m − 1) … (m − k + 1) / (n − 1) … (n − k + 1) lies as close together, so
  a limit of 1/c gives no more than one false note in c observations on average.
- *Another mix.* The requests are projected on the few directions in which the first ones
  differed most; bets on the ranks along each, as a detector's, gain evidence of c no sooner than in
  c observations on average.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct, convert, to_builtins

from otel_reliability.change.points import MIX, NEW_REQUESTS, ChangePoint
from otel_reliability.change.signal_state import SignalState
from otel_reliability.model.observation import Observation
from otel_reliability.statistics.likeness import directions_of, joined_mean, nearest, units_of

MAX_GROUPS: Final = 64
"""Groups that are remembered, those with the most requests."""
FIRST: Final = 60
"""Requests from which the directions are taken."""
DIRECTIONS: Final = 5
MIN_MOVED: Final = 10
"""Requests, at least, that a note of another mix describes."""
APART: Final = 0.42
"""Cosine to the mean of an older group from which a new group is a part of that kind."""
MIN_SHARE: Final = 0.05
"""Share that a new group has of the requests since it began."""
MIN_NEW: Final = 5
"""Requests of a new group from which it is noted."""
LATEST: Final = 100
"""Requests among which all of a new group must be."""


class _Group(Struct, array_like=True, gc=False):
    """A group: its number, the mean of its requests, how many there were, the first and the last of
    them, and whether it was noted as new.
    """

    number: int
    mean: bytes
    members: int
    first: int
    last: int
    noted: bool = False


class Work:
    """The groups of an agent's requests, in the order of its observations.

    `add` returns the number of the group of an observation: 0 where its request is unknown.
    """

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._requests = 0
        self._groups: list[_Group] = []
        self._following = 1
        self._latest: list[int] = []
        """Groups of the latest requests."""
        self._first: list[bytes] = []
        """The first requests, until there are enough of them."""
        self._directions: list[bytes] = []
        self._states: list[SignalState] = []
        """The bets along each direction."""

    def add(self, observation: Observation, ordinal: int) -> tuple[int, list[ChangePoint]]:
        """Add the next observation; return its group, and what changed about the work."""
        request = observation.request
        if request is None:
            return 0, []
        self._requests += 1
        units = units_of([request, *[group.mean for group in self._groups], *self._directions])
        end = 1 + len(self._groups)
        group = self._join(request, units[:end])
        new = self._new(group, observation, ordinal)
        mix = self._mix(group.number, observation, ordinal, (units[end:] @ units[0]).tolist())
        return group.number, [point for point in (new, mix) if point is not None]

    # --- Groups -----------------------------------------------------------------------------------

    def _join(self, request: bytes, units: Any) -> _Group:
        """Return the group of a request, which then has one member more. `units`: the request and
        the means of the groups with length 1.
        """
        at = nearest(units, [group.members for group in self._groups])
        if at is None:
            if len(self._groups) == MAX_GROUPS:
                self._groups.remove(min(self._groups, key=lambda one: (one.members, one.last)))
            group = _Group(self._following, request, 0, self._requests, self._requests)
            self._groups.append(group)
            self._following += 1
        else:
            group = self._groups[at]
            group.mean = joined_mean(units[1 + at], group.members, units[0])
        group.members += 1
        group.last = self._requests
        return group

    # --- Changes ----------------------------------------------------------------------------------

    def _new(self, group: _Group, observation: Observation, ordinal: int) -> ChangePoint | None:
        """Return the note of a new kind of request, once for each."""
        since = self._requests - group.first + 1
        if group.noted or since > LATEST or group.members < max(MIN_NEW, MIN_SHARE * since):
            return None
        chance = 1.0
        for at in range(1, group.members):
            chance *= (since - at) / (self._requests - at)
        if chance * self._threshold > 1 or not self._is_apart(group):
            return None
        group.noted = True
        what = f"{group.members} of the last {since}"
        return ChangePoint(NEW_REQUESTS, (), (what,), ordinal, observation.id, observation.start_ns)

    def _is_apart(self, group: _Group) -> bool:
        """Return whether no older group is so near that this one may be a part of its kind."""
        others = [one for one in self._groups if one.first < self._requests - LATEST]
        units = units_of([group.mean, *[one.mean for one in others]])
        return nearest(units, [one.members for one in others], APART) is None

    def _mix(
        self, number: int, observation: Observation, ordinal: int, along: Sequence[float]
    ) -> ChangePoint | None:
        """Return the note of another mix. `along`: the cosine of the request to each direction."""
        self._latest.append(number)
        del self._latest[:-LATEST]
        if not self._directions:
            self._first.append(observation.request or b"")
            if len(self._first) == FIRST:
                self._directions = directions_of(self._first, DIRECTIONS)
                self._first = []
                self._states = _states()
            return None
        for state, value in zip(self._states, along, strict=True):
            state.add(value, observation, ordinal, 0, count=True)
        if sum([state.evidence for state in self._states]) < self._threshold * DIRECTIONS:
            return None
        strongest = max(self._states, key=lambda state: state.evidence)
        before, after = self._moved(max(MIN_MOVED, strongest.values_since))
        self._states = _states()
        return ChangePoint(MIX, (before,), (after,), ordinal, observation.id, observation.start_ns)

    def _moved(self, since: int) -> tuple[str, str]:
        """Return the share of the group that moved most, before and of so many latest requests."""
        latest = Counter(self._latest[-since:])
        number = min(since, len(self._latest))
        earlier = max(self._requests - number, 1)
        shares = [
            (max(group.members - latest[group.number], 0) / earlier, latest[group.number] / number)
            for group in self._groups
        ]
        before, after = max(shares, key=lambda share: abs(share[1] - share[0]))
        return f"{100 * before:.0f} %", f"{100 * after:.0f} %"

    # --- Over a restart ---------------------------------------------------------------------------

    def to_data(self) -> list[Any]:
        """Return all of it as plain values."""
        states = [state.to_data() for state in self._states]
        kept = (self._requests, self._groups, self._following, self._latest)
        return to_builtins([*kept, self._first, self._directions, states])

    @classmethod
    def from_data(cls, data: Sequence[Any], threshold: float) -> Work:
        """Return what `to_data` gave."""
        found = cls(threshold)
        found._requests, groups, found._following, latest, first, directions, states = data
        found._groups = convert(groups, list[_Group])
        found._latest = list(latest)
        found._first = convert(first, list[bytes])
        found._directions = convert(directions, list[bytes])
        found._states = [
            SignalState.from_data(f"mix {at}", state) for at, state in enumerate(states)
        ]
        return found


def _states() -> list[SignalState]:
    return [SignalState(f"mix {at}") for at in range(DIRECTIONS)]
