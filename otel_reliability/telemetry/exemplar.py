"""The root span of a run as the context from which the SDK takes an exemplar."""

from __future__ import annotations

from typing import Final

from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from otel_reliability.model.run import Run

NO_SPAN: Final = set_span_in_context(INVALID_SPAN, Context())
"""A context without a span. In place of an empty context the SDK would use the host's current span on this thread."""


def context_of(run: Run | None) -> Context:
    """Return a context whose current span is the run's root; `NO_SPAN` if the root never arrived, or there is no single run."""
    if run is None or run.root_span_id is None:
        return NO_SPAN
    root = SpanContext(
        int.from_bytes(run.trace_id, "big"),
        int.from_bytes(run.root_span_id, "big"),
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )
    return set_span_in_context(NonRecordingSpan(root), Context())
