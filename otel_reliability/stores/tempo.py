"""Tempo: TraceQL search, then `/api/v2/traces/{id}`, which answers with protobuf's JSON.

It does not page: where as many traces came back as were asked for the period is halved. A search
covers at most 168 hours.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

import msgspec

from otel_reliability.sources.from_plain import otlp_of
from otel_reliability.sources.otlp_json import items, record, text
from otel_reliability.stores.client import NOT_FOUND, Client, StoreError
from otel_reliability.stores.trace import SECOND, Known, Period, Trace

TRACES: Final = 500
"""Traces of one answer."""
LONGEST_S: Final = 168 * 3_600
"""Longest period of a search, by the store's default."""
_CUT: Final = "Some traces are larger than the store answers with: they are cut."
_AGENTS: Final = (
    "{ span.gen_ai.operation.name != nil || span.openinference.span.kind != nil"
    " || span.traceloop.span.kind != nil }"
)


def fetch(client: Client, period: Period, project: str | None, known: Known) -> Iterator[Trace]:
    """Yield the traces of a service; without one, those with spans of agents."""
    named = msgspec.json.encode(project).decode()
    query = f"{{ resource.service.name = {named} }}" if project else _AGENTS
    seen: set[str] = set()
    for piece in period.pieces(LONGEST_S):
        for trace_id in _search(client, query, piece):
            if trace_id not in seen and not known(trace_id):
                seen.add(trace_id)
                document = _trace(client, trace_id)
                if document:
                    yield Trace(trace_id, document)


def _search(client: Client, query: str, period: Period) -> Iterator[str]:
    end = -(-period.end_ns // SECOND)
    params = [
        ("q", query),
        ("start", str(period.start_ns // SECOND)),
        ("end", str(end)),
        ("limit", str(TRACES)),
        ("spss", "1"),
    ]
    traces = items(record(client.get("/api/search", params)).get("traces"))
    if len(traces) >= TRACES and period.can_halve:
        for half in period.halves():
            yield from _search(client, query, half)
    else:
        if len(traces) >= TRACES:
            client.notes[period.left_out(TRACES)] += 1
        for trace in map(record, traces):
            yield text(trace.get("traceID")).zfill(32)  # leading zeros are left out


def _trace(client: Client, trace_id: str) -> dict[str, object]:
    try:
        answer = record(client.get(f"/api/v2/traces/{quote(trace_id)}"))
    except StoreError as error:
        if error.status != NOT_FOUND:
            raise
        return {}
    if answer.get("status") == "PARTIAL":
        client.notes[_CUT] += 1
    spans = record(otlp_of(record(answer.get("trace")))).get("resourceSpans")
    return {"resourceSpans": spans} if spans else {}
