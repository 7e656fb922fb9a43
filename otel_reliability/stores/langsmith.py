"""LangSmith: `/api/v2/runs/query`, or `/runs/query` where a server has no other; roots first, then
each trace by its id.

It keeps neither resource, span kind nor links. Runs become spans as its SDK's OpenTelemetry
exporter writes them. Written from the source of the SDK: not tried on an account.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from otel_reliability.errors import ConfigurationError
from otel_reliability.model.span import EXCEPTION, EXCEPTION_MESSAGE, RawEvent, Resource
from otel_reliability.sources.batch import Batch
from otel_reliability.sources.from_plain import take_span, time_ns
from otel_reliability.sources.otlp_json import items, record, text, whole
from otel_reliability.stores.client import NOT_FOUND, Client, StoreError
from otel_reliability.stores.trace import (
    TASK,
    Known,
    Period,
    Trace,
    chunks,
    evaluation,
    iso,
    prompt_of,
    trace_of,
)

SCOPE: Final = "langsmith"
DEFAULT_PROJECT: Final = "default"
_NEW: Final = "/api/v2/runs/query"
_OLD: Final = "/runs/query"
_PAGE: Final = 100
_IDS: Final = 50
_SELECTED: Final = (
    *("ID", "NAME", "RUN_TYPE", "STATUS", "START_TIME", "END_TIME", "ERROR", "EXTRA", "METADATA"),
    *("INPUTS", "OUTPUTS", "PARENT_RUN_IDS", "TRACE_ID", "THREAD_ID", "DOTTED_ORDER", "TAGS"),
    *("PROMPT_TOKENS", "COMPLETION_TOKENS", "TOTAL_TOKENS", "REFERENCE_EXAMPLE_ID"),
)
_OPERATION: Final = {
    "llm": "chat",
    "tool": "execute_tool",
    "embedding": "embeddings",
    "retriever": "embeddings",
}
_SPAN_HEX: Final = 16


def fetch(client: Client, period: Period, project: str | None, known: Known) -> Iterator[Trace]:
    """Yield the traces of a project."""
    name = project or DEFAULT_PROJECT
    found = items(client.get("/sessions", [("name", name)]))
    project_id = text(record(found[0]).get("id")) if found else ""
    if not project_id:
        allowed = "a project of this workspace"
        raise ConfigurationError("--project", name, allowed, "look it up in LangSmith")
    for root in _runs(client, project_id, period, None):
        trace_id = _hex(root.get("trace_id") or root.get("id"))
        is_done = text(root.get("status")).lower() != "pending"
        if trace_id and is_done and not known(trace_id):
            own_id = text(root.get("trace_id") or root.get("id"))
            runs = [*_runs(client, project_id, period, own_id)]
            scores = _feedback(client, [text(run.get("id")) for run in runs])
            yield trace_of(trace_id, batch_of(runs, name, scores).spans)


def _runs(
    client: Client, project_id: str, period: Period, trace_id: str | None
) -> Iterator[dict[str, Any]]:
    """Yield the roots of a period, or the runs of a trace, which may end after the period."""
    which: dict[str, Any] = {"is_root": True} if trace_id is None else {"trace_id": trace_id}
    body: dict[str, Any] = {
        "project_ids": [project_id],
        "min_start_time": iso(period.start_ns),
        "page_size": _PAGE,
        "selects": _SELECTED,
        **which,
    }
    if trace_id is None:
        body["max_start_time"] = iso(period.end_ns)

    def ask(cursor: str) -> Any:
        return client.post(_NEW, {**body, **({"cursor": cursor} if cursor else {})})

    try:
        for answer in client.pages(ask, lambda answer: answer.get("next_cursor")):
            for run in map(record, items(answer.get("items"))):
                is_root = not items(run.get("parent_run_ids"))
                if is_root if trace_id is None else run.get("trace_id") == trace_id:
                    yield run
    except StoreError as error:
        if error.status != NOT_FOUND:
            raise
        yield from _old_runs(client, project_id, period, trace_id)


def _old_runs(
    client: Client, project_id: str, period: Period, trace_id: str | None
) -> Iterator[dict[str, Any]]:
    body: dict[str, Any] = {"session": [project_id], "limit": _PAGE}
    if trace_id is None:
        body |= {"is_root": True, "start_time": iso(period.start_ns)}
        body["filter"] = f'lt(start_time, "{iso(period.end_ns)}")'
    else:
        body["trace"] = trace_id

    def ask(cursor: str) -> Any:
        return client.post(_OLD, {**body, **({"cursor": cursor} if cursor else {})})

    for answer in client.pages(ask, lambda answer: record(answer.get("cursors")).get("next")):
        yield from map(record, items(answer.get("runs")))


def _feedback(client: Client, ids: Sequence[str]) -> dict[str, list[RawEvent]]:
    found: list[Mapping[str, Any]] = []
    for some in chunks(ids, _IDS):
        offset = 0
        last: list[Any] = []
        while True:
            params = [("limit", str(_PAGE)), ("offset", str(offset))]
            page = items(client.get("/feedback", [("run", each) for each in some] + params))
            if page == last:
                break
            found += map(record, page)
            offset += len(page)
            last = page
            if len(page) < _PAGE:
                break
    return feedback_of(found)


def feedback_of(feedback: Sequence[Mapping[str, Any]]) -> dict[str, list[RawEvent]]:
    """Return feedback as evaluations, by the id of its run."""
    found: dict[str, list[RawEvent]] = {}
    for note in feedback:
        at = time_ns(note.get("modified_at") or note.get("created_at"))
        event = evaluation(note.get("key"), note.get("score"), note.get("value"), at)
        if event is not None:
            found.setdefault(text(note.get("run_id")), []).append(event)
    return found


def batch_of(
    runs: Sequence[Mapping[str, Any]],
    project: str,
    scores: Mapping[str, Sequence[RawEvent]] | None = None,
) -> Batch:
    """Read the runs of one trace. The project stands for the service."""
    batch = Batch()
    resource = Resource.of({"service.name": project})
    first = [_hex(run.get("id"))[:_SPAN_HEX] for run in runs]
    part = slice(0, _SPAN_HEX) if len({*first}) == len(first) else slice(-_SPAN_HEX, None)
    for run in runs:
        above = items(run.get("parent_run_ids"))
        parent_id = above[-1] if above else run.get("parent_run_id")
        start_ns = time_ns(run.get("start_time"))
        failed = bool(run.get("error"))
        given = {EXCEPTION_MESSAGE: text(run.get("error"))} if failed else {}
        event = RawEvent(name=EXCEPTION, time_ns=start_ns, attributes=given)
        take_span(
            batch,
            trace_id=_hex(run.get("trace_id")),
            span_id=_hex(run.get("id"))[part],
            parent_id=_hex(parent_id)[part],
            name=run.get("name"),
            start_ns=start_ns,
            end_ns=time_ns(run.get("end_time")) or start_ns,
            attributes=_attributes(run),
            resource=resource,
            status=2 if failed else 1,
            scope=SCOPE,
            events=[*((event,) if failed else ()), *(scores or {}).get(text(run.get("id")), ())],
        )
    return batch


def _attributes(run: Mapping[str, Any]) -> dict[str, Any]:
    kind = text(run.get("run_type")).lower()
    extra = record(run.get("extra"))
    metadata = record(run.get("metadata")) or record(extra.get("metadata"))
    is_model = kind == "llm"
    given: dict[str, Any] = {
        "langsmith.span.kind": kind,
        "gen_ai.operation.name": _OPERATION.get(kind, kind),
        "gen_ai.prompt": msgspec.json.encode(run.get("inputs")).decode(),
        "gen_ai.completion": msgspec.json.encode(run.get("outputs")).decode(),
        "gen_ai.request.model": metadata.get("ls_model_name") if is_model else None,
        "gen_ai.usage.input_tokens": whole(run.get("prompt_tokens")) if is_model else None,
        "gen_ai.usage.output_tokens": whole(run.get("completion_tokens")) if is_model else None,
        "gen_ai.tool.name": run.get("name") if kind == "tool" else None,
        "gen_ai.tool.call.id": extra.get("tool_call_id"),
        "langsmith.span.tags": ", ".join(map(text, items(run.get("tags")))),
    }
    if not (items(run.get("parent_run_ids")) or run.get("parent_run_id")):
        given[TASK] = run.get("reference_example_id")
    hub = [text(metadata.get(f"lc_hub_{part}")) for part in ("owner", "repo", "commit_hash")]
    if hub[1]:
        given |= prompt_of("/".join(filter(None, hub[:2])), hub[2])
    for key, value in metadata.items():
        if isinstance(value, (str, int, float)):
            given[f"langsmith.metadata.{key}"] = value
    if run.get("thread_id"):
        given.setdefault("langsmith.metadata.thread_id", run.get("thread_id"))
    return {key: value for key, value in given.items() if value not in (None, "")}


def _hex(identifier: object) -> str:
    return text(identifier).replace("-", "")
