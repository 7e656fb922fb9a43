"""Run records that another service tells → events of runs, as the assembly of this one would tell them.

Records may come twice, late, and in any order: of one run, the one told last stands. A run that is settled there is settled
here; one of which nothing more comes is settled in time all the same.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Final

from otel_reliability.config import AssemblySettings
from otel_reliability.model.event import RunChange, RunEvent
from otel_reliability.model.record import RunRecord
from otel_reliability.model.run import Run

SLACK: Final = 300.0
"""Seconds, beyond its `reopen`, that a record may be under way: as long as a Collector retries."""
MOST: Final = 100_000
"""Runs that are not settled yet; beyond, the longest untouched are settled early."""
MOST_REMEMBERED: Final = 500_000
"""Runs that are over and whose records are known again when they come a second time."""


@dataclass(slots=True)
class _Known:
    """What was last told of a run. `run` is None while it is withdrawn."""

    told_ns: int
    run: Run | None
    touched: float


class RunInbox:
    """The runs that were told, until they are settled, and for a while after.

    `accounts` counts records by what became of them: taken, duplicate, late (of a settled run), and `settled_early`.
    """

    def __init__(self, settings: AssemblySettings, *, most: int = MOST, most_remembered: int = MOST_REMEMBERED) -> None:
        self.accounts: Counter[str] = Counter()
        self._wait = settings.reopen + SLACK
        self._remember = max(settings.remember, SLACK)
        self._most, self._most_remembered = most, most_remembered
        self._open: OrderedDict[str, _Known] = OrderedDict()
        self._over: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def take(self, record: RunRecord, now: float) -> list[RunEvent]:
        """What a record changes."""
        run_id = record.run.run_id
        if run_id in self._over:
            self.accounts["late" if record.change is not RunChange.SETTLED else "duplicate"] += 1
            return []
        known = self._open.get(run_id)
        if known is not None and record.told_ns <= known.told_ns:
            self.accounts["duplicate"] += 1
            return []
        self.accounts["taken"] += 1
        events = self._events(record, None if known is None else known.run)
        self._keep(record, now)
        return events

    def tick(self, now: float) -> list[RunEvent]:
        """Settle what nothing more comes of, and forget what nobody will tell again."""
        events: list[RunEvent] = []
        while self._open and self._is_over(now):
            run_id, known = self._open.popitem(last=False)
            events.extend(self._settled(run_id, known.run, now))
        while self._over and (
            len(self._over) > self._most_remembered or next(iter(self._over.values())) <= now - self._remember
        ):
            self._over.popitem(last=False)
        return events

    def settle_all(self, now: float) -> list[RunEvent]:
        """Nothing more will come."""
        events = [event for run_id, known in self._open.items() for event in self._settled(run_id, known.run, now)]
        self._open.clear()
        return events

    def _events(self, record: RunRecord, before: Run | None) -> list[RunEvent]:
        run = record.run
        if record.change is RunChange.WITHDRAWN:
            return [] if before is None else [RunEvent(RunChange.WITHDRAWN, before)]
        events: list[RunEvent] = []
        if before is None:
            events.append(RunEvent(RunChange.CLOSED, run))
        elif before != run:
            events.append(RunEvent(RunChange.REVISED, run, before))
        if record.change is RunChange.SETTLED:
            events.append(RunEvent(RunChange.SETTLED, run))
        return events

    def _keep(self, record: RunRecord, now: float) -> None:
        run_id = record.run.run_id
        self._open.pop(run_id, None)
        if record.change is RunChange.SETTLED:
            self._over[run_id] = now
        else:
            run = None if record.change is RunChange.WITHDRAWN else record.run
            self._open[run_id] = _Known(record.told_ns, run, now)

    def _is_over(self, now: float) -> bool:
        early = len(self._open) > self._most
        self.accounts["settled_early"] += early
        return early or next(iter(self._open.values())).touched <= now - self._wait

    def _settled(self, run_id: str, run: Run | None, now: float) -> list[RunEvent]:
        self._over[run_id] = now
        return [] if run is None else [RunEvent(RunChange.SETTLED, run)]
