"""The detector of one agent: has its behaviour changed?"""

from __future__ import annotations

import enum
import hashlib
import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from otel_reliability.change.alarm import Alarm, tool_shifts
from otel_reliability.change.blocks import TaskOrder
from otel_reliability.change.reference import SIZE, Reference
from otel_reliability.change.signals import checked, readers
from otel_reliability.change.units import Steps, Unit
from otel_reliability.change.watch import Watch, at
from otel_reliability.config import ChangeSettings

WARM_UP: Final = 20
"""Units after the reference whose ranks are taken, but do not count yet: they are among too few."""

BLIND: Final = SIZE + WARM_UP
"""Units at the start, and after every alarm, in which no change can be told."""

KEPT_ALARMS: Final = 20
_RECENT: Final = 20
_STATE_VERSION: Final = 1


class Standing(enum.Enum):
    """What a detector can say now."""

    LEARNING = "learning"
    WATCHING = "watching"
    BLOCKS = "tasks stand in blocks"
    SHORT_REFERENCE = "the pinned reference has fewer than 60 units"


class Evidence(NamedTuple):
    """A detector's reading. `log10` is the evidence for a change (the alarm comes at log10 of c) and `signals` each
    signal's own; absent where there is none. `blind` is the number of units until a change can be told.
    """

    standing: Standing
    units: int
    blind: int
    log10: float | None
    signals: Mapping[str, float]
    changes: int
    last: Alarm | None


