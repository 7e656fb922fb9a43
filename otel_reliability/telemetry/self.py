"""Self-telemetry: what happened to every span, how full each limit is, how
long collections take.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from otel_reliability.engine import Engine
from otel_reliability.model.limit import Limit
from otel_reliability.telemetry import names
from otel_reliability.telemetry.guard import Guard
from otel_reliability.telemetry.instruments import Point, counted
from otel_reliability.telemetry.ledger import ToolLedger


def points(engine: Engine, ledger: ToolLedger) -> Iterator[Point]:
    """Yield the points of an engine."""
    yield from counted(names.SPANS, engine.rising_accounts)
    yield from counted(names.ATTRIBUTES_REFUSED, engine.refused_attributes)
    yield from counted(names.EVALUATIONS_REFUSED, engine.refused_evaluations)
    yield from counted(names.SELF_RUNS, engine.recorded)
    yield from counted(names.CLOSED_RUNS, engine.closed)
    yield names.OPEN_RUNS.name, engine.open_runs, {}
    yield names.INCOMPLETE_RUNS.name, engine.incomplete, {}
    yield names.REVISED_RUNS.name, engine.revised, {}
    view = engine.view
    lost = view.window_losses
    yield names.CLAMPED_RUNS.name, lost.clamped_runs, {}
    yield from counted(names.LATE_RUNS, lost.late_runs)
    yield names.AGENTS.name, len(view), {}
    yield names.EXPIRED_AGENTS.name, lost.expired_agents, {}
    yield names.SESSIONS.name, view.open_sessions, {"state": "open"}
    yield names.SESSIONS.name, view.closed_sessions, {"state": "closed"}
    yield from of_limits((*engine.limits(), *ledger.limits()))
    yield names.EVENT_LAG.name, engine.event_lag, {}
    yield from counted(names.FAULTS, Guard.faults)


def of_host(queue_length: int, queue_capacity: int, collect_duration: float) -> Iterator[Point]:
    """Yield the points that only a host has: of the queues of its span sources, and of its last
    collection (s).
    """
    yield names.QUEUE_LENGTH.name, queue_length, {}
    yield names.QUEUE_CAPACITY.name, queue_capacity, {}
    yield names.COLLECT_DURATION.name, collect_duration, {}


def of_limits(limits: Iterable[Limit]) -> Iterator[Point]:
    """Yield the use of each limit, the limit, and how often it was hit."""
    for limit in limits:
        labels = {"limit": limit.name}
        if limit.used is not None:
            yield names.LIMIT_USED.name, limit.used, labels
        yield names.LIMIT_VALUE.name, limit.limit, labels
        yield names.LIMIT_HITS.name, limit.hits, labels
