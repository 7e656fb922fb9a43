from __future__ import annotations

from opentelemetry.trace import get_current_span

from otel_reliability.telemetry.exemplar import NO_SPAN, context_of
from otel_reliability.testing import run


def test_the_root_of_the_run_is_the_exemplar() -> None:
    """The context names the run's trace and root, as sampled: the SDK takes exemplars of sampled traces only."""
    span = get_current_span(context_of(run(number=7))).get_span_context()

    assert (span.trace_id, span.span_id, span.trace_flags.sampled) == (7, 1, True)


def test_a_run_without_a_root_has_no_exemplar() -> None:
    """And never the host's current span: a context that is empty would be taken for no context at all."""
    context = context_of(run(root_span_id=None))

    assert context is NO_SPAN
    assert context
    assert not get_current_span(context).get_span_context().is_valid
