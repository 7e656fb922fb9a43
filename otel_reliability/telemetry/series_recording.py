"""Record final runs in counters and histograms, and end the series of agents that expired."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

from otel_reliability.engine import Engine
from otel_reliability.model.run import AgentKey, Run, RunChange, RunEvent
from otel_reliability.telemetry import log_events, names
from otel_reliability.telemetry.exposition import Labels, Registry, of_agent, owner_of
from otel_reliability.telemetry.ledger import ToolLedger
from otel_reliability.telemetry.recorder import Recorder, readings_of
from otel_reliability.windows.agents import OTHER_AGENT

MAX_TOOLS: Final = 200_000
"""Tools with series of their own, of all agents together."""
SWEEP_INTERVAL_S: Final = 15.0
"""Seconds between two checks of which agents have expired."""


class SeriesRecording:
    """Records what an engine has made final in a registry. Called on the writer's thread."""

    def __init__(self, engine: Engine, registry: Registry) -> None:
        self.ledger = ToolLedger(engine.settings, MAX_TOOLS)
        self.registry = registry
        self._engine = engine
        self._recorder = Recorder(registry, engine.settings, self.ledger)
        self._closed: list[Run] = []
        self._known: frozenset[AgentKey] = frozenset()
        self._sweep_at = 0.0
        engine.observers.append(self._observe)

    def record(self, commit: Callable[[], None] | None = None) -> bool:
        """Record what became final since the last call. False: nothing did.

        `commit` stores what follows from it. No reader sees the series in between.
        """
        engine = self._engine
        registry = self.registry
        recorder = self._recorder
        closed = self._closed
        self._closed = []
        final = engine.take_final()
        revised = engine.take_revised()
        scored = engine.take_scored()
        changes = engine.take_changes()
        late = engine.take_late()
        keys = {run.key for run in closed}
        counted_as = engine.read(lambda view: {key: view.counted_as(key) for key in keys}) or {}
        runs = (*final, *revised)
        readings = (engine.read(partial(readings_of, runs)) if runs else None) or {}
        self._sweep()
        try:
            with registry.lock:
                if closed:
                    recorder.begin(closed, counted_as.__getitem__)
                if final:
                    recorder.record(final, readings)
                if revised:
                    recorder.revise(revised, readings)
                recorder.late(late)
                recorder.score(scored)
                recorder.change(changes)
                if commit is not None:
                    commit()
        finally:
            log_events.emit(changes)
        return bool(runs or late or scored or changes)

    def exceed(self) -> None:
        """Record the open runs that exceed a bound at once: they wait for no transaction."""
        excesses = self._engine.take_excesses()
        if excesses:
            with self.registry.lock:
                self._recorder.exceed(excesses)
            log_events.emit(excesses)

    def discard(self) -> None:
        """Forget what became final while arrivals were applied again that are recorded already."""
        self._closed.clear()
        engine = self._engine
        for take in (
            engine.take_final,
            engine.take_revised,
            engine.take_scored,
            engine.take_changes,
            engine.take_late,
        ):
            take()

    def changes(self) -> Iterator[tuple[Any, Any]]:
        """Yield the series that changed, as plain data."""
        for name, labels, data in self.registry.take_touched():
            yield [name, labels], data

    def restore(self, data: Iterable[tuple[Any, Any]]) -> None:
        """Replace all series, and let every tool that has one have it again."""
        self.registry.restore(
            (name, tuple((key, value) for key, value in labels), body)
            for (name, labels), body in data
        )
        self._known = frozenset(self._engine.view.keys())
        agents: dict[Labels, AgentKey] = {tuple(of_agent(key).items()): key for key in self._known}
        spec = names.TOOL_CALLS
        found = (
            (agents.get(owner_of(spec, labels)), dict(labels)[names.TOOL])
            for labels in self.registry.labels(spec)
        )
        places = {
            (key, str(tool)) for key, tool in found if key is not None and tool != names.OTHER
        }
        self.ledger.restore(places)

    def _observe(self, event: RunEvent, now: float) -> None:
        change = event.change
        if change is RunChange.CLOSED or change is RunChange.REVISED:
            self._closed.append(event.run)

    def _sweep(self) -> None:
        """End the series of agents that have expired. Those beyond the limit of agents are counted
        together, for ever.
        """
        now = self._engine.now()
        if now < self._sweep_at:
            return
        self._sweep_at = now + SWEEP_INTERVAL_S
        keys = frozenset(self._engine.read(lambda view: view.keys()) or ())
        if self._known - keys:
            self.ledger.keep(keys)
            self.registry.keep({tuple(of_agent(key).items()) for key in (*keys, OTHER_AGENT)})
        self._known = keys
