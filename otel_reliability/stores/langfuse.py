"""Langfuse: `/api/public/v2/observations`, or `/api/public/traces` where a server has no other;
traces listed first, then each whole by its id.

It keeps milliseconds, attributes as text, and neither links nor events. Written from the source of
its SDK and server: not tried on an account.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final
from urllib.parse import quote

import msgspec

from otel_reliability.model.blake2 import blake2b
from otel_reliability.model.span import RawEvent, Resource
from otel_reliability.sources.batch import Batch
from otel_reliability.sources.from_plain import take_span, time_ns
from otel_reliability.sources.otlp_json import items, record, text, whole
from otel_reliability.stores.client import NOT_FOUND, Client, StoreError
from otel_reliability.stores.trace import (
    TASK,
    Known,
    Period,
    Trace,
    evaluation,
    iso,
    root_of,
    trace_of,
)

_OBSERVATIONS: Final = "/api/public/v2/observations"
_TRACES: Final = "/api/public/traces"
_TRACE_DIGITS: Final = 32
_SPAN_DIGITS: Final = 16
_LISTED: Final = 1_000
_WHOLE: Final = 100
"""Observations of one answer with input and output: an answer has at most 5 MB."""
_FIELDS: Final = "core,basic,time,io,metadata,model,usage,prompt,trace_context"
_SDK: Final = "langfuse-sdk"
_OF: Final = "langfuse.observation."
_NUMBER: Final = frozenset({"usage", "tokens", "token_count"})
_INPUT_KEYS: Final = ("gen_ai.input.messages", "input.value", "gen_ai.prompt")
_OUTPUT_KEYS: Final = ("gen_ai.output.messages", "output.value", "gen_ai.completion")


def fetch(client: Client, period: Period, project: str | None, known: Known) -> Iterator[Trace]:
    """Yield the traces of the project that the keys belong to; `project` is its environment."""
    environment = [("environment", project)] if project else []
    window = [("fromStartTime", iso(period.start_ns)), ("toStartTime", iso(period.end_ns))]
    scores = _scores(client, period)
    tasks = _tasks(client, period)
    listing = _pages(client, [*window, *environment], _LISTED)
    try:
        first = next(listing, None)
    except StoreError as error:
        if error.status != NOT_FOUND:
            raise
        yield from _old_traces(client, period, environment, known)
        return
    seen: set[str] = set()
    for listed in chain([] if first is None else [first], listing):
        own_id = text(listed.get("traceId"))
        trace_id = hex_id(own_id, _TRACE_DIGITS)
        if own_id and trace_id not in seen and not known(trace_id):
            seen.add(trace_id)
            asked = [("traceId", own_id), ("fields", _FIELDS)]
            asked.append(("expandMetadata", "attributes,resourceAttributes,scope"))
            spans = [*_pages(client, asked, _WHOLE)]
            yield trace_of(trace_id, batch_of(spans, scores, tasks).spans)


def _old_traces(
    client: Client, period: Period, environment: Sequence[tuple[str, str]], known: Known
) -> Iterator[Trace]:
    """Yield the traces of a server that does not list observations."""
    window = [("fromTimestamp", iso(period.start_ns)), ("toTimestamp", iso(period.end_ns))]
    page = last = 1
    while page <= last:
        place = [("orderBy", "timestamp.asc"), ("page", str(page)), ("limit", str(_WHOLE))]
        answer = record(client.get(_TRACES, [*window, *environment, *place]))
        last = whole(record(answer.get("meta")).get("totalPages")) or 0
        page += 1
        for own_id in [text(record(each).get("id")) for each in items(answer.get("data"))]:
            if own_id and not known(hex_id(own_id, _TRACE_DIGITS)):
                yield _old_trace(record(client.get(f"{_TRACES}/{quote(own_id, safe='')}")))


def _old_trace(trace: Mapping[str, Any]) -> Trace:
    """Read a trace with its observations and scores."""
    own_id = text(trace.get("id"))
    of_trace = {key: trace.get(key) for key in ("sessionId", "userId")}
    observations = map(record, items(trace.get("observations")))
    spans = [{**of_trace, **each, "traceId": own_id} for each in observations]
    given = [
        {
            **score,
            "value": score.get("stringValue") or score.get("value"),
            "subject": {
                "kind": "observation" if score.get("observationId") else "trace",
                "id": score.get("observationId") or own_id,
            },
        }
        for score in map(record, items(trace.get("scores")))
    ]
    return trace_of(hex_id(own_id, _TRACE_DIGITS), batch_of(spans, scores_of(given)).spans)


def hex_id(identifier: str, digits: int) -> str:
    """Return an id of so many hexadecimal digits: its own, or one that stands for it. Early SDKs
    have UUIDs, and let users choose.

    >>> hex_id("cd613e30-d8f1-4adf-91b7-584a2265b1f5", 32), hex_id("cd613e30d8f14adf", 16)
    ('cd613e30d8f14adf91b7584a2265b1f5', 'cd613e30d8f14adf')
    >>> hex_id("my-run", 16) == hex_id("my-run", 16) != hex_id("my-run-2", 16)
    True
    """
    bare = identifier.replace("-", "").lower()
    if len(bare) == digits and not bare.strip("0123456789abcdef"):
        return bare
    return blake2b(identifier.encode(), digest_size=digits // 2).hexdigest() if bare else ""


def _pages(
    client: Client, params: Sequence[tuple[str, str]], limit: int
) -> Iterator[dict[str, Any]]:
    def ask(cursor: str) -> Any:
        more = [("cursor", cursor)] if cursor else []
        return client.get(_OBSERVATIONS, [*params, ("limit", str(limit)), *more])

    for answer in client.pages(ask, _cursor_of):
        yield from map(record, items(answer.get("data")))


def _tasks(client: Client, period: Period) -> dict[str, str]:
    """Return the item of a dataset that each trace of an experiment works on; older servers have
    none.
    """
    since = ("fromStartTime", iso(period.start_ns))

    def ask(cursor: str) -> Any:
        more = [("cursor", cursor)] if cursor else []
        return client.get("/api/public/experiment-items", [since, *more])

    found: dict[str, str] = {}
    try:
        for answer in client.pages(ask, _cursor_of):
            for item in map(record, items(answer.get("data"))):
                task = text(item.get("experimentItemId"))
                found[text(item.get("traceId"))] = task
    except StoreError as error:
        if error.status not in (400, 403, NOT_FOUND):
            raise
    return found


def _cursor_of(answer: Mapping[str, Any]) -> object:
    return record(answer.get("meta")).get("cursor")


def _scores(client: Client, period: Period) -> dict[str, list[RawEvent]]:
    """Return the scores since the period began, by what they are of; older servers have none."""
    params = [("fromTimestamp", iso(period.start_ns)), ("fields", "details,subject")]
    found: list[Mapping[str, Any]] = []

    def ask(cursor: str) -> Any:
        more = [("cursor", cursor)] if cursor else []
        return client.get("/api/public/v3/scores", [*params, ("limit", "100"), *more])

    try:
        for answer in client.pages(ask, _cursor_of):
            found += map(record, items(answer.get("data")))
    except StoreError as error:
        if error.status != NOT_FOUND:
            raise
    return scores_of(found)


def scores_of(scores: Sequence[Mapping[str, Any]]) -> dict[str, list[RawEvent]]:
    """Return scores as evaluations, by the id of their trace or observation."""
    found: dict[str, list[RawEvent]] = {}
    for score in scores:
        subject = record(score.get("subject"))
        at = time_ns(score.get("timestamp"))
        event = evaluation(score.get("name"), score.get("value"), None, at)
        if event is not None and subject.get("kind") in ("trace", "observation"):
            found.setdefault(text(subject.get("id")), []).append(event)
    return found


def batch_of(
    spans: Sequence[Mapping[str, Any]],
    scores: Mapping[str, Sequence[RawEvent]] | None = None,
    tasks: Mapping[str, str] | None = None,
) -> Batch:
    """Read the observations of one trace. `scores` and `tasks`: by the id of their trace, or of
    their observation.
    """
    batch = Batch()
    every = [dict(span) for span in spans]
    by_id = {text(span.get("id")): span for span in every}
    root = root_of(every, "parentObservationId", "id")
    for span in every:
        metadata = record(span.get("metadata"))
        scope = record(metadata.get("scope"))
        name = text(scope.get("name"))
        given = _own(span) if name in ("", _SDK) else _foreign(span, metadata)
        start_ns = time_ns(span.get("startTime")) + _depth(span, by_id)
        events = [*(scores or {}).get(text(span.get("id")), ())]
        if span is root:
            trace_id = text(span.get("traceId"))
            events += (scores or {}).get(trace_id, ())
            task = (tasks or {}).get(trace_id)
            given |= {TASK: task} if task else {}
        take_span(
            batch,
            trace_id=hex_id(text(span.get("traceId")), _TRACE_DIGITS),
            span_id=hex_id(text(span.get("id")), _SPAN_DIGITS),
            parent_id=hex_id(text(span.get("parentObservationId")), _SPAN_DIGITS),
            name=span.get("name"),
            start_ns=start_ns,
            end_ns=time_ns(span.get("endTime")) or start_ns,
            attributes=given,
            resource=Resource.of(_resource(span, metadata)),
            status=2 if span.get("level") == "ERROR" else 0,
            message=span.get("statusMessage"),
            scope=name or _SDK,
            scope_version=scope.get("version"),
            events=events,
        )
    return batch


def _depth(span: Mapping[str, Any], by_id: Mapping[str, Mapping[str, Any]]) -> int:
    """Return how deep a span lies: within one millisecond it begins that many nanoseconds later
    than the root, so that parents come first.
    """
    depth = 0
    above = by_id.get(text(span.get("parentObservationId")))
    while above is not None and depth < len(by_id):
        depth += 1
        above = by_id.get(text(above.get("parentObservationId")))
    return depth


def _resource(span: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    given = _parsed(metadata.get("resourceAttributes"))
    named = {
        "service.version": span.get("version"),
        "deployment.environment.name": span.get("environment"),
    }
    return {**{key: value for key, value in named.items() if value}, **given}


def _own(span: Mapping[str, Any]) -> dict[str, Any]:
    """Return an observation of the SDK as its own attributes."""
    metadata = _parsed(span.get("metadata"))
    given: dict[str, Any] = {
        f"{_OF}type": text(span.get("type")).lower(),
        f"{_OF}input": _text(span.get("input")),
        f"{_OF}output": _text(span.get("output")),
        f"{_OF}level": span.get("level"),
        f"{_OF}model.name": span.get("model") or span.get("providedModelName"),
        f"{_OF}usage_details": _json(span.get("usageDetails")),
        f"{_OF}cost_details": _json(span.get("costDetails")),
        f"{_OF}prompt.name": span.get("promptName"),
        f"{_OF}prompt.version": span.get("promptVersion"),
        "session.id": span.get("sessionId"),
        "user.id": span.get("userId"),
    }
    for key, value in metadata.items():
        if key not in ("scope", "resourceAttributes", "attributes"):
            given[f"{_OF}metadata.{key}"] = value if isinstance(value, str) else _json(value)
    given |= {
        key: value for key, value in _parsed(metadata.get("attributes")).items() if key not in given
    }
    return {key: value for key, value in given.items() if value not in (None, "")}


def _foreign(span: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a span of another instrumentation: its attributes, and input and output where they
    were taken from.
    """
    given = {key: _number(value) for key, value in _parsed(metadata.get("attributes")).items()}
    session = span.get("sessionId")
    if session:
        given.setdefault("session.id", session)
    is_openinference = any(key.startswith("openinference.") for key in given)
    is_tool = given.get("gen_ai.operation.name") == "execute_tool"
    for key, value in (
        (_name_of(_INPUT_KEYS, "gen_ai.tool.call.arguments", is_openinference, is_tool), "input"),
        (_name_of(_OUTPUT_KEYS, "gen_ai.tool.call.result", is_openinference, is_tool), "output"),
    ):
        if span.get(value) is not None:
            given.setdefault(key, _text(span.get(value)))
    return given


def _name_of(keys: Sequence[str], of_tool: str, is_openinference: bool, is_tool: bool) -> str:
    return keys[1] if is_openinference else of_tool if is_tool else keys[0]


def _number(value: object) -> Any:
    """Return text that is a number as the number that it was: all attributes are kept as text.

    >>> _number("12"), _number("1.5"), _number("a"), _number("007")
    (12, 1.5, 'a', '007')
    """
    if not isinstance(value, str):
        return value
    for kind in (int, float):
        try:
            found = kind(value)
        except ValueError:
            continue
        if str(found) == value:
            return found
    return {"true": True, "false": False}.get(value, value)


def _parsed(value: object) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            return record(msgspec.json.decode(value))
        except msgspec.DecodeError:
            return {}
    return record(value)


def _text(value: object) -> object:
    """Return text as it is, and what a server read from text as text again."""
    return value if isinstance(value, str) or value is None else msgspec.json.encode(value).decode()


def _json(value: object) -> str | None:
    return msgspec.json.encode(value).decode() if value else None
