"""OTLP trace requests read by the published schema: the oracle of the decoders, which read less."""

from __future__ import annotations

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span

from otel_reliability.errors import UndecodableBody
from otel_reliability.model.span import RawEvent, RawSpan, Resource
from otel_reliability.sources.batch import (
    Batch,
    fault,
    link_ref,
    parent,
    parent_remote,
    with_status_message,
)
from otel_reliability.sources.otlp_protobuf import attributes


def decode(body: bytes) -> Batch:
    """The spans of a request, and which of them are malformed. Raises `UndecodableBody` for a body
    that is none.
    """
    try:
        request = ExportTraceServiceRequest.FromString(body)
    except DecodeError as error:
        raise UndecodableBody(
            f"not an OTLP trace request in protobuf ({len(body)} bytes)"
        ) from error
    batch = Batch()
    for resource_spans in request.resource_spans:
        resource = Resource.of(attributes(resource_spans.resource.attributes))
        for scope_spans in resource_spans.scope_spans:
            _take(batch, scope_spans, resource)
    return batch


def _take(batch: Batch, scope_spans: ScopeSpans, resource: Resource) -> None:
    for span in scope_spans.spans:
        problem = fault(
            span.trace_id,
            span.span_id,
            span.parent_span_id,
            span.start_time_unix_nano,
            span.end_time_unix_nano,
        )
        if problem:
            batch.malformed.append(problem)
        else:
            batch.spans.append(
                _raw(span, scope_spans.scope.name, scope_spans.scope.version, resource)
            )


def _raw(span: Span, scope: str, scope_version: str, resource: Resource) -> RawSpan:
    events = tuple(_event(event) for event in span.events)
    end_ns = span.end_time_unix_nano
    return RawSpan(
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_id=parent(span.parent_span_id),
        name=span.name,
        span_kind=span.kind,
        start_ns=span.start_time_unix_nano,
        end_ns=end_ns,
        status=span.status.code,
        parent_remote=parent_remote(span.flags),
        attributes=attributes(span.attributes),
        events=with_status_message(events, span.status.code, span.status.message, end_ns),
        links=tuple(ref for link in span.links if (ref := link_ref(link.trace_id, link.span_id))),
        scope=scope,
        scope_version=scope_version,
        resource=resource,
        trace_state=span.trace_state,
        dropped=span.dropped_attributes_count
        + span.dropped_events_count
        + span.dropped_links_count,
    )


def _event(event: Span.Event) -> RawEvent:
    return RawEvent(event.name, event.time_unix_nano, attributes(event.attributes))
