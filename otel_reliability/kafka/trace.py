"""One trace alone, rebuilt by the assembler of the single process, at the times its messages tell.

What it tells is a function of its parts and of how far time has come, nothing else: the assembler is called at its own
deadlines, not when somebody happens to look. So a worker that takes a trace over repeats exactly what the one before it did.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from otel_reliability.assembly.assemble import Assemble
from otel_reliability.assembly.assembler import Assembler
from otel_reliability.config import Settings
from otel_reliability.model.event import RunChange, RunEvent
from otel_reliability.model.span import AgentSpan, Evaluation

Timed: TypeAlias = tuple[float, RunEvent]
"""What happened to a run, and when."""
_OVER = frozenset({RunChange.SETTLED, RunChange.WITHDRAWN})


class Part(NamedTuple):
    """What one message told of a trace, and when (seconds of its partition)."""

    now: float
    spans: Sequence[AgentSpan] = ()
    evaluations: tuple[Evaluation, ...] = ()


class Trace:
    """The runs of one trace as its parts come.

    >>> trace = Trace(Settings())
    >>> trace.add(Part(10.0)), trace.due, trace.advance(12.0), trace.due
    ([], 12.0, [], None)
    """

    __slots__ = ("_assembler", "_deadlines", "_idle", "_linger", "_reopen", "_unlooked", "_unsettled", "spans")

    def __init__(self, settings: Settings, assemble: Assemble | None = None) -> None:
        self._assembler = Assembler(settings, assemble)
        times = settings.assembly
        self._linger, self._idle, self._reopen = times.linger, times.idle_timeout, times.reopen
        self._deadlines: list[float] = []
        self._unsettled: set[str] = set()
        self._unlooked = False
        self.spans = 0
        """How many spans came, of any kind."""

    @property
    def accounts(self) -> Counter[tuple[str, str]]:
        """What became of its spans, as `Assembler.accounts`."""
        return self._assembler.accounts

    @property
    def due(self) -> float | None:
        """When something may happen by itself; None: it is over, unless more parts come."""
        if not self._unlooked and not self._assembler.open_runs and not self._unsettled:
            return None
        return self._deadlines[0] if self._deadlines else None

    def add(self, part: Part) -> list[Timed]:
        """Take in what a message told, after what was due before it."""
        events = self.advance(part.now)
        self._assembler.add_all(list(part.spans), part.now)
        for evaluation in part.evaluations:
            self._assembler.evaluate(evaluation, part.now)
        self.spans += len(part.spans)
        self._unlooked = True
        heapq.heappush(self._deadlines, part.now + self._linger)
        heapq.heappush(self._deadlines, part.now + self._idle)
        return events

    def advance(self, now: float) -> list[Timed]:
        """Meet the deadlines up to now, each at its own time."""
        events: list[Timed] = []
        while self._deadlines and self._deadlines[0] <= now:
            at = heapq.heappop(self._deadlines)
            while self._deadlines and self._deadlines[0] == at:
                heapq.heappop(self._deadlines)
            events.extend((at, event) for event in self._tick(at))
        return events

    def _tick(self, at: float) -> list[RunEvent]:
        events = self._assembler.tick(at)
        self._unlooked = False
        for event in events:
            if event.change in _OVER:
                self._unsettled.discard(event.run.run_id)
            else:
                self._unsettled.add(event.run.run_id)
        if self._unsettled and events:
            heapq.heappush(self._deadlines, at + self._reopen)
        elif self._unsettled and not self._deadlines:  # it waits for what it has adopted, and settles with it
            heapq.heappush(self._deadlines, at + max(self._reopen, 1.0))
        return events
