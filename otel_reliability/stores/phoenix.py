"""Phoenix: `/v1/projects/{project}/traces`, then their spans, in its own JSON.

It keeps neither scope, resource, span kind nor links, and rounds times to microseconds. What it
adds to spans of the GenAI conventions is dropped here, and what it takes apart is joined again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import msgspec

from otel_reliability.model.span import RawEvent, Resource
from otel_reliability.sources.batch import Batch
from otel_reliability.sources.from_plain import attributes_of, take_span, time_ns
from otel_reliability.sources.otlp_json import items, record, text
from otel_reliability.stores.client import NOT_FOUND, Client, StoreError
from otel_reliability.stores.scopes import scopes_of
from otel_reliability.stores.trace import (
    Known,
    Period,
    Trace,
    chunks,
    evaluation,
    iso,
    root_of,
    trace_of,
)

DEFAULT_PROJECT: Final = "default"
_PAGE: Final = 1_000
_TRACES: Final = 50
_IDS: Final = 100
"""Ids in one URL."""
_STATUS: Final = {"OK": 1, "ERROR": 2}
_OF_URL: Final = re.compile(r"[/?#]")
_KIND: Final = "openinference.span.kind"
_ADDED: Final = (
    "openinference.",
    "llm.",
    "tool.",
    "input.",
    "output.",
    "embedding.",
    "retrieval.",
)
"""Begins the attributes that Phoenix makes from those of the GenAI conventions."""
_JOINED: Final = (
    "metadata",
    "tool.parameters",
    "llm.prompt_template.variables",
    "document.metadata",
)
"""Attributes of JSON text that Phoenix flattens."""


def fetch(client: Client, period: Period, project: str | None, known: Known) -> Iterator[Trace]:
    """Yield the traces of a project."""
    name = project or DEFAULT_PROJECT
    base = f"/v1/projects/{quote(_identifier(client, name), safe='')}"
    window = [
        ("start_time", iso(period.start_ns)),
        ("end_time", iso(period.end_ns)),
        ("sort", "start_time"),
        ("order", "asc"),
    ]
    pending: list[str] = []
    for trace in pages(client, f"{base}/traces", window):
        trace_id = text(trace.get("trace_id"))
        if trace_id and not known(trace_id):
            pending.append(trace_id)
        if len(pending) == _TRACES:
            yield from _traces(client, base, name, pending)
            pending = []
    if pending:
        yield from _traces(client, base, name, pending)


def _identifier(client: Client, name: str) -> str:
    """Return what names a project in a path: its id, where its name has characters of a URL."""
    if not _OF_URL.search(name):
        return name
    projects = pages(client, "/v1/projects", [])
    found = (text(each.get("id")) for each in projects if each.get("name") == name)
    return next(found, name)


def pages(
    client: Client, path: str, params: Sequence[tuple[str, str]], limit: int = _PAGE
) -> Iterator[dict[str, Any]]:
    """Yield the records of a list, page by page."""

    def ask(cursor: str) -> Any:
        more = [("cursor", cursor)] if cursor else []
        return client.get(path, [*params, ("limit", str(limit)), *more])

    for answer in client.pages(ask, lambda answer: answer.get("next_cursor")):
        yield from map(record, items(answer.get("data")))


def _traces(client: Client, base: str, project: str, ids: Sequence[str]) -> Iterator[Trace]:
    chosen = [("trace_id", each) for each in ids]
    order = [("sort", "start_time"), ("order", "asc")]
    spans: dict[str, list[dict[str, Any]]] = {}
    for span in pages(client, f"{base}/spans", [*chosen, *order]):
        spans.setdefault(text(record(span.get("context")).get("trace_id")), []).append(span)
    of_spans = [
        text(record(span.get("context")).get("span_id")) for each in spans.values() for span in each
    ]
    notes = _annotations(client, f"{base}/span_annotations", "span_id", of_spans)
    on_traces = _annotations(client, f"{base}/trace_annotations", "trace_id", [*spans])
    for trace_id, own in spans.items():
        flat = [{**span, "id": record(span.get("context")).get("span_id")} for span in own]
        root = root_of(flat, "parent_id", "id") or {}
        root_id = text(root.get("id"))
        notes.setdefault(root_id, []).extend(on_traces.get(trace_id, []))
        yield trace_of(trace_id, batch_of(own, project, notes).spans)


def _annotations(
    client: Client, path: str, of: str, ids: Sequence[str]
) -> dict[str, list[RawEvent]]:
    """Return the annotations of spans or traces, by id; older servers have none."""
    found: dict[str, list[RawEvent]] = {}
    for some in chunks(ids, _IDS):
        try:
            for note in pages(client, path, [(f"{of}s", each) for each in some]):
                result = record(note.get("result"))
                event = evaluation(
                    note.get("name"),
                    result.get("score"),
                    result.get("label"),
                    time_ns(note.get("updated_at")),
                )
                if event is not None:
                    found.setdefault(text(note.get(of)), []).append(event)
        except StoreError as error:
            if error.status != NOT_FOUND:
                raise
            return found
    return found


def batch_of(
    spans: Sequence[Mapping[str, Any]],
    project: str,
    annotations: Mapping[str, Sequence[RawEvent]] | None = None,
) -> Batch:
    """Read the spans of one trace as Phoenix answers them. The project stands for the service."""
    batch = Batch()
    resource = Resource.of({"service.name": project})
    scopes = scopes_of(record(span.get("attributes")) for span in spans)
    for span, scope in zip(spans, scopes, strict=True):
        context = record(span.get("context"))
        span_id = text(context.get("span_id"))
        given = [_event(record(event)) for event in items(span.get("events"))]
        take_span(
            batch,
            trace_id=context.get("trace_id"),
            span_id=span_id,
            parent_id=span.get("parent_id"),
            name=span.get("name"),
            start_ns=time_ns(span.get("start_time")),
            end_ns=time_ns(span.get("end_time")),
            attributes=_attributes(span),
            resource=resource,
            status=_STATUS.get(text(span.get("status_code")), 0),
            message=span.get("status_message"),
            scope=scope,
            events=[*given, *(annotations or {}).get(span_id, ())],
        )
    return batch


def _event(event: Mapping[str, Any]) -> RawEvent:
    return RawEvent(
        name=text(event.get("name")),
        time_ns=time_ns(event.get("timestamp")),
        attributes=attributes_of(event.get("attributes")),
    )


def _attributes(span: Mapping[str, Any]) -> dict[str, Any]:
    given = attributes_of(span.get("attributes"))
    kind = text(span.get("span_kind"))
    if any(key.startswith("gen_ai.") for key in given):
        return {key: value for key, value in given.items() if not key.startswith(_ADDED)}
    if kind and kind != "UNKNOWN":
        given[_KIND] = kind
    for name in _JOINED:
        parts = {key: given[key] for key in given if key.startswith(f"{name}.")}
        if parts and name not in given:
            for key in parts:
                del given[key]
            given[name] = msgspec.json.encode(_nested(parts, len(name) + 1)).decode()
    return given


def _nested(parts: Mapping[str, Any], skip: int) -> dict[str, Any]:
    """Return flattened keys as the object that they came from.

    >>> _nested({"metadata.a.b": 1, "metadata.c": 2}, len("metadata."))
    {'a': {'b': 1}, 'c': 2}
    """
    found: dict[str, Any] = {}
    for key, value in parts.items():
        *above, last = key[skip:].split(".")
        inner = found
        for part in above:
            inner[part] = record(inner.get(part))
            inner = inner[part]
        inner[last] = value
    return found
