"""Send OTLP to a server as an SDK would, and read what a Collector wrote to a file."""

from __future__ import annotations

import base64
import functools
import gzip
import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span

from tests.real.waiting import PATIENCE
from tests.real.web import ask

M = TypeVar("M", bound=Message)

LATER = frozenset({429, 502, 503, 504})
"""The statuses after which a client sends the same request again; every other failure is final."""

_HEX = frozenset({"traceId", "spanId", "parentSpanId"})


class Refused(AssertionError):
    """A server did not take what was sent."""


class Written(NamedTuple):
    """One span of a file, and the service it came from."""

    service: str
    span: Span


def attributes(values: Mapping[str, str | int]) -> list[KeyValue]:
    return [
        KeyValue(
            key=key,
            value=AnyValue(int_value=value)
            if isinstance(value, int)
            else AnyValue(string_value=value),
        )
        for key, value in values.items()
    ]


def send(url: str, *groups: ResourceSpans) -> None:
    """Send spans by OTLP/HTTP in protobuf to a server's base address."""
    deliver(
        f"{url}/v1/traces",
        ExportTraceServiceRequest(resource_spans=groups).SerializeToString(),
        "x-protobuf",
    )


def replay(path: Path, url: str, headers: Mapping[str, str] | None = None) -> None:
    """Send a recording, one request a line, by OTLP/HTTP in protobuf.

    A recording is a file of OTLP-JSON lines, spans or logs, gzip-compressed where its name ends in
    `.gz`. A server that is busy is asked again when it says, as every OTLP client does; one that
    refuses raises `Refused`.
    """
    for text in lines(path):
        fields: dict[str, Any] = json.loads(text)
        signal, kind = (
            ("traces", ExportTraceServiceRequest)
            if "resourceSpans" in fields
            else ("logs", ExportLogsServiceRequest)
        )
        body = from_json(fields, kind).SerializeToString()
        deliver(f"{url}/v1/{signal}", body, "x-protobuf", headers)


def deliver(url: str, body: bytes, kind: str, headers: Mapping[str, str] | None = None) -> None:
    """Send one request; a server that is busy is asked again when it says."""
    deadline = time.monotonic() + PATIENCE
    while True:
        sent = {"Content-Type": f"application/{kind}", **(headers or {})}
        answer = ask(url, body=body, headers=sent)
        if answer.status == 200:
            return
        if answer.status not in LATER or time.monotonic() > deadline:
            raise Refused(f"{url} answered {answer.status}: {answer.body[:500]!r}")
        time.sleep(min(float(answer.headers.get("Retry-After", "0.2")), 5.0))


def written(path: Path) -> list[Written]:
    """The spans that a Collector's file exporter has written so far; a line that it is still
    writing is left out.
    """
    whole = [line for line in lines(path) if line.endswith("\n")] if path.exists() else []
    requests = [from_json(json.loads(line), ExportTraceServiceRequest) for line in whole]
    return [
        Written(_service(group), span)
        for request in requests
        for group in request.resource_spans
        for scope in group.scope_spans
        for span in scope.spans
    ]


def lines(path: Path) -> Iterator[str]:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as recording:
        yield from (line for line in recording if line.strip())


def from_json(fields: dict[str, Any], message: type[M]) -> M:
    """Make a message of OTLP-JSON, whose ids are hex where protobuf's own JSON has base64; as
    `ParseDict` of protobuf does, in a quarter of its time.
    """
    return message(**_values(fields, cast("Descriptor", message.DESCRIPTOR)))


def _values(fields: dict[str, Any], of: Descriptor) -> dict[str, Any]:
    """The values of a message's fields; unknown ones are left out."""
    plan = _plan(of)
    return {
        plan[key].name: plan[key].read(value)
        for key, value in fields.items()
        if key in plan and value is not None
    }


class _Field(NamedTuple):
    name: str
    read: Callable[[Any], Any]


@functools.cache
def _plan(of: Descriptor) -> dict[str, _Field]:
    return {field.json_name: _Field(field.name, _reader(field)) for field in of.fields}


def _reader(field: FieldDescriptor) -> Callable[[Any], Any]:
    inner = field.message_type
    if inner is not None:
        one = functools.partial(_values, of=inner)
    elif field.type == field.TYPE_BYTES:
        one = bytes.fromhex if field.json_name in _HEX else base64.b64decode
    elif field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        one = float
    elif field.cpp_type in (field.CPPTYPE_STRING, field.CPPTYPE_BOOL):
        return _same
    else:
        one = int
    return functools.partial(_each, one) if field.is_repeated else one


def _same(value: Any) -> Any:
    return value


def _each(one: Callable[[Any], Any], values: list[Any]) -> list[Any]:
    return [one(value) for value in values]


def _service(group: ResourceSpans) -> str:
    return next(
        (
            item.value.string_value
            for item in group.resource.attributes
            if item.key == "service.name"
        ),
        "",
    )
