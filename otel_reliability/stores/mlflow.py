"""MLflow: `/api/3.0/mlflow/traces/search`, then `batchGet`: OTLP in snake case, base64 ids.

It keeps neither scope, span kind nor the SDK's part of the resource, and reads every string that
is a JSON object or list. Those become text again, and what the server adds to spans of other
conventions is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from otel_reliability.errors import ConfigurationError
from otel_reliability.sources.from_plain import otlp_of, time_ns
from otel_reliability.sources.otlp_json import items, record, text
from otel_reliability.stores.client import NOT_FOUND, Client, StoreError
from otel_reliability.stores.scopes import scopes_of
from otel_reliability.stores.trace import (
    SECOND,
    Known,
    Period,
    Trace,
    chunks,
    evaluation,
    event_json,
    prompt_of,
    root_of,
)

MILLISECOND: Final = 1_000_000
_PAGE: Final = 500
_TRACES: Final = 10
_API: Final = "/api/3.0/mlflow/traces"
_OWN: Final = "mlflow."
_TYPE: Final = "mlflow.spanType"
_SCOPE: Final = "mlflow.tracing.provider"
_FOREIGN: Final = (
    "gen_ai.",
    "openinference.",
    "traceloop.",
    "ai.",
    "llm.",
    "langfuse.",
    "langsmith.",
)
"""Begins attributes of other conventions."""
_LINKED: Final = "mlflow.linkedPrompts"
_NO_SPANS: Final = (
    "Some traces have no spans in the server's database, as those of older servers in its artifact "
    "store: they are missing."
)
_UNFINISHED: Final = "IN_PROGRESS"
_ENDED_NS: Final = 3_600 * SECOND
"""Time after which a trace is fetched although its root is missing: it may never arrive."""


def fetch(client: Client, period: Period, project: str | None, known: Known) -> Iterator[Trace]:
    """Yield the traces of an experiment, or of all; those of the last hour once they ended."""
    experiments = _experiments(client, project)
    pending: list[str] = []
    for info in _search(client, experiments, period):
        trace_id = text(info.get("trace_id"))
        is_old = time_ns(info.get("request_time")) < period.end_ns - _ENDED_NS
        is_done = is_old or info.get("state") != _UNFINISHED
        if trace_id and is_done and not known(trace_id.removeprefix("tr-")):
            pending.append(trace_id)
        if len(pending) == _TRACES:
            yield from _traces(client, pending)
            pending = []
    if pending:
        yield from _traces(client, pending)


def _experiments(client: Client, project: str | None) -> list[str]:
    """Return the ids of the experiments; a search in one that does not exist finds nothing, and
    says nothing.
    """
    if project is None:

        def ask(token: str) -> Any:
            more = {"page_token": token} if token else {}
            body = {"max_results": 1_000, **more}
            return client.post("/api/2.0/mlflow/experiments/search", body)

        pages = client.pages(ask, lambda answer: answer.get("next_page_token"))
        found = (record(each) for page in pages for each in items(page.get("experiments")))
        return [text(each.get("experiment_id")) for each in found]
    for how, key in (("get-by-name", "experiment_name"), ("get", "experiment_id")):
        try:
            answer = record(client.get(f"/api/2.0/mlflow/experiments/{how}", [(key, project)]))
        except StoreError as error:
            if error.status not in (400, NOT_FOUND):
                raise
            continue
        return [text(record(answer.get("experiment")).get("experiment_id"))]
    allowed = "the name or id of an experiment"
    raise ConfigurationError("--project", project, allowed, "look it up in MLflow's UI")


def _search(
    client: Client, experiments: Sequence[str], period: Period
) -> Iterator[Mapping[str, Any]]:
    """Yield what is known of each trace. Pages are offsets: the bounds and the order are fixed."""
    start, end = period.start_ns // MILLISECOND, period.end_ns // MILLISECOND
    for some in chunks(experiments, 100):
        body: dict[str, Any] = {
            "locations": [
                {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": each}}
                for each in some
            ],
            "filter": f"trace.timestamp_ms >= {start} AND trace.timestamp_ms < {end}",
            "max_results": _PAGE,
            "order_by": ["timestamp_ms ASC"],
        }

        def ask(token: str, body: Mapping[str, Any] = body) -> Any:
            more = {"page_token": token} if token else {}
            return client.post(f"{_API}/search", {**body, **more})

        for answer in client.pages(ask, lambda answer: answer.get("next_page_token")):
            yield from map(record, items(answer.get("traces")))


def _traces(client: Client, ids: Sequence[str]) -> Iterator[Trace]:
    params = [("trace_ids", each) for each in ids]
    answer = record(client.get(f"{_API}/batchGet", params))
    for trace in map(record, items(answer.get("traces"))):
        found = trace_in(trace)
        if found is not None:
            yield found
        else:
            client.notes[_NO_SPANS] += 1


def trace_in(trace: Mapping[str, Any]) -> Trace | None:
    """Read one trace of an answer; None where its spans lie outside the server's database."""
    info = record(trace.get("trace_info"))
    spans = [record(otlp_of(record(span))) for span in items(trace.get("spans"))]
    if not spans:
        return None
    held = [_values(span) for span in spans]
    is_native = [_TYPE in values and not _is_foreign(values) for values in held]
    root = root_of(spans, "parentSpanId", "spanId") or spans[0]
    by_id = {text(span.get("spanId")): span for span in spans}
    for span, native in zip(spans, is_native, strict=True):
        span["attributes"] = _attributes(span, native=native)
        span["status"] = _status(record(span.get("status")))
    guessed = scopes_of(
        {key: record(value).get("stringValue") for key, value in _values(span).items()}
        for span in spans
    )
    _add(root, "attributes", _session_of(record(info.get("trace_metadata"))))
    for note in map(record, items(info.get("assessments"))):
        about = by_id.get(_span_id(note.get("span_id")), root)
        _add(about, "events", _evaluation(note))
    scopes = [_SCOPE if native else scope for native, scope in zip(is_native, guessed, strict=True)]
    tags = record(info.get("tags"))
    _add(root, "attributes", _prompts_of(tags.get(_LINKED)))
    resource = [_text_pair(key, value) for key, value in tags.items() if not key.startswith(_OWN)]
    groups = [
        {"scope": {"name": scope}, "spans": [span]}
        for span, scope in zip(spans, scopes, strict=True)
    ]
    document = {"resourceSpans": [{"resource": {"attributes": resource}, "scopeSpans": groups}]}
    return Trace(text(spans[0].get("traceId")), document)


