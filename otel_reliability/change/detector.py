"""The detector of one agent: has its behaviour changed?"""

from __future__ import annotations

import enum
import math
from array import array
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from zlib import crc32

from msgspec import convert

from otel_reliability.change.alarm import Alarm, tool_shifts
from otel_reliability.change.points import ChangePoints
from otel_reliability.change.reference import SIZE, Reference
from otel_reliability.change.signal_state import WINDOW, SignalState
from otel_reliability.change.signals import ALL_SIGNALS, FURTHER, PATH, SIGNALS, are_known
from otel_reliability.change.task_order import in_blocks
from otel_reliability.change.work import Work
from otel_reliability.config import ChangeSettings
from otel_reliability.model.blake2 import blake2b
from otel_reliability.model.observation import Observation, Steps

WARM_UP: Final = 20
"""Number of observations after the reference that add no evidence: their paths are ranked among too
few.
"""

BLIND: Final = SIZE + WARM_UP
"""Number of observations at the start, and after every alarm, in which no change can be detected.
"""

MAX_ALARMS: Final = 20
"""Maximum number of alarms that are kept."""
_RECENT: Final = 20
_STATE_VERSION: Final = 3


class Status(enum.Enum):
    """The state of a detector."""

    LEARNING = "learning"
    WATCHING = "watching"
    BLOCKS = "tasks stand in blocks"
    SHORT_REFERENCE = "the pinned reference has fewer than 60 observations"


class Evidence(NamedTuple):
    """A detector's reading. `log10` is the evidence for a change (the alarm comes at log10 of c)
    and `signals` each signal's own; absent where there is none. `blind` is the number of
    observations until a change can be detected.
    """

    status: Status
    observations: int
    blind: int
    log10: float | None
    signals: Mapping[str, float]


