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
    bounded,
    span_of,
    trace_of,
)


def spans_of(
    log: RawLog, event: EventAnswer, facts: Facts | None, sender: Resource
) -> list[AgentSpan]:
    """Return the span of an event; after that of a call that started a conversation, the first one
    of that conversation.

    `facts` are those of the event with their calls hashed. The details of a model call are a span
    below the one that they were written in: no work itself, and without that span they belong to no
    run.
    """
    if event.conversation is None:
        return [
            AgentSpan(
                log.trace_id,
                span_of(log.name, log.span_id),
                log.span_id,
                False,
                log.time_ns,
                log.time_ns,
                KIND_UNSPECIFIED,
                event.kind,
                False,
                facts,
                bounded(log.scope),
                sender,
            )
        ]
    trace_id = trace_of(event.conversation)
    prompt = event.prompt
    if event.kind is Kind.AGENT:
        own = span_of("prompt", prompt or log.time_ns)
        parent = None
    else:
        own = span_of(log.name, log.time_ns, *event.identity)
        parent = BY_TIME if prompt is None else span_of("prompt", prompt)
    link: SpanRef | None = None
    if len(log.trace_id) == len(trace_id) and len(log.span_id) == len(own) and any(log.span_id):
        link = log.trace_id, log.span_id
    elif event.subagent is not None:
        link = trace_id, span_of("subagent", event.subagent)
    start = max(log.time_ns - max(int(event.duration_ms * 1_000_000), 0), 1)
    evaluations = (
        ()
        if event.evaluation is None
        else (Evaluation(*event.evaluation, log.time_ns, trace_id, own),)
    )
    span = AgentSpan(
        trace_id,
        own,
        parent,
        False,
        start,
        log.time_ns,
        KIND_UNSPECIFIED,
        event.kind,
        event.failed,
        facts,
        bounded(log.scope),
        sender,
        Session(0, bounded(event.conversation)),
        evaluations=evaluations,
        link=link,
    )
    if event.starts is None or event.starts == event.conversation:
        return [span]
    begun = replace(
        span,
        trace_id=trace_of(event.starts),
        span_id=ORIGIN,
        parent_id=None,
        kind=Kind.OTHER,
        facts=None,
        failed=False,
        session=None,
        evaluations=(),
        link=(trace_id, own),
    )
    return [span, begun]
