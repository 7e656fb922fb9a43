"""Change detection for all agents: closed runs and sessions become observations of the agents'
detectors.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from otel_reliability.change.alarm import Alarm
from otel_reliability.change.detector import Detector
from otel_reliability.change.points import ChangePoint
from otel_reliability.config import Settings
from otel_reliability.model.changed import ChangedKeys
from otel_reliability.model.observation import Observation, counts_for_change, observation_of
from otel_reliability.model.record import agent_key
from otel_reliability.model.run import AgentKey, RunChange, RunEvent
from otel_reliability.model.taken import taken
from otel_reliability.windows.sessions import SessionEvent

FORGET_AFTER: Final = 90 * 86_400.0
"""Seconds without an observation after which a detector is dropped: much later than windows, as a
change shows over weeks.
"""

_PRESENT: Final = frozenset({RunChange.CLOSED, RunChange.REVISED})

MAX_PENDING_CHANGES: Final = 10_000
"""Maximum number of changes that wait to be emitted."""


class Change(NamedTuple):
    """An agent's alarm, or a change point of it."""

    key: AgentKey
    found: Alarm | ChangePoint


class Monitor:
    """One detector per agent. `apply` receives every change of a run, `advance` the time.

    An observation enters once, as it first closed: the run itself, or its session when that closes.
    Late spans change an open session, but nothing that has entered. `accounts` counts, by (what,
    why), what was dropped: ("agents", "limit"), ("agents", "idle") and ("changes", "limit").
    """

    def __init__(
        self, settings: Settings, pinned: Mapping[AgentKey, Sequence[Observation]] | None = None
    ) -> None:
        self.accounts: Counter[tuple[str, str]] = Counter()
        self._settings = settings
        self._pinned: Mapping[AgentKey, Sequence[Observation]] = {} if pinned is None else pinned
        self._detectors: OrderedDict[AgentKey, Detector] = OrderedDict()
        self._seen: dict[AgentKey, float] = {}
        self._changes: deque[Change] = deque(maxlen=MAX_PENDING_CHANGES)
        self._touched = ChangedKeys[AgentKey]()

    def __len__(self) -> int:
        return len(self._detectors)

    def keys(self) -> list[AgentKey]:
        """Return the monitored agents, the one without an observation for longest first."""
        return list(self._detectors)

    def detector(self, key: AgentKey) -> Detector | None:
        """Return an agent's detector, None if it has none."""
        return self._detectors.get(key)

    @property
    def unread(self) -> int:
        """Number of changes that wait to be emitted."""
        return len(self._changes)

    def take_changes(self) -> list[Change]:
        """Return the alarms and change points since the last call, each once, in their order. Any
        thread may call it.
        """
        return taken(self._changes)

    def apply(self, event: RunEvent, now: float, *, unobserved: bool = False) -> None:
        """Add the observation of a run without a session, once: when the run closes, when a
        revision lets it count (`counts_for_change`), or when it leaves an open session.

        `now` is the engine's time. `unobserved`: no detector has an earlier version of the run
        (`Sessions.apply`).
        """
        run = event.run
        previous = event.previous
        if run.session_id is not None or event.change not in _PRESENT or not counts_for_change(run):
            return
        if unobserved or previous is None or not counts_for_change(previous):
            self._add(run.key, observation_of(run), now)

    def remove(self, key: AgentKey) -> None:
        """Forget an agent; do nothing if it is not monitored."""
        if key in self._detectors:
            self._forget(key, "removed")

    def advance(self, now: float, sessions: Iterable[SessionEvent] = ()) -> None:
        """Add the sessions that have just closed, in their order, and drop agents that were idle
        for 90 days.
        """
        for session in sessions:
            if session.observation is not None:
                self._add(session.key, session.observation, now)
        while (
            self._detectors
            and now - self._seen[oldest := next(iter(self._detectors))] >= FORGET_AFTER
        ):
            self._forget(oldest, "idle")

    def _add(self, key: AgentKey, observation: Observation, now: float) -> None:
        detector = self._detectors.get(key) or self._admit(key, now)
        if detector is None:
            self.accounts["agents", "limit"] += 1
            return
        self._seen[key] = now
        self._detectors.move_to_end(key)
        self._touched.add(key)
        known = detector.observations
        alarm = detector.add(observation)
        for found in (*detector.points.after(known), *([] if alarm is None else [alarm])):
            if len(self._changes) == MAX_PENDING_CHANGES:  # the oldest goes
                self.accounts["changes", "limit"] += 1
            self._changes.append(Change(key, found))

    def _admit(self, key: AgentKey, now: float) -> Detector | None:
        """Make the detector of a new agent; at the limit, in place of an agent whose windows have
        expired, else not at all.
        """
        limits = self._settings.limits
        if len(self._detectors) >= limits.agents:
            oldest = next(iter(self._detectors))
            if now - self._seen[oldest] < limits.agent_idle:
                return None
            self._forget(oldest, "limit")
        detector = Detector(self._settings.change, self._pinned.get(key, ()))
        self._detectors[key] = detector
        return detector

    def _forget(self, key: AgentKey, why: str) -> None:
        del self._detectors[key], self._seen[key]
        self._touched.add(key)
        self.accounts["agents", why] += 1

    # --- Over a restart ---------------------------------------------------------------------------

    def changes(self) -> Iterator[tuple[Any, Any]]:
        """Yield what changed since the last call: plain key, plain data (None: it is forgotten).

        A detector has its agent as key, and when it last had an observation with its data.
        """
        for key in self._touched.take():
            detector = self._detectors.get(key)
            yield list(key), None if detector is None else [self._seen[key], detector.to_data()]

    def restore(self, data: Iterable[tuple[Any, Any]]) -> None:
        """Replace everything by what `changes` yielded, what changed last at the end."""
        for kept in (self._detectors, self._seen, self._changes, self._touched):
            kept.clear()
        for key, body in data:
            agent = agent_key(key)
            self._seen[agent], detector = body
            self._detectors[agent] = Detector.from_data(
                detector, self._settings.change, self._pinned.get(agent, ())
            )
