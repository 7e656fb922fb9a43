"""All state of the service, joined: the engine, the runs other services tell, the counters. One thread at a time changes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from otel_reliability.config import Settings
from otel_reliability.engine import Ceiling, Engine
from otel_reliability.model.run import CloseReason
from otel_reliability.service.decoded import Decoded
from otel_reliability.service.run_inbox import RunInbox


class Keeper(Protocol):
    """A part of the service whose state is kept over a restart."""

    def to_state(self) -> Any:
        """What is to be kept: it is written down before anything changes it."""
        ...

    def restore(self, state: Any) -> None:
        """Take over what `to_state` gave."""
        ...


class State:
    """What requests change, and time.

    `logs` counts log records by (what became of them, why). `record` is called after every change that may have settled runs.
    """

    def __init__(self, settings: Settings, engine: Engine) -> None:
        self.settings, self.engine = settings, engine
        self.inbox = RunInbox(settings.assembly)
        self.logs: Counter[tuple[str, str]] = Counter()
        self.watchers: list[Callable[[], None]] = []
        """Called after every step in which deadlines were met: they take what has settled."""
        self.finishers: list[Callable[[], object]] = []
        """Called when every run is closed and settled: they take what is left."""
        self.ceilings: Callable[[], Iterable[Ceiling]] = tuple
        """What a journal may hold, where there is one."""
        self.keepers: dict[str, Keeper] = {}
        """What else must outlive the process, by name."""
        self.steps = 0
        """How often a request was applied, or deadlines were met: it rises while the writer gets on."""

    def apply(self, request: Decoded) -> None:
        """Take in one request."""
        if request.spans:
            self.engine.receive(request.spans)
        if request.evaluations:
            self.engine.receive_evaluations(request.evaluations)
        if request.records:
            now = self.engine.now()
            self.engine.receive_events([event for one in request.records for event in self.inbox.take(one, now)])
        self._count(request)
        self.steps += 1

    def advance(self) -> None:
        """Meet every deadline that has passed."""
        self.engine.receive_events(self.inbox.tick(self.engine.now()))
        self.engine.tick()
        self._watched()
        self.steps += 1

    def close_all(self) -> None:
        """Close and settle every run: nothing will come."""
        self.engine.receive_events(self.inbox.settle_all(self.engine.now()))
        self.engine.flush(CloseReason.SHUTDOWN)
        self._watched()
        for finish in self.finishers:
            finish()

    def to_state(self) -> dict[str, Any]:
        """All but the windows, to be written down before anything changes it."""
        kept = {name: keeper.to_state() for name, keeper in self.keepers.items()}
        return {"engine": self.engine.to_state(), "inbox": self.inbox, "logs": self.logs, **kept}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `to_state` gave."""
        self.engine.restore(state["engine"])
        self.inbox, self.logs = state["inbox"], state["logs"]
        for name, keeper in self.keepers.items():
            if name in state:
                keeper.restore(state[name])

    def _watched(self) -> None:
        for watcher in self.watchers:
            watcher()

    def _count(self, request: Decoded) -> None:
        for reason, number in request.malformed.items():
            if reason in LOG_REASONS:
                self.logs["malformed", reason] += number
            else:
                self.engine.count("malformed", reason, number)
        self.logs["evaluation", ""] += len(request.evaluations)
        self.logs["run", ""] += len(request.records)
        self.logs["other", ""] += request.other_logs


LOG_REASONS = frozenset({"evaluation", "run_record"})
"""Reasons that speak of a log record, not of a span."""