class Detector:
    """Learns 40 units as the reference, then watches the signals of each further unit; an alarm clears everything.

    The evidence is the sum of the signals' statistics over the number of configured signals, so that a signal that is
    absent lends nothing; the alarm comes when it reaches `change.runs_per_false_alarm`. While the units are exchangeable,
    a false alarm comes on average no sooner than once in that many units.

    With a pinned reference (units of a recording) the first 40 of it are the reference and the others fill the ranks;
    an alarm leads back to it.

    >>> from otel_reliability.change.units import Unit
    >>> detector = Detector(ChangeSettings(signals=("calls",), runs_per_false_alarm=100))
    >>> def unit(n: int, calls: int) -> Unit:
    ...     return Unit(f"run-{n}", n, n, None, calls, None, None, None, None)
    >>> before = [detector.add(unit(n, 3 + n % 2)) for n in range(100)]
    >>> after = [detector.add(unit(n, 7)) for n in range(100, 120)]
    >>> [alarm and (alarm.unit, alarm.signal, alarm.since_unit) for alarm in before + after if alarm]
    [(107, 'calls', 102)]
    """

    def __init__(self, settings: ChangeSettings, pinned: Sequence[Unit] = ()) -> None:
        self._signals = checked(settings.signals)
        self._threshold = settings.runs_per_false_alarm
        self._pinned = tuple(pinned)
        self._units = 0
        self._changes = 0
        self._alarms: deque[Alarm] = deque(maxlen=KEPT_ALARMS)
        self._tasks = TaskOrder()
        self._reading: Evidence | None = None
        self._start()

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The latest alarms, at most 20, oldest first."""
        return tuple(self._alarms)

    def add(self, unit: Unit) -> Alarm | None:
        """The next unit, in order of closing. Returns the alarm, if this is where the change is noticed."""
        self._units += 1
        self._reading = None
        if unit.task is not None:
            self._tasks.add(unit.task)
        if self._short:
            return None
        self._recent.append(unit.path)
        self._take(unit, self._units, count=True)
        return self._alarm(unit) if self._mean_evidence() >= self._threshold else None

    def reset(self) -> None:
        """Forget what was learnt: the next units are the reference. The alarms stay on record."""
        self._start()

    def evidence(self) -> Evidence:
        """What can be said now; computed once a unit, however often it is asked for."""
        if self._reading is None:
            self._reading = self._read()
        return self._reading

    def _read(self) -> Evidence:
        standing = self._standing()
        known = self._watches if standing is Standing.WATCHING else ()
        mean = self._mean_evidence() if known else 0.0
        return Evidence(
            standing,
            self._units,
            0 if self._short else max(0, BLIND - len(self._reference.paths) - self._monitored),
            math.log10(mean) if mean > 0 else None,
            {watch.signal: math.log10(watch.evidence) for watch in known if watch.evidence > 0},
            self._changes,
            self._alarms[-1] if self._alarms else None,
        )

    def _start(self) -> None:
        """Everything as before the first unit; with a pinned reference, as after it."""
        self._reference = Reference()
        self._monitored = 0
        self._watches = [Watch(signal) for signal in self._signals]
        self._reading = None
        self._recent: deque[Steps | None] = deque(maxlen=_RECENT)
        self._short = 0 < len(self._pinned) < BLIND
        if not self._short:
            self._learn_pinned()

    def _learn_pinned(self) -> None:
        """Ordinals of the pinned units are negative, so that the agent's own begin with 1 all the same."""
        for ordinal, unit in enumerate(self._pinned, -len(self._pinned)):
            self._take(unit, ordinal, count=False)
        for watch in self._watches:
            watch.forget_since()

    def _take(self, unit: Unit, ordinal: int, *, count: bool) -> None:
        if not self._reference.full:
            self._reference.learn(unit.path)
            return
        self._monitored += 1
        count = count and self._monitored > WARM_UP
        where = at(unit, ordinal)
        for watch, read in zip(self._watches, readers(self._signals), strict=True):
            value = self._distance(unit.path) if read is None else read(unit)
            if value is not None:
                watch.see(value, where, count=count)

    def _distance(self, path: Steps | None) -> float | None:
        return None if path is None else self._reference.distance(path)

    def _mean_evidence(self) -> float:
        return sum([watch.evidence for watch in self._watches]) / len(self._signals)

    def _standing(self) -> Standing:
        if self._short:
            return Standing.SHORT_REFERENCE
        if self._tasks.in_blocks:
            return Standing.BLOCKS
        return Standing.WATCHING if self._monitored >= WARM_UP else Standing.LEARNING

    def _alarm(self, unit: Unit) -> Alarm | None:
        """Tell the change and start anew. Where tasks stand in blocks the evidence is worth nothing, and nothing is told."""
        alarm = None if self._tasks.in_blocks else self._described(unit)
        self._start()
        if alarm is not None:
            self._changes += 1
            self._alarms.append(alarm)
        return alarm

    def _described(self, unit: Unit) -> Alarm:
        by_evidence = sorted(self._watches, key=lambda watch: -watch.evidence)
        loud = [by_evidence[0], *(watch for watch in by_evidence[1:] if watch.evidence >= self._threshold / 2)]
        latest = list(self._recent)[-max(1, by_evidence[0].values_since) :]
        return Alarm(
            self._units,
            unit.id,
            unit.end_ns,
            tuple(watch.told() for watch in loud),
            tool_shifts(self._reference.paths, latest),
        )

    def to_state(self) -> dict[str, Any]:
        """Everything, in plain values: a restart goes on where this stopped."""
        return {
            "version": _STATE_VERSION,
            "pinned": self._pin(),
            "units": self._units,
            "monitored": self._monitored,
            "reference": self._reference.to_state(),
            "watches": {watch.signal: watch.to_state() for watch in self._watches},
            "tasks": self._tasks.to_state(),
            "recent": [None if path is None else list(path) for path in self._recent],
            "changes": self._changes,
            "alarms": [alarm.to_state() for alarm in self._alarms],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any], settings: ChangeSettings, pinned: Sequence[Unit] = ()) -> Detector:
        """What `to_state` wrote. Under another pinned reference, or other signals, it learns anew; its alarms stay."""
        detector = cls(settings, pinned)
        detector._units, detector._changes = state["units"], state["changes"]
        detector._alarms.extend(map(Alarm.from_state, state["alarms"]))
        detector._tasks = TaskOrder(state["tasks"])
        same = state["version"] == _STATE_VERSION and state["pinned"] == detector._pin()
        if same and set(state["watches"]) == set(detector._signals):
            detector._monitored = state["monitored"]
            detector._reference = Reference.from_state(state["reference"])
            detector._watches = [Watch.from_state(signal, state["watches"][signal]) for signal in detector._signals]
            detector._recent.extend(None if path is None else tuple(path) for path in state["recent"])
        return detector

    def _pin(self) -> str:
        """What tells one pinned reference from another."""
        text = "\0".join(unit.id for unit in self._pinned)
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest() if text else ""
