"""The SDK's ended spans → `RawSpan`. The only source that knows the OpenTelemetry SDK.

Attribute values pass through as the SDK holds them: its sequences are tuples, where OTLP's are lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from opentelemetry.sdk.resources import Resource as SdkResource
from opentelemetry.sdk.trace import Event, ReadableSpan, SpanProcessor
from opentelemetry.trace import Link, SpanContext

from otel_reliability.errors import MalformedSpan
from otel_reliability.model.span import RawEvent, RawSpan, Resource, SpanRef
from otel_reliability.sources.batch import (
    LATEST_NS,
    SPAN_ID_BYTES,
    TRACE_ID_BYTES,
    Reason,
    fault,
    link_ref,
    ordered,
)

_RESOURCES: Final = 64
_KINDS_FROM_ONE: Final = 1
"""OTLP's kinds begin with UNSPECIFIED, the SDK's do not: each is one more there. Status codes are the same."""

_tuple: Final[Callable[..., Any]] = tuple.__new__  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
"""Makes a named tuple from a tuple, without the call in Python that its class would cost."""

_resources: Final[dict[int, tuple[SdkResource, Resource]]] = {}


def read(span: ReadableSpan) -> RawSpan:
    """What an ended span says.

    Raises `MalformedSpan`, and nothing else, for one without proper ids or times, or made by hand of something else.
    """
    try:
        return _read(span)
    except MalformedSpan:
        raise
    except Exception as error:  # what is no span can fail in any way, and must not in the host's thread
        raise MalformedSpan(
            Reason.SHAPE, f"a span that is not made as the SDK makes them ({type(error).__name__})"
        ) from error


def _read(span: ReadableSpan) -> RawSpan:
    """Runs on the thread that ends the span: what every span has is written out here, what few have costs a call."""
    context, above = span.context, span.parent
    start_ns, end_ns = span.start_time, span.end_time
    if context is None or not context.is_valid or start_ns is None or end_ns is None or not _sound(start_ns, end_ns):
        raise _malformed(context, start_ns, end_ns)
    name, scope, state = span.name, span.instrumentation_scope, context.trace_state
    return _tuple(
        RawSpan,
        (
            context.trace_id.to_bytes(TRACE_ID_BYTES),
            context.span_id.to_bytes(SPAN_ID_BYTES),
            above.span_id.to_bytes(SPAN_ID_BYTES) if above and above.span_id else None,
            name if isinstance(name, str) else "",  # pyright: ignore[reportUnnecessaryIsInstance] - nobody checks it
            span.kind.value + _KINDS_FROM_ONE,
            start_ns,
            ordered(start_ns, end_ns),
            span.status.status_code.value,
            above.is_remote if above else False,
            _attributes(span.attributes),
            tuple(map(_event, span.events)) if getattr(span, "_events", True) else (),
            tuple(filter(None, map(_link, span.links))) if getattr(span, "_links", True) else (),
            scope.name if scope else "",
            (scope.version or "") if scope else "",
            _resource(span.resource),
            state.to_header() if state else "",
        ),
    )


def _sound(start_ns: object, end_ns: object) -> bool:
    return (
        isinstance(start_ns, int) and isinstance(end_ns, int) and 0 < start_ns <= LATEST_NS and 0 < end_ns <= LATEST_NS
    )


def _malformed(context: SpanContext | None, start_ns: object, end_ns: object) -> MalformedSpan:
    problem = fault(*_ids(context), b"", _time(start_ns), _time(end_ns))
    return (
        MalformedSpan(*problem[:2])
        if problem
        else MalformedSpan(Reason.SHAPE, "a span context that calls itself invalid")
    )


def _ids(context: SpanContext | None) -> tuple[bytes, bytes]:
    """The ids as bytes, empty where there is no context, or a number too large for one."""
    if context is None:
        return b"", b""
    try:
        return context.trace_id.to_bytes(TRACE_ID_BYTES), context.span_id.to_bytes(SPAN_ID_BYTES)
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
    return link_ref(*_ids(link.context))


def _resource(resource: SdkResource) -> Resource:
    """One of ours for one of theirs. A provider has one for all its spans; hashing theirs would cost more than reading it.

    Each is kept with ours, so that no other object can take its identity.
    """
    found = _resources.get(id(resource))
    if found:
        return found[1]
    if len(_resources) >= _RESOURCES:
        _resources.clear()
    ours = Resource.of(dict(resource.attributes))
    _resources[id(resource)] = (resource, ours)
    return ours


class Collector(SpanProcessor):
    """Keeps the ended spans of a provider, at most `most` of them: for test suites, which look at them afterwards.

    `lost` counts the spans beyond, and those that cannot be read.
    """

    def __init__(self, most: int = 100_000) -> None:
        self.spans: list[RawSpan] = []
        self.lost = 0
        self._most = most

    def stop(self) -> None:
        """Keep no more: a provider cannot be asked to let go of a processor."""
        self._most = 0

    def on_end(self, span: ReadableSpan) -> None:
        """Keep a span."""
        if len(self.spans) >= self._most:
            self.lost += 1
            return
        try:
            self.spans.append(read(span))
        except MalformedSpan:
            self.lost += 1
