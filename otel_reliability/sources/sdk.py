"""The SDK's ended spans → `RawSpan`. The only source that knows the OpenTelemetry SDK.

Attribute values pass through as the SDK holds them: its sequences are tuples, where OTLP's are
lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec.structs import replace
from opentelemetry.sdk.resources import Resource as SdkResource
from opentelemetry.sdk.trace import Event, ReadableSpan, SpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, StatusCode, TraceState

from otel_reliability.errors import MalformedSpan
from otel_reliability.model.remembered import Remembered
from otel_reliability.model.span import RawEvent, RawSpan, Resource, SpanRef
from otel_reliability.sources.batch import (
    LATEST_NS,
    SPAN_ID_BYTES,
    TRACE_ID_BYTES,
    Reason,
    fault,
    link_ref,
    with_status_message,
)

_RESOURCES: Final = 64
_DROPPED: Final = ("dropped_attributes", "dropped_events", "dropped_links")
LAST_TRACE: Final = 2 ** (8 * TRACE_ID_BYTES) - 1
LAST_SPAN: Final = 2 ** (8 * SPAN_ID_BYTES) - 1
_resources: Final = Remembered[int, tuple[SdkResource, Resource]](_RESOURCES)


def read(span: ReadableSpan) -> RawSpan:
    """Return what an ended span says.

    Raises `MalformedSpan`, and nothing else, for one without proper ids or times, or made by hand
    of something else.
    """
    try:
        context = span.context
        if context is None:
            raise _malformed(0, 0, span.start_time, span.end_time)  # noqa: TRY301
        events = tuple(map(_event, span.events)) if getattr(span, "_events", True) else ()
        found = raw(
            context.trace_id,
            context.span_id,
            span.parent,
            span.name,
            span.kind,
            span.start_time,
            span.end_time,
            span.status.status_code,
            _attributes(span.attributes),
            events,
            span.links if getattr(span, "_links", True) else (),
            span.instrumentation_scope,
            span.resource,
            context.trace_state,
        )
        message = span.status.description
        if message:
            events = with_status_message(events, found.status, message, found.end_ns)
            found = replace(found, events=events)
        dropped = sum(getattr(span, one, 0) for one in _DROPPED)
        return replace(found, dropped=dropped) if dropped else found
    except MalformedSpan:
        raise
    except (
        Exception
    ) as error:  # what is no span can fail in any way, and must not in the host's thread
        raise _odd(error) from error


def raw(
    trace_id: int,
    span_id: int,
    parent: SpanContext | None,
    name: str,
    kind: SpanKind,
    start_ns: int | None,
    end_ns: int | None,
    status: StatusCode,
    attributes: Mapping[str, Any],
    events: tuple[RawEvent, ...],
    links: Sequence[Link],
    scope: InstrumentationScope | None,
    resource: SdkResource,
    state: TraceState | None,
) -> RawSpan:
    """A span of these parts, in the SDK's own words. Raises `MalformedSpan` for one without proper
    ids or times, as `read`.
    """
    try:
        if (
            not (0 < trace_id <= LAST_TRACE and 0 < span_id <= LAST_SPAN)
            or not (isinstance(start_ns, int) and isinstance(end_ns, int))
            or not (0 < start_ns <= LATEST_NS and 0 < end_ns <= LATEST_NS)
        ):
            raise _malformed(trace_id, span_id, start_ns, end_ns)  # noqa: TRY301
        above = parent[1] if parent else 0
        return RawSpan(
            trace_id.to_bytes(TRACE_ID_BYTES),
            # more than 15 keywords would be passed as a dictionary
            span_id.to_bytes(SPAN_ID_BYTES),
            parent_id=above.to_bytes(SPAN_ID_BYTES) if above else None,
            name=name if isinstance(name, str) else "",  # pyright: ignore[reportUnnecessaryIsInstance] - nobody checks it
            # OTLP's kinds begin with UNSPECIFIED, the SDK's do not; status codes are the same
            span_kind=kind._value_ + 1,
            start_ns=start_ns,
            end_ns=end_ns,
            status=status._value_,
            parent_remote=parent[2] if parent else False,
            attributes=attributes,
            events=events,
            links=tuple(filter(None, map(_link, links))) if links else (),
            scope=scope.name if scope else "",
            scope_version=(scope.version or "") if scope else "",
            resource=_resource(resource),
            trace_state=state.to_header() if state else "",
        )
    except MalformedSpan:
        raise
    except Exception as error:
        raise _odd(error) from error


def _odd(error: Exception) -> MalformedSpan:
    return MalformedSpan(
        Reason.SHAPE, f"a span that is not made as the SDK makes them ({type(error).__name__})"
    )


def _malformed(trace_id: int, span_id: int, start_ns: object, end_ns: object) -> MalformedSpan:
    problem = fault(*_ids(trace_id, span_id), b"", _time(start_ns), _time(end_ns))
    return (
        MalformedSpan(*problem[:2])
        if problem
        else MalformedSpan(Reason.SHAPE, "times that are no numbers")
    )


def _ids(trace_id: int, span_id: int) -> tuple[bytes, bytes]:
    """The ids as bytes, empty where a number is too large for one."""
    try:
        return trace_id.to_bytes(TRACE_ID_BYTES), span_id.to_bytes(SPAN_ID_BYTES)
    except OverflowError:
        return b"", b""


def _time(value: object) -> int:
    return value if isinstance(value, int) else 0


def _attributes(attributes: Any) -> Mapping[str, Any]:
    """A copy, made in C by the SDK's own containers: a dozen times cheaper than key by key."""
    try:
        return attributes.copy()
    except AttributeError:
        return dict(attributes or {})


def _event(event: Event) -> RawEvent:
    return RawEvent(event.name, _time(event.timestamp), _attributes(event.attributes))


def _link(link: Link) -> SpanRef | None:
    return link_ref(*_ids(link.context.trace_id, link.context.span_id))


def _resource(resource: SdkResource) -> Resource:
    """One of ours for one of theirs. A provider has one for all its spans; hashing theirs would
    cost more than reading it.

    Each is kept with ours, so that no other object can take its identity.
    """
    found = _resources.get(id(resource))
    if found:
        return found[1]
    ours = Resource.of(dict(resource.attributes))
    _resources[id(resource)] = (resource, ours)
    return ours


class Collector(SpanProcessor):
    """Keeps the ended spans of a provider, those that can be read and 100,000 at most: for test
    suites, which check them.
    """

    def __init__(self) -> None:
        self.spans: list[RawSpan] = []
        self._room = 100_000

    def stop(self) -> None:
        """Keep no more: a processor cannot be removed from a provider."""
        self._room = 0

    def on_end(self, span: ReadableSpan) -> None:
        with suppress(MalformedSpan):
            if len(self.spans) < self._room:
                self.spans.append(read(span))
