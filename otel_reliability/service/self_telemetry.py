"""Self-telemetry of the service: engine, receivers, queue, exports."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from otel_reliability.model.limit import Limit
from otel_reliability.service.health import Memory, Readiness
from otel_reliability.service.intake import Intake
from otel_reliability.service.persistence import Volatile
from otel_reliability.service.state import State
from otel_reliability.service.writer import Writer
from otel_reliability.telemetry import names
from otel_reliability.telemetry import self as self_telemetry
from otel_reliability.telemetry.instruments import Point, counted
from otel_reliability.telemetry.otlp import OtlpPush


class ServiceTelemetry:
    """Yields the current values of all instruments of the service itself."""

    def __init__(
        self,
        state: State,
        writer: Writer,
        intake: Intake,
        readiness: Readiness,
        persistence: Volatile,
        memory: Memory,
        push: Callable[[], OtlpPush | None],
    ) -> None:
        self._state, self._writer, self._intake, self._readiness = state, writer, intake, readiness
        self._persistence, self._memory, self._push = persistence, memory, push

    def __call__(self) -> Iterator[Point]:
        """Every point."""
        engine, ledger = self._state.engine, self._state.recording.ledger
        yield from engine.read(lambda _: list(self_telemetry.points(engine, ledger))) or ()
        yield from self._receivers()
        yield from self_telemetry.of_limits(self._limits())
        push, sink = self._push(), "metrics"
        if push is not None:
            outcomes = dict(push.outcomes)
            yield from counted(names.EXPORTS, {(sink, outcome): number for outcome, number in outcomes.items()})
            yield from counted(names.EXPORT_DURATION, {sink: push.duration})

    def _receivers(self) -> Iterator[Point]:
        yield from counted(names.REQUESTS, self._intake.requests)
        yield names.REQUESTS_WAITING.name, self._intake.budget.held, {}
        yield names.READY.name, 0 if self._readiness.reasons else 1, {}
        yield from counted(names.LOG_RECORDS, self._state.logs)

    def _limits(self) -> Iterator[Limit]:
        budget = self._intake.budget
        yield Limit("queue_bytes", budget.used, budget.capacity, budget.refused)
        if self._memory.limit is not None:
            yield Limit("memory_bytes", self._memory.used, self._memory.limit, self._memory.crossings)
        yield from self._persistence.limits()