def _add(span: dict[str, Any], part: str, more: Sequence[Mapping[str, Any]]) -> None:
    span[part] = [*items(span.get(part)), *more]


def _values(span: Mapping[str, Any]) -> dict[str, Any]:
    return {
        text(pair.get("key")): pair.get("value")
        for pair in map(record, items(span.get("attributes")))
    }


def _is_foreign(values: Mapping[str, Any]) -> bool:
    return any(key.startswith(_FOREIGN) for key in values)


def _attributes(span: Mapping[str, Any], *, native: bool) -> list[dict[str, Any]]:
    """Return the attributes as they were: native values are JSON text, others what they say."""
    found: list[dict[str, Any]] = []
    for key, value in _values(span).items():
        is_own = key.startswith(_OWN)
        if is_own and not native:
            continue
        given = _plain(record(value))
        is_parsed = isinstance(given, dict) or _holds_objects(given)
        if is_own or is_parsed:
            found.append(_text_pair(key, msgspec.json.encode(given).decode()))
        else:
            found.append({"key": key, "value": value})
    return found


def _holds_objects(value: object) -> bool:
    return any(isinstance(each, dict) for each in items(value))


def _plain(value: Mapping[str, Any]) -> Any:
    """Return a value of OTLP as JSON has it."""
    for kind, given in value.items():
        if kind == "kvlistValue":
            pairs = map(record, items(record(given).get("values")))
            return {text(pair.get("key")): _plain(record(pair.get("value"))) for pair in pairs}
        if kind == "arrayValue":
            return [_plain(record(each)) for each in items(record(given).get("values"))]
        return int(given) if kind == "intValue" and isinstance(given, str) else given
    return None


def _text_pair(key: str, value: object) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": text(value)}}


_STATUS: Final = {"STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}


def _status(status: Mapping[str, Any]) -> dict[str, Any]:
    code = status.get("code")
    return {**status, "code": _STATUS.get(code, 0) if isinstance(code, str) else code or 0}


def _session_of(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    session = text(metadata.get("mlflow.trace.session"))
    return [_text_pair("session.id", session)] if session else []


def _prompts_of(linked: object) -> list[dict[str, Any]]:
    """Return the prompts that a trace is linked to, as attributes; several are one text."""
    try:
        given = msgspec.json.decode(text(linked) or "[]")
    except msgspec.DecodeError:
        return []
    prompts = [record(each) for each in items(given)]
    names, versions = (
        ", ".join(str(each.get(part, "")) for each in prompts) for part in ("name", "version")
    )
    return [_text_pair(*pair) for pair in prompt_of(names, versions).items()] if prompts else []


def _span_id(identifier: object) -> str:
    return text(identifier).removeprefix("0x").zfill(16) if identifier else ""


def _evaluation(note: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return an assessment as an evaluation: none of an expectation, of one that failed, or of one
    that another replaced.
    """
    feedback = record(note.get("feedback"))
    if note.get("valid") is False or feedback.get("error") is not None:
        return []
    value = feedback.get("value")
    at = time_ns(note.get("last_update_time"))
    event = evaluation(note.get("assessment_name"), value, None, at)
    return [] if event is None else [event_json(event)]
