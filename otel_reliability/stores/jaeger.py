"""Jaeger: `/api/v3`, which answers with OTLP-JSON, times to the nanosecond.

It does not page: a search returns the newest traces of a service up to a number. Where so many
came back the period is halved.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote

from otel_reliability.sources.from_plain import otlp_of
from otel_reliability.sources.otlp_json import items, record, text
from otel_reliability.stores.client import NOT_FOUND, Client, StoreError
from otel_reliability.stores.trace import Known, Period, Trace, iso

TRACES: Final = 100
"""Traces of one answer."""
_SHOWN: Final = 20
"""Services that are named where the one asked for is not there."""


def fetch(client: Client, period: Period, project: str | None, known: Known) -> Iterator[Trace]:
    """Yield the traces of a service, or of all."""
    services = [project] if project else sorted(_services(client))
    seen: set[str] = set()
    is_empty = True
    for service in services:
        for trace_id in _search(client, service, period):
            is_empty = False
            if trace_id not in seen and not known(trace_id):
                seen.add(trace_id)
                document = _traces(client, f"/{quote(trace_id)}", [("raw_traces", "true")])
                for found, spans in _by_trace(document):
                    if found == trace_id:
                        yield Trace(trace_id, {"resourceSpans": spans})
    if project and is_empty:
        there = sorted(_services(client))
        if project not in there:
            shown = ", ".join(there[:_SHOWN]) or "none"
            client.notes[f"No service is {project}; there are: {shown}."] += 1


def _services(client: Client) -> list[str]:
    answer = record(client.get("/api/v3/services"))
    return [text(service) for service in items(answer.get("services")) if service]


def _search(client: Client, service: str, period: Period) -> Iterator[str]:
    params = [
        ("query.service_name", service),
        ("query.start_time_min", iso(period.start_ns)),
        ("query.start_time_max", iso(period.end_ns)),
        ("query.num_traces", str(TRACES)),
        ("query.raw_traces", "true"),
    ]
    found = [trace_id for trace_id, _ in _by_trace(_traces(client, "", params))]
    if len(found) >= TRACES and period.can_halve:
        for half in period.halves():
            yield from _search(client, service, half)
    else:
        if len(found) >= TRACES:
            client.notes[period.left_out(TRACES)] += 1
        yield from found


def _traces(client: Client, path: str, params: list[tuple[str, str]]) -> dict[str, Any]:
    """Return an answer as a request; nothing found is status 404."""
    try:
        return record(otlp_of(client.get(f"/api/v3/traces{path}", params)))
    except StoreError as error:
        if error.status == NOT_FOUND:
            return {}
        raise


def _by_trace(document: dict[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the resource spans of each trace in a request, by its id."""
    found: dict[str, list[dict[str, Any]]] = {}
    for resource_spans in map(record, items(document.get("resourceSpans"))):
        parts: dict[str, list[dict[str, Any]]] = {}
        for scope_spans in map(record, items(resource_spans.get("scopeSpans"))):
            spans: dict[str, list[dict[str, Any]]] = {}
            for span in map(record, items(scope_spans.get("spans"))):
                spans.setdefault(text(span.get("traceId")).zfill(32), []).append(span)
            for trace_id, own in spans.items():
                parts.setdefault(trace_id, []).append({**scope_spans, "spans": own})
        for trace_id, own in parts.items():
            found.setdefault(trace_id, []).append({**resource_spans, "scopeSpans": own})
    return [*found.items()]
