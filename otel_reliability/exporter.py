"""The span exporter, which needs no code: `OTEL_TRACES_EXPORTER=otlp,reliability
opentelemetry-instrument python agent.py`.

It receives what an exporter receives: sampled spans, after they ended, in batches, on the thread of
the SDK's `BatchSpanProcessor`. Spans that this dropped are unknown here; a run that lacks its
parent because of it is marked incomplete.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from opentelemetry.metrics import MeterProvider
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from otel_reliability.config import Settings
from otel_reliability.model.run import CloseReason
from otel_reliability.telemetry.guard import Guard
from otel_reliability.telemetry.live import WAIT_TIMEOUT_S, SpanSource, live_of, settings_from
from otel_reliability.telemetry.span_queue import read_span

MAX_HELP_S: Final = 0.5e-3
"""Seconds per exported span that the exporting thread works for: it may be the host's own."""

_EXPORT: Final = Guard("ReliabilitySpanExporter.export")
_FLUSH: Final = Guard("ReliabilitySpanExporter.force_flush")
_SHUTDOWN: Final = Guard("ReliabilitySpanExporter.shutdown")


class ReliabilitySpanExporter(SpanExporter, SpanSource):
    """Hands its spans to the engine of a `MeterProvider`, and keeps none.

    Args:
        settings: how to count; from the environment and `options` where absent. meter_provider:
        where the numbers go; the global one where absent, whether it is set before or after.
        options: settings by name, as the SDK's declarative configuration hands them over (`window:
        50`).

    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        meter_provider: MeterProvider | None = None,
        **options: object,
    ) -> None:
        self._live = live_of(
            meter_provider, settings_from(options) if settings is None else settings
        )
        self._stopped = False
        self._live.attach(self)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Read ended spans. A span that cannot be read is counted and harms no other."""
        if self._stopped:
            return SpanExportResult.FAILURE
        with _EXPORT:
            if spans:
                self._live.begin(spans[0].resource)
            engine = self._live.engine
            found = (read for span in spans if (read := read_span(span, engine)) is not None)
            if not engine.receive(found, wait=WAIT_TIMEOUT_S):
                engine.count("refused", "busy", len(spans))
            self._live.work(len(spans) * MAX_HELP_S)
        return SpanExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Close every run and record it, so that the next collection includes all of them."""
        with _FLUSH:
            return self._live.flush(CloseReason.FLUSH, min(WAIT_TIMEOUT_S, timeout_millis / 1e3))
        return False

    def shutdown(self) -> None:
        """Stop: spans that are exported later are refused."""
        with _SHUTDOWN:
            if not self._stopped:
                self._stopped = True
                self._live.detach(self)
