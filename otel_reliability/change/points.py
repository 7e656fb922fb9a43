"""Change points: the first observation that shows a new fingerprint of how an agent is made, like
another model.

A detector reports that behaviour changed; a change point is a possible reason.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import takewhile
from typing import Any, Final, NamedTuple

from msgspec import Struct, convert, to_builtins

from otel_reliability.model.observation import Observation
from otel_reliability.model.run import FINGERPRINTS

BASELINE: Final = 10
"""Number of observations with fingerprints of a kind that define its baseline: their values are no
change points.
"""
OBSERVATIONS_PER_VALUE: Final = 5
"""Minimum observations per value beyond the first. A kind with more new values (a prompt that holds
the date) has no points.
"""
MAX_VALUES: Final = 64
"""Maximum values of a kind that are remembered, the latest."""
NEW_REQUESTS: Final = "new_requests"
MIX: Final = "mix"
"""Kinds of change points about the work of an agent (`change.work`), not about how it is made."""
MAX_POINTS: Final = 20
"""Maximum number of change points that are kept, the latest."""


class ChangePoint(NamedTuple):
    """The first observation with a new value of a kind (`FINGERPRINTS`). `before` and `after` are
    the kind's values in the observation before and in this one, which is number `observation` of
    the agent and began at `at_ns`. Of the work: how many of the last requests are of a new kind
    (`NEW_REQUESTS`), or the share of a kind before and now (`MIX`).
    """

    kind: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    observation: int
    observation_id: str
    at_ns: int


class _Kind(Struct, array_like=True):
    """The values of one kind: those known (the latest last), of the last observation, and of the
    last change point.
    """

    observations: int = 0
    distinct: int = 0
    known: list[str] = []
    latest: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()

    def add(self, values: tuple[str, ...]) -> bool:
        """Add the values of one observation; return whether it is a change point."""
        self.observations += 1
        new = 0
        if values != self.latest:
            new = sum([value not in self.known for value in values])
            self.distinct += new
            others = [value for value in self.known if value not in values]
            self.known = [*others, *values][-MAX_VALUES:]
        is_stable = (self.distinct - 1) * OBSERVATIONS_PER_VALUE <= self.observations
        if self.observations == BASELINE and is_stable:
            self.shown = tuple(sorted(self.known))
        if self.observations > BASELINE and is_stable and new:
            self.shown = values
            return True
        return False


class ChangePoints:
    """The change points of one agent.

    >>> points = ChangePoints()
    >>> for n in range(30):
    ...     name = "gpt-4.1" if n < 20 else "gpt-5-mini"
    ...     points.add(
    ...         Observation(
    ...             f"{n}",
    ...             n,
    ...             n,
    ...             None,
    ...             None,
    ...             None,
    ...             None,
    ...             None,
    ...             None,
    ...             fingerprints=(("model", name),),
    ...         ),
    ...         n + 1,
    ...     )
    >>> [(point.before, point.after, point.observation) for point in points.latest]
    [(('gpt-4.1',), ('gpt-5-mini',), 21)]
    """

    def __init__(self) -> None:
        self.latest: deque[ChangePoint] = deque(maxlen=MAX_POINTS)
        """The latest change points, oldest first."""
        self._kinds: dict[str, _Kind] = {}
        self._fingerprints: tuple[tuple[str, str], ...] = ()
        self._values: dict[str, tuple[str, ...]] = {}
        """The fingerprints of the last observation, and their values by kind."""

    def add(self, observation: Observation, ordinal: int) -> None:
        """Add the fingerprints of an agent's observation of this number."""
        if observation.fingerprints != self._fingerprints:
            self._fingerprints = observation.fingerprints
            self._values = _by_kind(observation.fingerprints)
        for name, values in self._values.items():
            kind = self._kinds.get(name)
            if kind is None:
                kind = self._kinds[name] = _Kind()
            if kind.add(values):
                point = ChangePoint(
                    name, kind.latest, values, ordinal, observation.id, observation.start_ns
                )
                self.latest.append(point)
            kind.latest = values

    def note(self, points: Iterable[ChangePoint]) -> None:
        """Add change points about the work."""
        self.latest.extend(points)

    def after(self, ordinal: int) -> tuple[ChangePoint, ...]:
        """Return the change points after an observation."""
        found = takewhile(lambda point: point.observation > ordinal, reversed(self.latest))
        return tuple(found)[::-1]

    def current(self) -> dict[str, tuple[str, ...]]:
        """Return the values by kind: those of the baseline, or of the last change point. They do
        not alternate with runs.
        """
        return {
            name: shown
            for name in FINGERPRINTS
            if name in self._kinds and (shown := self._kinds[name].shown)
        }

    def to_data(self) -> list[Any]:
        """Return all of it as plain values."""
        return to_builtins([self._kinds, list(self.latest)])

    @classmethod
    def from_data(cls, data: Iterable[Any]) -> ChangePoints:
        """Return the change points that `to_data` gave."""
        found = cls()
        kinds, points = data
        found._kinds = convert(kinds, dict[str, _Kind])
        found.latest.extend(convert(points, list[ChangePoint]))
        return found


def _by_kind(fingerprints: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for kind, value in fingerprints:
        found[kind] = (*found.get(kind, ()), value)
    return found
