"""All recordings of ../shared/corpora as requests to a Collector: copies of each, every one cut and
ordered in its own way.
"""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans

from tests.real import otlp
from tests.shared import SHARED

Requests: TypeAlias = Sequence[ExportTraceServiceRequest]
Order: TypeAlias = Callable[[Requests], Requests]
CROSSING: Final = frozenset({"autogen-native"})
"""Recordings whose runs cross traces: by links of messaging hops. There are no others."""


class Recorded(NamedTuple):
    """What a file holds."""

    name: str
    spans: Requests
    logs: Sequence[ExportLogsServiceRequest]


class Copy(NamedTuple):
    """One way of sending everything: how requests are cut and ordered, and the Collector's batches
    (0: as they come).
    """

    name: str
    order: Order
    batch: int


def files() -> list[Path]:
    return sorted((SHARED / "corpora").glob("*/*.jsonl.gz"))


@functools.cache
def recorded(file: Path) -> Recorded:
    name = file.name.removesuffix(".jsonl.gz").removesuffix(".otlp").removesuffix(".logs")
    spans: list[ExportTraceServiceRequest] = []
    logs: list[ExportLogsServiceRequest] = []
    for text in otlp.lines(file):
        fields: dict[str, Any] = json.loads(text)
        if "resourceSpans" in fields:
            spans.append(otlp.from_json(fields, ExportTraceServiceRequest()))
        else:
            logs.append(otlp.from_json(fields, ExportLogsServiceRequest()))
    return Recorded(name, spans, logs)


def copied(one: Recorded, number: int) -> Recorded:
    """The same under other trace ids and of another service, as if another fleet had
    done the same.
    """
    spans = [_parsed(ExportTraceServiceRequest, each) for each in one.spans]
    logs = [_parsed(ExportLogsServiceRequest, each) for each in one.logs]
    for request in spans:
        for group in request.resource_spans:
            _rename(group.resource, number)
            for span in (span for scope in group.scope_spans for span in scope.spans):
                span.trace_id = moved(span.trace_id, number)
                for link in span.links:
                    link.trace_id = moved(link.trace_id, number)
    for request in logs:
        for group in request.resource_logs:
            _rename(group.resource, number)
            for record in (record for scope in group.scope_logs for record in scope.log_records):
                record.trace_id = moved(record.trace_id, number)
    return Recorded(one.name, spans, logs)


def moved(trace_id: bytes, number: int) -> bytes:
    """A trace id in a copy. The first copy has the ids of the recording.

    >>> moved(b"abc", 0), moved(b"abc", 1), moved(b"", 1)
    (b'abc', b'`bc', b'')
    """
    return bytes([trace_id[0] ^ number]) + trace_id[1:] if trace_id else trace_id


def as_recorded(requests: Requests) -> Requests:
    return requests


def roots_first(requests: Requests) -> Requests:
    """Backwards, a span a request: what ended last comes first, so children come
    after their root.
    """
    return [*_cut(requests, 1)][::-1]


def shuffled(requests: Requests) -> Requests:
    """Any order within a neighbourhood, in requests of any size up to a dozen."""
    chance = random.Random(9)
    spans = [*_cut(requests, 1)]
    found: list[ExportTraceServiceRequest] = []
    for at in range(0, len(spans), 120):
        near = chance.sample(spans[at : at + 120], len(spans[at : at + 120]))
        while near:
            size = chance.randint(1, 12)
            taken = near[:size]
            near = near[size:]
            found.append(
                ExportTraceServiceRequest(resource_spans=[one.resource_spans[0] for one in taken])
            )
    return found


COPIES: Final = (
    Copy("as recorded", as_recorded, 64),
    Copy("roots first", roots_first, 7),
    Copy("shuffled", shuffled, 0),
)


def sent(copy: Copy, number: int, recordings: Sequence[Recorded]) -> Iterator[tuple[str, bytes]]:
    """The requests of a copy: path and body."""
    for one in recordings:
        mine = copied(one, number)
        for spans in copy.order(mine.spans):
            yield "traces", spans.SerializeToString()
        for logs in mine.logs:
            yield "logs", logs.SerializeToString()


def traces_of(recordings: Sequence[Recorded]) -> Mapping[str, str]:
    """Which recording a trace is of, in any copy."""
    return {
        moved(span.trace_id, number).hex(): one.name
        for number, one in ((number, one) for one in recordings for number in range(len(COPIES)))
        for request in one.spans
        for group in request.resource_spans
        for scope in group.scope_spans
        for span in scope.spans
    }


def _cut(requests: Requests, size: int) -> Iterator[ExportTraceServiceRequest]:
    """In requests of so many spans of one scope."""
    for group in (group for request in requests for group in request.resource_spans):
        for scope in group.scope_spans:
            for at in range(0, len(scope.spans), size):
                some = ScopeSpans(
                    scope=scope.scope,
                    schema_url=scope.schema_url,
                    spans=scope.spans[at : at + size],
                )
                one = ResourceSpans(
                    resource=group.resource, schema_url=group.schema_url, scope_spans=[some]
                )
                yield ExportTraceServiceRequest(resource_spans=[one])


def _parsed(kind: Any, request: Any) -> Any:
    found = kind()
    found.CopyFrom(request)
    return found


def _rename(resource: Any, number: int) -> None:
    """The service of a copy; a resource that names none stays without."""
    for pair in resource.attributes:
        if pair.key == "service.name" and number:
            pair.value.string_value += f" {number}"
