"""OTLP requests from spans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import Any, Final, NamedTuple, cast

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import (
    AnyValue,
    ArrayValue,
    InstrumentationScope,
    KeyValue,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

SPANS: Final = 512
"""Spans per request: the default batch of a `BatchSpanProcessor`."""


class Sent(NamedTuple):
    """A span with its resource and its scope."""

    resource: Resource
    scope: InstrumentationScope
    span: Span


def requests(spans: Iterator[Sent], size: int = SPANS) -> Iterator[bytes]:
    """Group spans into serialized requests."""
    while chunk := list(islice(spans, size)):
        yield request(chunk).SerializeToString()


def request(spans: Sequence[Sent]) -> ExportTraceServiceRequest:
    """Return one request, with a new resource and scope wherever the stream changes them, as a
    BatchSpanProcessor writes it.
    """
    made = ExportTraceServiceRequest()
    for _, of_resource in groupby(spans, lambda sent: id(sent.resource)):
        group = list(of_resource)
        resource = made.resource_spans.add(resource=group[0].resource)
        for _, of_scope in groupby(group, lambda sent: id(sent.scope)):
            inner = list(of_scope)
            resource.scope_spans.add(scope=inner[0].scope, spans=[sent.span for sent in inner])
    return made


def pairs(attributes: Mapping[str, Any]) -> list[KeyValue]:
    """Return attributes as the protocol has them."""
    return [KeyValue(key=key, value=_value(value)) for key, value in attributes.items()]


def _value(value: Any) -> AnyValue:
    if isinstance(value, list):
        return AnyValue(
            array_value=ArrayValue(values=[_value(one) for one in cast("list[Any]", value)])
        )
    return AnyValue(
        **{{str: "string_value", int: "int_value", float: "double_value"}[type(value)]: value}
    )
