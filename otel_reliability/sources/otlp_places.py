"""OTLP trace requests that hold no agent's work, read for their ids, parents and times only.

Most spans of a busy service are of web servers and databases. They are needed, because chains of parents run through them, but
nothing they say is. So their attributes, events and links are never unpacked; what could be more is left to the full decoders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from otel_reliability.model.span import STATUS_ERROR, AgentSpan, Kind, Resource
from otel_reliability.sources.batch import (
    FLAG_REMOTE,
    FLAG_REMOTE_KNOWN,
    LATEST_NS,
    NO_SPAN,
    NO_TRACE,
    SPAN_ID_BYTES,
    TRACE_ID_BYTES,
    Malformed,
    fault,
)
from otel_reliability.sources.otlp_fast import resource_of, scope_of

RUN: Final = " run"
"""How the names of agents end that an older instrumentation tells by their name."""

_PACKAGE: Final = "otel_reliability.places"
_TYPE: Final = descriptor_pb2.FieldDescriptorProto
_STRING, _BYTES, _MESSAGE = _TYPE.TYPE_STRING, _TYPE.TYPE_BYTES, _TYPE.TYPE_MESSAGE
_INT32, _FIXED32, _FIXED64 = _TYPE.TYPE_INT32, _TYPE.TYPE_FIXED32, _TYPE.TYPE_FIXED64
_ONE, _MANY = _TYPE.LABEL_OPTIONAL, _TYPE.LABEL_REPEATED

_FIELDS: Final[dict[str, tuple[tuple[str, int, Any, Any, str], ...]]] = {
    "Status": (("code", 3, _INT32, _ONE, ""),),
    "Span": (
        ("trace_id", 1, _BYTES, _ONE, ""),
        ("span_id", 2, _BYTES, _ONE, ""),
        ("trace_state", 3, _STRING, _ONE, ""),
        ("parent_span_id", 4, _BYTES, _ONE, ""),
        ("name", 5, _STRING, _ONE, ""),
        ("kind", 6, _INT32, _ONE, ""),
        ("start_time_unix_nano", 7, _FIXED64, _ONE, ""),
        ("end_time_unix_nano", 8, _FIXED64, _ONE, ""),
        ("attributes", 9, _BYTES, _MANY, ""),
        ("events", 11, _BYTES, _MANY, ""),
        ("links", 13, _BYTES, _MANY, ""),
        ("status", 15, _MESSAGE, _ONE, "Status"),
        ("flags", 16, _FIXED32, _ONE, ""),
    ),
    "ScopeSpans": (("scope", 1, _BYTES, _MANY, ""), ("spans", 2, _MESSAGE, _MANY, "Span")),
    "ResourceSpans": (("resource", 1, _BYTES, _MANY, ""), ("scope_spans", 2, _MESSAGE, _MANY, "ScopeSpans")),
    "Request": (("resource_spans", 1, _MESSAGE, _MANY, "ResourceSpans"),),
}


def _request() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="otel_reliability/places.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field, number, kind, label, target in fields:
            about = {"type_name": f".{_PACKAGE}.{target}"} if target else {}
            message.field.add(name=field, number=number, type=kind, label=label, **about)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.Request"))


_Request: Final[Any] = _request()
"""OTLP's trace request with what nobody here unpacks left as bytes. Its instances are typed `Any`: it is made at run time."""
_tuple: Final[Callable[..., Any]] = tuple.__new__  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
"""Makes a named tuple from a tuple, without the call in Python that its class would cost."""

Places = tuple[list[AgentSpan], list[Malformed]]


def decode(body: bytes, scope_of_ordinary: Callable[[str], str | None], beginnings: frozenset[str]) -> Places | None:
    """The spans of a request, each as one that nobody recognises, and which of them are malformed.

    `scope_of_ordinary` gives an instrumentation scope as it is told, None where a convention is keyed on it. `beginnings` are the
    first four letters of the names by which a span is recognised. None: the request may hold more than places, or cannot be
    read; only the full decoders can tell.
    """
    try:
        request = _Request.FromString(body)
        spans: list[AgentSpan] = []
        malformed: list[Malformed] = []
        for resource_spans in request.resource_spans:
            resource = Resource(*resource_of(resource_spans.resource)[:3])
            for scope_spans in resource_spans.scope_spans:
                scope = scope_of_ordinary(scope_of(scope_spans.scope)[0])
                if scope is None or not _take(spans, malformed, scope_spans.spans, scope, resource, beginnings):
                    return None
    except DecodeError:
        return None
    return spans, malformed


def _take(
    spans: list[AgentSpan],
    malformed: list[Malformed],
    group: Iterable[Any],
    scope: str,
    resource: Resource,
    beginnings: frozenset[str],
) -> bool:
    """The spans of one scope. False: one of them may be more than a place. What every span needs is written out here."""
    good = spans.append
    for span in group:
        trace_id, span_id, parent_id, name = span.trace_id, span.span_id, span.parent_span_id, span.name
        start_ns, end_ns, flags = span.start_time_unix_nano, span.end_time_unix_nano, span.flags
        sound = (
            len(trace_id) == TRACE_ID_BYTES
            and len(span_id) == SPAN_ID_BYTES
            and not (trace_id == NO_TRACE or span_id == NO_SPAN)
            and (not parent_id or len(parent_id) == SPAN_ID_BYTES)
            and 0 < start_ns <= LATEST_NS
            and 0 < end_ns <= LATEST_NS
        )
        if not sound and (problem := fault(trace_id, span_id, parent_id, start_ns, end_ns)):
            malformed.append(problem)
            continue
        if name[:4] in beginnings or name[-4:] == RUN or span.trace_state or (not parent_id and span.links):
            return False
        good(
            _tuple(
                AgentSpan,
                (
                    trace_id,
                    span_id,
                    parent_id if parent_id and parent_id != NO_SPAN else None,
                    bool(flags & FLAG_REMOTE) if flags & FLAG_REMOTE_KNOWN else None,
                    start_ns,
                    end_ns if end_ns > start_ns else start_ns,  # noqa: FURB136 - max() is a call, a tenth of a span
                    span.kind,
                    Kind.OTHER,
                    span.status.code == STATUS_ERROR,
                    None,
                    scope,
                    resource,
                    None,
                    None,
                    (),
                    None,
                    None,
                    (),
                ),
            )
        )
    return True
