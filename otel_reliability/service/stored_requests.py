"""Requests as rows of `arrival`, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from otel_reliability.model.record import evaluations_of, pack, pack_spans, unpack, unpack_spans
from otel_reliability.model.span import AgentSpan, Evaluation, TraceId
from otel_reliability.service.decoded import Decoded
from otel_reliability.state.clock import Moment
from otel_reliability.state.store import COUNTS, EVALUATIONS, SPANS, Arrival, Statement


def arrivals_of(group: Sequence[Decoded], moment: Moment, seq: int) -> Iterator[Arrival]:
    """Yield requests as rows: the spans of a trace together, and its evaluations."""
    for request in group:
        traces: dict[TraceId, list[AgentSpan]] = {}
        for span in request.spans:
            traces.setdefault(span.trace_id, []).append(span)
        for trace_id, spans in traces.items():
            yield Arrival(seq, SPANS, *moment, trace_id, pack_spans(spans))
            seq += 1
        evaluations: dict[TraceId | None, list[Evaluation]] = {}
        for evaluation in request.evaluations:
            evaluations.setdefault(evaluation.trace_id, []).append(evaluation)
        for trace_id, some in evaluations.items():
            yield Arrival(seq, EVALUATIONS, *moment, trace_id, pack(some))
            seq += 1
        if request.malformed or request.other_logs:
            yield Arrival(
                seq, COUNTS, *moment, None, pack((dict(request.malformed), request.other_logs))
            )
            seq += 1


def request_of(kind: int, body: bytes) -> Decoded:
    """Return what a row holds. Raise `Damaged`."""
    if kind == SPANS:
        return Decoded(unpack_spans(body))
    if kind == EVALUATIONS:
        return Decoded(evaluations=evaluations_of(unpack(body)))
    malformed, other_logs = unpack(body)
    return Decoded(malformed=malformed, other_logs=other_logs)


def insert(arrivals: Sequence[Arrival]) -> Statement:
    """Return the statement that stores these rows."""
    return "INSERT OR REPLACE INTO arrival VALUES (?, ?, ?, ?, ?, ?)", arrivals
