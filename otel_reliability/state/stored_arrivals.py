"""The rows of `arrival`: which of them are stored, and which something still needs.

A row is needed until the runs that it belongs to are final. Moments at which deadlines were met are
needed as long as a row before them: a restart meets the deadlines again between the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from otel_reliability.assembly.evaluations import WAIT
from otel_reliability.assembly.lifecycle import Assembler
from otel_reliability.config import Settings
from otel_reliability.state.clock import Moment
from otel_reliability.state.parts import FinalTraceRecords, OpenTraces
from otel_reliability.state.store import EVALUATIONS, TICK, Arrival

MAX_TICKS: Final = 10_000
"""Moments stored; of more, every other one is deleted, and runs are closed a moment later when they
are assembled again.
"""


class StoredArrivals:
    """The stored rows of requests and moments. `last` and `moment` are those of the latest row."""

    def __init__(
        self, assembler: Assembler, final: FinalTraceRecords, settings: Settings, moment: Moment
    ) -> None:
        self.last = 0
        self.moment = moment
        self.open = OpenTraces(assembler, final, settings)
        self._wait = WAIT + settings.assembly.idle_timeout + settings.assembly.reopen
        self._ticks: list[int] = []
        self._evaluations: list[tuple[float, int]] = []
        self._counts: list[int] = []
        self._ends_in_idle_tick = False

    def add(self, arrival: Arrival) -> None:
        """Note a stored row: it is deleted when nothing needs it."""
        if arrival.trace is not None:
            self.open.add(arrival.trace, arrival.seq, arrival.now)
        elif arrival.kind == TICK:
            self._ticks.append(arrival.seq)
        elif arrival.kind == EVALUATIONS:
            self._evaluations.append((arrival.now, arrival.seq))
        else:
            self._counts.append(arrival.seq)
        if arrival.seq >= self.last:
            self.resume(arrival.seq, arrival.moment)
        self._ends_in_idle_tick = False

    def resume(self, last: int, moment: Moment) -> None:
        """Go on after a row that is stored."""
        self.last = last
        self.moment = moment

    def next_tick(self, moment: Moment) -> Arrival:
        """Return the row of a moment at which deadlines are met. It replaces the last row where
        that is a moment too, and nothing happened at it.
        """
        return Arrival(self.last + (not self._ends_in_idle_tick), TICK, *moment, None, b"")

    def add_tick(self, tick: Arrival) -> None:
        """Note that `next_tick` is stored."""
        if tick.seq != self.last:
            self._ticks.append(tick.seq)
        self.resume(tick.seq, tick.moment)
        self._ends_in_idle_tick = True

    def keep_last(self) -> None:
        """Let the last row be replaced by no moment: something happened since, or was saved."""
        self._ends_in_idle_tick = False

    def unneeded(self, now: float) -> Iterator[int]:
        """Yield the rows that nothing needs any longer, once: of final traces, old ones of no
        trace, moments before all others.
        """
        yield from self.open.unneeded(now)
        yield from self._counts
        self._counts.clear()
        horizon = now - self._wait
        yield from (seq for at, seq in self._evaluations if at <= horizon)
        self._evaluations = [(at, seq) for at, seq in self._evaluations if at > horizon]
        yield from self._old_ticks()

    def _old_ticks(self) -> Iterator[int]:
        """Yield the moments before all spans that are kept; of too many, every other one of the
        older half.
        """
        first = min(self.open.first, self.last)
        if self._evaluations:
            first = min(first, self._evaluations[0][1])
        ticks = [seq for seq in self._ticks if seq >= first]
        if len(ticks) > MAX_TICKS:
            ticks = ticks[: MAX_TICKS // 2 : 2] + ticks[MAX_TICKS // 2 :]
        yield from sorted(set(self._ticks).difference(ticks, (self.last,)))
        self._ticks = ticks
