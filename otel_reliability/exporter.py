"""The door that needs no code: `OTEL_TRACES_EXPORTER=otlp,reliability opentelemetry-instrument python agent.py`.

It sees what an exporter sees: sampled spans, after they ended, in batches, on the thread of the SDK's `BatchSpanProcessor`.
What that dropped it cannot see; runs that lack a parent for it are marked incomplete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from opentelemetry.metrics import MeterProvider
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from otel_reliability.config import Settings
from otel_reliability.model.run import CloseReason
from otel_reliability.model.span import AgentSpan
from otel_reliability.telemetry.capture import read_span
from otel_reliability.telemetry.guard import Guard
from otel_reliability.telemetry.live import PATIENCE, live_of
from otel_reliability.telemetry.options import settings_from

_EXPORT: Final = Guard("ReliabilitySpanExporter.export")
_FLUSH: Final = Guard("ReliabilitySpanExporter.force_flush")
_SHUTDOWN: Final = Guard("ReliabilitySpanExporter.shutdown")


class ReliabilitySpanExporter(SpanExporter):
    """Hands the spans it is given to the engine of a `MeterProvider`, and keeps none.

    Args:
        settings: how to count; from the environment and `options` where absent.
        meter_provider: where the numbers go; the global one where absent, whether it is set before or after.
        options: settings by name, as the SDK's declarative configuration hands them over (`window: 50`).

    """

    def __init__(
        self, settings: Settings | None = None, *, meter_provider: MeterProvider | None = None, **options: object
    ) -> None:
        self._live = live_of(meter_provider, settings_from(options) if settings is None else settings)
        self._stopped = False
        self._live.attach(self)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Take in ended spans. A span that cannot be read is counted and harms no other."""
        if self._stopped:
            return SpanExportResult.FAILURE
        with _EXPORT:
            if spans:
                self._live.begin(spans[0].resource)
            if not self._live.engine.receive(self._read(spans), wait=PATIENCE):
                self._live.engine.count("refused", "busy", len(spans))
            if self._live.due():
                self._live.tick(PATIENCE)
        return SpanExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Close every run and record it, so that the next collection has all there is."""
        with _FLUSH:
            return self._live.flush(CloseReason.FLUSH, min(PATIENCE, timeout_millis / 1e3))
        return False

    def shutdown(self) -> None:
        """No span will come."""
        with _SHUTDOWN:
            if not self._stopped:
                self._stopped = True
                self._live.detach(self)

    @property
    def queued(self) -> tuple[int, int]:
        """Nothing is ever queued here."""
        return 0, 0

    def drain(self, wait: float) -> bool:
        """Nothing is ever queued here."""
        return True

    def restart(self) -> None:
        """Nothing is kept here that a forked child could inherit."""

    def _read(self, spans: Sequence[ReadableSpan]) -> Iterator[AgentSpan]:
        for span in spans:
            read = read_span(span, self._live.engine)
            if read is not None:
                yield read
