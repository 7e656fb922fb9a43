"""Send OTLP to a server as an SDK would, and read what a Collector wrote to a file."""

from __future__ import annotations

import base64
import gzip
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from google.protobuf.json_format import ParseDict
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
        body = from_json(fields, kind()).SerializeToString()
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
    requests = [from_json(json.loads(line), ExportTraceServiceRequest()) for line in whole]
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


def from_json(fields: dict[str, Any], message: M) -> M:
    """Fill a message from OTLP-JSON, whose ids are hex where protobuf's own JSON has base64."""
    return ParseDict(_with_base64_ids(fields), message, ignore_unknown_fields=True)


def _with_base64_ids(node: Any) -> Any:
    match node:
        case dict():
            return {key: _value(key, value) for key, value in cast("dict[str, Any]", node).items()}
        case list():
            return [_with_base64_ids(item) for item in cast("list[Any]", node)]
        case _:
            return node


def _value(key: str, value: Any) -> Any:
    return (
        base64.b64encode(bytes.fromhex(value)).decode() if key in _HEX else _with_base64_ids(value)
    )


def _service(group: ResourceSpans) -> str:
    return next(
        (
            item.value.string_value
            for item in group.resource.attributes
            if item.key == "service.name"
        ),
        "",
    )