class Detector:
    """Detects that an agent behaves otherwise than before.

    **Life.** The first 40 observations are the reference. Those after it are monitored: each gives
    one value per signal, whose rank is bet on (`signal_state`). An alarm clears everything, and the
    next 40 observations are the new reference. With a pinned reference (observations of a
    recording) the first 40 of that are the reference and its others fill the ranks; an alarm leads
    back to it.

    **Ranks** are among earlier values of the same group of requests, so that a mix of work that
    moves is no change. The values of the reference are among these, except for paths: a path's
    value is its distance to those of the reference.

    **The alarm** comes when the evidence reaches `change.runs_per_false_alarm`. While observations
    are exchangeable, a false one comes on average no sooner than once in that many observations.
    The evidence is the sum of the signals' statistics over the number of signals: an absent signal
    adds nothing, and counts. Further signals (of coding agents, of agents that report cached
    tokens) are among them only where an observation of the reference has data for them.

    >>> from otel_reliability.model.observation import Observation
    >>> detector = Detector(ChangeSettings(runs_per_false_alarm=100))
    >>> def observation(n: int, calls: int) -> Observation:
    ...     return Observation(f"run-{n}", n, n, None, calls, None, None, None, None)
    >>> before = [detector.add(observation(n, 3 + n % 2)) for n in range(100)]
    >>> after = [detector.add(observation(n, 7)) for n in range(100, 120)]
    >>> [
    ...     (alarm.observation, alarm.signal, alarm.since_observation)
    ...     for alarm in before + after
    ...     if alarm
    ... ]
    [(104, 'calls', 101)]
    """

    def __init__(self, settings: ChangeSettings, pinned: Sequence[Observation] = ()) -> None:
        self._threshold = settings.runs_per_false_alarm
        self._pinned = tuple(pinned)
        self.observations = 0
        """Number of observations added."""
        self._alarms: deque[Alarm] = deque(maxlen=MAX_ALARMS)
        self._tasks = array("I")
        """Checksums of the tasks of the last 500 observations that have one."""
        self.points = ChangePoints()
        """The change points of all observations, whatever is detected in them."""
        for observation in self._pinned:
            self.points.add(observation, 0)
        self.points.latest.clear()
        self._work = Work(settings.runs_per_false_alarm)
        """The groups of requests, among whose observations values are ranked."""
        self._pinned_groups = [
            self._work.add(observation, ordinal)[0]
            for ordinal, observation in enumerate(self._pinned, -len(self._pinned))
        ]
        self.reset()

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The latest alarms, at most 20, oldest first."""
        return tuple(self._alarms)

    def add(self, observation: Observation) -> Alarm | None:
        """Add the next observation, in order of closing. Return the alarm if the change is detected
        here.
        """
        self.observations += 1
        self._reading = None
        self.points.add(observation, self.observations)
        group, about_work = self._work.add(observation, self.observations)
        self.points.note(about_work)
        if observation.task is not None:
            self._tasks.append(crc32(observation.task.encode("utf-8", "surrogatepass")))
            del self._tasks[:-WINDOW]
        if self._short:
            return None
        self._recent.append(observation.path)
        self._observe(observation, self.observations, group, count=True)
        return (
            self._report_and_reset(observation)
            if self._mean_evidence() >= self._threshold
            else None
        )

    def evidence(self) -> Evidence:
        """Return the detector's reading, computed once per observation."""
        if self._reading is None:
            self._reading = self._read()
        return self._reading

    def _read(self) -> Evidence:
        status = self._status()
        known = self._states if status is Status.WATCHING else ()
        mean = self._mean_evidence() if known else 0.0
        return Evidence(
            status,
            self.observations,
            0 if self._short else max(0, BLIND - len(self._reference.paths) - self._monitored),
            math.log10(mean) if mean > 0 else None,
            {state.signal: math.log10(state.evidence) for state in known if state.evidence > 0},
        )

    def reset(self) -> None:
        """Forget what was learnt: the next observations are the reference, unless one is pinned.
        The alarms stay on record.
        """
        self._reference = Reference()
        self._monitored = 0
        self._states = [SignalState(signal) for signal in SIGNALS]
        self._reading: Evidence | None = None
        self._recent: deque[Steps | None] = deque(maxlen=_RECENT)
        self._short = 0 < len(self._pinned) < BLIND
        if self._short:
            return
        # The agent's own begin with 1.
        for ordinal, observation in enumerate(self._pinned, -len(self._pinned)):
            self._observe(observation, ordinal, self._pinned_groups[ordinal], count=False)
        for state in self._states:
            state.forget_since()

    def _observe(self, observation: Observation, ordinal: int, group: int, *, count: bool) -> None:
        learning = not self._reference.full
        if learning:
            self._reference.add(observation.path)
            self._take_up(observation)
        else:
            self._monitored += 1
        count = count and self._monitored > WARM_UP
        for state in self._states:
            value = ALL_SIGNALS[state.signal].read(observation)
            if state.signal == PATH and observation.path is not None and not learning:
                value = self._reference.distance(observation.path)
            if value is not None:
                state.add(value, observation, ordinal, group, count=count)

    def _take_up(self, observation: Observation) -> None:
        """Take up the further signals for which this observation has data."""
        known = {state.signal for state in self._states}
        for further in FURTHER:
            read = (signal.read(observation) for signal in further.values())
            if known.isdisjoint(further) and any(value is not None for value in read):
                self._states += map(SignalState, further)

    def _mean_evidence(self) -> float:
        return sum([state.evidence for state in self._states]) / len(self._states)

    def _status(self) -> Status:
        if self._short:
            return Status.SHORT_REFERENCE
        if in_blocks(self._tasks):
            return Status.BLOCKS
        return Status.WATCHING if self._monitored >= WARM_UP else Status.LEARNING

    def _report_and_reset(self, observation: Observation) -> Alarm | None:
        """Report the change and start again. Where tasks come in blocks the evidence means nothing,
        and nothing is reported.
        """
        alarm = None if in_blocks(self._tasks) else self._described(observation)
        self.reset()
        if alarm is not None:
            self._alarms.append(alarm)
        return alarm

    def _described(self, observation: Observation) -> Alarm:
        first, *others = sorted(self._states, key=lambda state: -state.evidence)
        changed = [first, *(state for state in others if state.evidence >= self._threshold / 2)]
        latest = list(self._recent)[-max(1, first.values_since) :]
        return Alarm(
            self.observations,
            observation.id,
            observation.end_ns,
            tuple(state.change() for state in changed),
            tool_shifts(self._reference.paths, latest),
            self.points.after(self._alarms[-1].observation if self._alarms else 0),
        )

    def to_data(self) -> dict[str, Any]:
        """Return the whole state as values that JSON and MessagePack can hold, so that a restart
        continues where this stopped.

        Keys: `version`, `pinned` (a hash of the pinned ids), `observations`, `monitored`,
        `reference` and `recent` (paths), `signals` (`SignalState.to_data` by name), `tasks`,
        `alarms`, `points`. At most some 25 KB for an agent.
        """
        return {
            "version": _STATE_VERSION,
            "pinned": self._pin(),
            "observations": self.observations,
            "monitored": self._monitored,
            "reference": list(self._reference.paths),
            "signals": {state.signal: state.to_data() for state in self._states},
            "tasks": self._tasks.tolist(),
            "recent": list(self._recent),
            "alarms": list(self._alarms),
            "points": self.points.to_data(),
            "work": self._work.to_data(),
        }

    @classmethod
    def from_data(
        cls, data: Mapping[str, Any], settings: ChangeSettings, pinned: Sequence[Observation] = ()
    ) -> Detector:
        """Return the detector that `to_data` gave. With another pinned reference, or other signals,
        it learns again.
        """
        detector = cls(settings, pinned)
        detector.observations = data["observations"]
        detector._alarms.extend(convert(data["alarms"], list[Alarm]))
        detector._tasks.extend(data["tasks"])
        detector.points = ChangePoints.from_data(data["points"])
        same_pin = data["pinned"] == detector._pin()
        if "work" in data and same_pin:  # the groups of another reference have other numbers
            detector._work = Work.from_data(data["work"], settings.runs_per_false_alarm)
        same = data["version"] == _STATE_VERSION and same_pin
        if same and are_known(data["signals"].keys()):
            detector._monitored = data["monitored"]
            detector._reference = Reference(convert(data["reference"], list[Steps | None]))
            detector._states = [
                SignalState.from_data(name, state) for name, state in data["signals"].items()
            ]
            detector._recent.extend(convert(data["recent"], list[Steps | None]))
        return detector

    def _pin(self) -> str:
        text = "\0".join(observation.id for observation in self._pinned)
        return (
            blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
            if text
            else ""
        )
