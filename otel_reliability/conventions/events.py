"""Log events of coding agents, and details of model calls → the agent spans that they stand for."""

from __future__ import annotations

from msgspec.structs import replace

from otel_reliability.conventions.base import EventAnswer
from otel_reliability.model.span import (
    BY_TIME,
    KIND_UNSPECIFIED,
    ORIGIN,
    AgentSpan,
    Evaluation,
    Facts,
    Kind,
    RawLog,
    Resource,
    Session,
    SpanRef,
    TraceId,
    bounded,
    span_of,
    trace_of,
)


def spans_of(
    log: RawLog, event: EventAnswer, facts: Facts | None, sender: Resource
) -> list[AgentSpan]:
    """Return the span of an event; after that of a call that started a conversation, the first one
    of that conversation.

    `facts` are those of the event with their calls hashed.
    """
    if event.conversation is None:
        return [_details(log, event, facts, sender)]
    span = _span(log, event, event.conversation, facts, sender)
    if event.starts is None or event.starts == event.conversation:
        return [span]
    return [span, _origin(event.starts, span)]


def _details(log: RawLog, event: EventAnswer, facts: Facts | None, sender: Resource) -> AgentSpan:
    """Return the details of a model call: a span below the one that they were written in. It is no
    work itself, and without that span it belongs to no run.
    """
    return AgentSpan(
        trace_id=log.trace_id,
        span_id=span_of(log.name, log.span_id),
        parent_id=log.span_id,
        parent_remote=False,
        start_ns=log.time_ns,
        end_ns=log.time_ns,
        span_kind=KIND_UNSPECIFIED,
        kind=event.kind,
        failed=False,
        facts=facts,
        scope=bounded(log.scope),
        resource=sender,
    )


def _span(
    log: RawLog, event: EventAnswer, conversation: str, facts: Facts | None, sender: Resource
) -> AgentSpan:
    """Return what an event of a conversation stands for: below its prompt, where it names one, with
    a link to the span, or the subagent, that it was written in.
    """
    trace_id = trace_of(conversation)
    prompt = event.prompt
    if event.kind is Kind.AGENT:
        span_id = span_of("prompt", prompt or log.time_ns)
        parent_id = None
    else:
        span_id = span_of(log.name, log.time_ns, *event.identity)
        parent_id = BY_TIME if prompt is None else span_of("prompt", prompt)
    evaluations: tuple[Evaluation, ...] = ()
    if event.evaluation is not None:
        evaluations = (Evaluation(*event.evaluation, log.time_ns, trace_id, span_id),)
    return AgentSpan(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=parent_id,
        parent_remote=False,
        start_ns=max(log.time_ns - max(int(event.duration_ms * 1_000_000), 0), 1),
        end_ns=log.time_ns,
        span_kind=KIND_UNSPECIFIED,
        kind=event.kind,
        failed=event.failed,
        facts=facts,
        scope=bounded(log.scope),
        resource=sender,
        session=Session(0, bounded(conversation)),
        evaluations=evaluations,
        link=_written_in(log, event, trace_id),
    )


def _written_in(log: RawLog, event: EventAnswer, trace_id: TraceId) -> SpanRef | None:
    has_ids = len(log.trace_id) == len(trace_id) and len(log.span_id) == len(ORIGIN)
    if has_ids and any(log.span_id):
        return log.trace_id, log.span_id
    if event.subagent is not None:
        return trace_id, span_of("subagent", event.subagent)
    return None


def _origin(conversation: str, call: AgentSpan) -> AgentSpan:
    """Return the first span of a conversation that a call started."""
    return replace(
        call,
        trace_id=trace_of(conversation),
        span_id=ORIGIN,
        parent_id=None,
        kind=Kind.OTHER,
        facts=None,
        failed=False,
        session=None,
        evaluations=(),
        link=(call.trace_id, call.span_id),
    )
