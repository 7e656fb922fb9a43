"""OTLP's requests described once more, so that the protobuf runtime does the work: same bytes,
other types.

Four differences from the published schema, all allowed by the wire format:

- `attributes` is a `map<string, bytes>`: a repeated message with fields 1 and 2 is what a map is on
  the wire. Looking up a key happens in C, and a value stays undecoded until it is asked for.
- `resource` and `scope` are repeated `bytes`: they repeat from request to request, so their bytes
  are a cache key. Where an encoder split one into parts, the parts joined are the whole: that is
  how protobuf merges messages.
- A span's trace state, its links and the counts of what was dropped are left undeclared, so that
  they land among its unknown fields: most spans have none, and one test of an empty set says so.
- A span's status is `bytes`, of which there are three; text that is not read is `bytes` too, enums
  are `int32`.

A request of logs is described down to its records, which are `bytes`: one is decoded at a time.

Every other field of a span is declared. So its unknown fields are these, and one case more: the
runtime moves a map entry that holds a third field (`key_strindex`, of the profiles signal) there,
as a whole.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf import descriptor_pb2, message_factory

_PACKAGE: Final = "otel_reliability.otlp"
_TYPE: Final = descriptor_pb2.FieldDescriptorProto
_STRING = _TYPE.TYPE_STRING
_BYTES = _TYPE.TYPE_BYTES
_MESSAGE = _TYPE.TYPE_MESSAGE
_INT32 = _TYPE.TYPE_INT32
_UINT32 = _TYPE.TYPE_UINT32
_FIXED32 = _TYPE.TYPE_FIXED32
_FIXED64 = _TYPE.TYPE_FIXED64

SPAN_STATE: Final = 3
SPAN_ATTRIBUTES: Final = 9
SPAN_EVENTS: Final = 11
SPAN_LINKS: Final = 13
SPAN_DROPPED: Final = frozenset({10, 12, 14})
"""Numbers of dropped attributes, events and links."""
SPAN_STATUS: Final = 15
EVENT_ATTRIBUTES: Final = 3
VARINT: Final = 0
"""Wire type of a number."""
LENGTH_DELIMITED: Final = 2
"""The wire type of messages. A field of that number but another type is not the schema's."""

_MAP: Final = "AttributesEntry"
_PARTS: Final = object()
"""Bytes, of which an encoder may write several parts."""
_SCHEMA: Final[dict[str, dict[str, tuple[int, Any]]]] = {
    "Event": {
        "time_unix_nano": (1, _FIXED64),
        "name": (2, _STRING),
        "attributes": (EVENT_ATTRIBUTES, _MAP),
        "dropped_attributes_count": (4, _UINT32),
    },
    "Link": {"trace_id": (1, _BYTES), "span_id": (2, _BYTES)},
    "Status": {"message": (2, _BYTES), "code": (3, _INT32)},
    "Span": {
        "trace_id": (1, _BYTES),
        "span_id": (2, _BYTES),
        "parent_span_id": (4, _BYTES),
        "name": (5, _STRING),
        "kind": (6, _INT32),
        "start_time_unix_nano": (7, _FIXED64),
        "end_time_unix_nano": (8, _FIXED64),
        "attributes": (SPAN_ATTRIBUTES, _MAP),
        "events": (SPAN_EVENTS, "Event"),
        "status": (SPAN_STATUS, _BYTES),
        "flags": (16, _FIXED32),
    },
    "ScopeSpans": {"scope": (1, _PARTS), "spans": (2, "Span")},
    "ResourceSpans": {"resource": (1, _PARTS), "scope_spans": (2, "ScopeSpans")},
    "Request": {"resource_spans": (1, "ResourceSpans")},
    "ScopeLogs": {"scope": (1, _PARTS), "log_records": (2, _PARTS)},
    "ResourceLogs": {"resource": (1, _PARTS), "scope_logs": (2, "ScopeLogs")},
    "LogsRequest": {"resource_logs": (1, "ResourceLogs")},
}
"""The fields of each message: their number, and their type or the message that is repeated there.
"""


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name="otel_reliability/otlp.proto", package=_PACKAGE, syntax="proto3"
    )
    for owner, fields in _SCHEMA.items():
        message = file.message_type.add(name=owner)
        for name, (number, kind) in fields.items():
            field = message.field.add(
                name=name, number=number, label=_TYPE.LABEL_REPEATED, type=_MESSAGE
            )
            if kind == _MAP:
                entry = message.nested_type.add(name=_MAP, options={"map_entry": True})
                entry.field.add(name="key", number=1, type=_STRING, label=_TYPE.LABEL_OPTIONAL)
                entry.field.add(name="value", number=2, type=_BYTES, label=_TYPE.LABEL_OPTIONAL)
                field.type_name = f".{_PACKAGE}.{owner}.{_MAP}"
            elif isinstance(kind, str):
                field.type_name = f".{_PACKAGE}.{kind}"
            elif kind is _PARTS:
                field.type = _BYTES
            else:
                field.type = kind
                field.label = _TYPE.LABEL_OPTIONAL
    return file


_CLASSES: Final[dict[str, Any]] = message_factory.GetMessages([_file()])
Request: Final = _CLASSES[f"{_PACKAGE}.Request"]
LogsRequest: Final = _CLASSES[f"{_PACKAGE}.LogsRequest"]
"""The message classes. Their instances are typed `Any`: a class made at run time has no types to
show.
"""
Event: Final = _CLASSES[f"{_PACKAGE}.Event"]
Link: Final = _CLASSES[f"{_PACKAGE}.Link"]
Status: Final = _CLASSES[f"{_PACKAGE}.Status"]
