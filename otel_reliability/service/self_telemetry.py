"""Self-telemetry of the service: engine, receivers, queue, exports."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from otel_reliability.service.health import Memory, Readiness
from otel_reliability.service.intake import Intake
from otel_reliability.service.persistence import Volatile
from otel_reliability.service.state import State
from otel_reliability.telemetry import names
from otel_reliability.telemetry import self as self_telemetry
from otel_reliability.telemetry.instruments import Point, counted
from otel_reliability.telemetry.otlp import OtlpPush


def points(
    state: State,
    intake: Intake,
    readiness: Readiness,
    persistence: Volatile,
    memory: Memory,
    push: Callable[[], OtlpPush | None],
) -> Iterator[Point]:
    """Yield the current values of all instruments of the service itself."""
    engine, ledger = state.engine, state.recording.ledger
    yield from engine.read(lambda _: list(self_telemetry.points(engine, ledger))) or ()
    yield from counted(names.REQUESTS, intake.requests)
    yield names.REQUESTS_WAITING.name, intake.budget.held, {}
    yield names.READY.name, 0 if readiness.reasons else 1, {}
    yield from counted(names.LOG_RECORDS, state.logs)
    yield from self_telemetry.of_limits((*intake.limits(), *memory.limits(), *persistence.limits()))
    sender, sink = push(), "metrics"
    if sender is not None:
        outcomes = dict(sender.exporter.outcomes)
        yield from counted(names.EXPORTS, {(sink, outcome): number for outcome, number in outcomes.items()})
        yield from counted(names.EXPORT_DURATION, {sink: sender.exporter.duration})
