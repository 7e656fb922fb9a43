"""The trace of a run, as the context that a measurement takes its exemplar from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

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


class Exemplars(NamedTuple):
    """What a meter takes as exemplars: `of` gives those of runs, in their order, and `none` is that of no one run."""

    of: Callable[[Sequence[Run]], Sequence[Any]]
    none: Any


def contexts_of(runs: Sequence[Run]) -> list[Context]:
    """The context of each."""
    return list(map(context_of, runs))


CONTEXTS: Final = Exemplars(contexts_of, NOWHERE)
"""Those of the SDK."""
