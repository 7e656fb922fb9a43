"""OTLP trace requests that hold no agent's work, read for their ids, parents and times only.

Most spans of a busy service are of web servers and databases. They are needed, because chains of parents run through them, but
nothing they say is. So their attributes, events and links are never unpacked; what could be more is left to the full decoders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Any, Final, TypeAlias

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from otel_reliability.model.span import STATUS_ERROR, AgentSpan, Kind, Resource
from otel_reliability.sources import columns
from otel_reliability.sources.batch import Malformed
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
        ("status", 15, _BYTES, _ONE, ""),
        ("flags", 16, _FIXED32, _ONE, ""),
    ),
    "ScopeSpans": (("scope", 1, _BYTES, _MANY, ""), ("spans", 2, _MESSAGE, _MANY, "Span")),
    "ResourceSpans": (("resource", 1, _BYTES, _MANY, ""), ("scope_spans", 2, _MESSAGE, _MANY, "ScopeSpans")),
    "Request": (("resource_spans", 1, _MESSAGE, _MANY, "ResourceSpans"),),
}


def _classes() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="otel_reliability/places.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field, number, kind, label, target in fields:
            about = {"type_name": f".{_PACKAGE}.{target}"} if target else {}
            message.field.add(name=field, number=number, type=kind, label=label, **about)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    types = (pool.FindMessageTypeByName(f"{_PACKAGE}.{name}") for name in ("Request", "Status"))
    return map(message_factory.GetMessageClass, types)


_Request, _Status = _classes()
"""OTLP's trace request with what nobody here unpacks left as bytes. Instances are typed `Any`: they are made at run time."""
_Fields: TypeAlias = tuple[bytes, bytes, bytes, str, int, int, int, bytes, int, str]
_fields: Final[Callable[[Any], _Fields]] = attrgetter(
    "trace_id", "span_id", "parent_span_id", "name", "kind", "start_time_unix_nano", "end_time_unix_nano", "status", "flags",
    "trace_state",
)  # fmt: skip
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
    group: Sequence[Any],
    scope: str,
    resource: Resource,
    beginnings: frozenset[str],
) -> bool:
    """The spans of one scope, field by field. False: one of them may be more than a place."""
    fields = _sound(list(map(_fields, group)), malformed)
    if not fields:
        return True
    traces, ids, parents, names, kinds, starts, ends, statuses, flags, states = zip(*fields, strict=True)
    if any(states) or any(name[:4] in beginnings or name[-4:] == RUN for name in set(names)) or _linked(group, parents):
        return False
    failed = map({status: _is_error(status) for status in set(statuses)}.__getitem__, statuses)
    nothing = repeat(None)
    places = zip(
        traces, ids, columns.above(parents), columns.remote(flags), starts, columns.later(starts, ends), kinds,
        repeat(Kind.OTHER), failed, nothing, repeat(scope), repeat(resource), nothing, nothing, repeat(()), nothing, nothing,
        repeat(()),
    )  # fmt: skip
    spans.extend(map(_tuple, repeat(AgentSpan), places))
    return True


def _sound(found: list[_Fields], malformed: list[Malformed]) -> list[_Fields]:
    """The spans of proper ids and times; the others are named."""
    if not found:
        return found
    traces, ids, parents, _, _, starts, ends, *_ = zip(*found, strict=True)
    problems = columns.problems(traces, ids, parents, starts, ends)
    if problems is None:
        return found
    malformed.extend(filter(None, problems))
    return [fields for fields, problem in zip(found, problems, strict=True) if problem is None]


def _linked(group: Iterable[Any], parents: Iterable[bytes]) -> bool:
    """Whether a span without a parent has links: it may be a messaging hop."""
    return not all(parents) and any(span.links and not span.parent_span_id for span in group)


def _is_error(status: bytes) -> bool:
    """Whether a status, whose bytes these are, says so."""
    return bool(status) and _Status.FromString(status).code == STATUS_ERROR
