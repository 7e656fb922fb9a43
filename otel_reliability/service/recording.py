"""Settled runs → the book of counters and histograms; and the end of the series of agents that are gone."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from otel_reliability.engine import Engine
from otel_reliability.model.event import RunChange, RunEvent
from otel_reliability.model.run import AgentKey, Run
from otel_reliability.telemetry import change_event
from otel_reliability.telemetry.attributes import of_agent
from otel_reliability.telemetry.ledger import ToolLedger
from otel_reliability.telemetry.recorder import Recorder, readings_of
from otel_reliability.telemetry.registry import Registry
from otel_reliability.windows.fleet import OTHER_AGENT

MOST_TOOLS: Final = 200_000
"""Tools with series of their own, of all agents together."""
PAUSE: Final = 1.0
"""Seconds, at least, between two recordings of a service. Runs that settle meanwhile are recorded together: what their windows
say of them is worked out once for all.
"""
SWEEP: Final = 15.0
"""Seconds between two looks at which agents are gone."""


class Recording:
    """Watches an engine and keeps its book. Called on the writer's thread; it records at most once in `pause` seconds."""

    def __init__(self, engine: Engine, book: Registry, pause: float = 0.0) -> None:
        self.ledger = ToolLedger(engine.settings, MOST_TOOLS)
        self._engine, self._book = engine, book
        self._recorder = Recorder(book, engine.settings, self.ledger)
        self._closed: list[Run] = []
        self._pause = pause
        engine.observers.append(self._see)
        self._known: frozenset[AgentKey] = frozenset()
        self._next = self._due = 0.0

    def __call__(self) -> None:
        """Begin the counters of what has closed, and now and then record what has settled."""
        self._begin()
        now = self._engine.now()
        if now >= self._due and self.record():
            self._due = now + self._pause
        if now >= self._next:
            self._next = now + SWEEP
            self._sweep()

    def record(self) -> bool:
        """Record what has settled since the last time. False: there was nothing."""
        settled, revised = self._engine.take_settled(), self._engine.take_revised()
        if settled or revised:
            self._record(settled, revised)
        scored, changes = self._engine.take_scored(), self._engine.take_changes()
        with self._book.lock:
            self._recorder.score(scored)
            self._recorder.change(changes)
        change_event.emit(changes)
        return bool(settled or revised or scored or changes)

    def to_state(self) -> Any:
        """The places of tools, the agents that have series, and when what is to be done next."""
        return (self.ledger.to_state(), self._known, self._next, self._due)

    def restore(self, state: Any) -> None:
        """Take over what `to_state` gave, of an earlier version too: that recorded at once."""
        places, self._known, self._next, *due = state
        self._due = due[0] if due else 0.0
        self.ledger.restore(places)

    def _see(self, event: RunEvent, now: float) -> None:
        change = event.change
        if change is RunChange.CLOSED or change is RunChange.REVISED:
            self._closed.append(event.run)

    def _begin(self) -> None:
        """Begin the counters of runs that have closed: Prometheus sees only how a series rises, not where it begins."""
        closed, self._closed = self._closed, []
        if closed:
            keys = {run.key for run in closed}
            counted_as = self._engine.read(lambda fleet: {key: fleet.counted_as(key) for key in keys}) or {}
            with self._book.lock:
                self._recorder.begin(closed, counted_as.__getitem__)

    def _record(self, settled: list[Run], revised: list[Run]) -> None:
        readings = self._engine.read(partial(readings_of, (*settled, *revised))) or {}
        with self._book.lock:
            self._recorder.record(settled, readings)
            self._recorder.revise(revised, readings)

    def _sweep(self) -> None:
        """End the series of agents that have expired. Those beyond the ceiling are counted together, for ever."""
        keys = frozenset(self._engine.read(lambda fleet: fleet.keys()) or ())
        if self._known - keys:
            self.ledger.keep(keys)
            self._book.keep({tuple(of_agent(key).items()) for key in (*keys, OTHER_AGENT)})
        self._known = keys
