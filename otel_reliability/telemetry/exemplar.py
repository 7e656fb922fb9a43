"""The trace of a run, as the context that a measurement takes its exemplar from."""

from __future__ import annotations

from typing import Final

from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from otel_reliability.model.run import Run

NOWHERE: Final = set_span_in_context(INVALID_SPAN, Context())
"""No trace. Not an empty context: for that the SDK would take whatever span of the host is current on this thread."""


def context_of(run: Run | None) -> Context:
    """A context in which the run's root is the current span; `NOWHERE` if it never came, or there is no one run."""
    if run is None or run.root_span_id is None:
        return NOWHERE
    root = SpanContext(
        int.from_bytes(run.trace_id, "big"),
        int.from_bytes(run.root_span_id, "big"),
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )
    return set_span_in_context(NonRecordingSpan(root), Context())
