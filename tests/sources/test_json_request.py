from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.model.span import KIND_CLIENT, STATUS_ERROR, Evaluation
from otel_reliability.sources.batch import Batch
from otel_reliability.sources.json_request import decode_request
from otel_reliability.testing import at, span, span_id, trace_id, traces_json
from tests.sources.test_json_values import JSON

SPAN = traces_json([span(2, 1, attributes={"a": 1}, events=[("e", {"b": 2})], links=[(3, 4)])])["resourceSpans"][0][
    "scopeSpans"
][0]["spans"][0]


def request(*spans: object) -> dict[str, Any]:
    """A request of these spans."""
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def told(batch: Batch) -> list[tuple[str, str]]:
    """What is malformed in a batch, by reason and detail."""
    return [(str(problem.reason), problem.detail) for problem in batch.malformed]


def test_enums_as_names() -> None:
    """The specification wants integers; senders that write the names are understood."""
    named = {**SPAN, "kind": "SPAN_KIND_CLIENT", "status": {"code": "STATUS_CODE_ERROR"}}
    read = decode_request(request(named)).spans[0]

    assert (read.span_kind, read.status) == (KIND_CLIENT, STATUS_ERROR)


def test_ids_in_upper_case() -> None:
    """Hexadecimal digits may be upper case."""
    upper = {**SPAN, "traceId": "AB" * 16, "spanId": "CD" * 8, "parentSpanId": "EF" * 8}
    read = decode_request(request(upper)).spans[0]

    assert (read.trace_id, read.span_id, read.parent_id) == (b"\xab" * 16, b"\xcd" * 8, b"\xef" * 8)


def test_numbers_for_strings_and_strings_for_numbers() -> None:
    """64-bit numbers may be numbers, 32-bit ones strings."""
    other = {**SPAN, "startTimeUnixNano": at(0), "endTimeUnixNano": float(at(1)), "flags": "768", "kind": "3"}
    read = decode_request(request(other)).spans[0]

    assert (read.start_ns, read.end_ns, read.parent_remote, read.span_kind) == (at(0), at(1), True, KIND_CLIENT)


def test_backward_clock() -> None:
    """A span that ends before it starts is read, and took no time."""
    read = decode_request(request({**SPAN, "endTimeUnixNano": "1"})).spans[0]

    assert read.start_ns == read.end_ns == at(0)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"traceId": "xyz"}, ("trace_id", "the traceId has 3 characters, not 32 hexadecimal digits")),
        (
            {"traceId": "APBnqgupArcA8GeqC6kCtw=="},
            ("trace_id", "the traceId has 24 characters, not 32 hexadecimal digits"),
        ),
        ({"traceId": 7}, ("trace_id", "the traceId is a number, not 32 hexadecimal digits")),
        ({"traceId": "ab"}, ("trace_id", "the trace id has 1 bytes, not 16")),
        ({"traceId": None}, ("trace_id", "the trace id is absent")),
        ({"traceId": "0" * 32}, ("trace_id", "the trace id is zero")),
        ({"spanId": []}, ("span_id", "the spanId is a list, not 16 hexadecimal digits")),
        ({"spanId": "0" * 16}, ("span_id", "the span id is zero")),
        ({"parentSpanId": {}}, ("parent_id", "the parentSpanId is an object, not 16 hexadecimal digits")),
        ({"parentSpanId": "ab"}, ("parent_id", "the parent span id has 1 bytes, not 8")),
        ({"startTimeUnixNano": "noon"}, ("start_time", "the start time of span 0000000000000002 is absent")),
        ({"startTimeUnixNano": -5}, ("start_time", "the start time of span 0000000000000002 is out of range")),
        ({"endTimeUnixNano": str(2**63)}, ("end_time", "the end time of span 0000000000000002 is out of range")),
        ({"endTimeUnixNano": True}, ("end_time", "the end time of span 0000000000000002 is absent")),
    ],
)
def test_malformed_span(change: dict[str, Any], problem: tuple[str, str]) -> None:
    """A malformed span is named by its reason, and the one beside it is read."""
    batch = decode_request(request({**SPAN, **change}, SPAN))

    assert told(batch) == [problem]
    assert len(batch.spans) == 1


def test_wrong_types_are_absent() -> None:
    """Anything but ids and times may have any type: what cannot be read is not there."""
    keys = ("name", "kind", "status", "flags", "attributes", "events", "links", "traceState")
    odd = {**SPAN, **{key: [["odd"]] for key in keys}}
    read = decode_request(request(odd)).spans[0]

    assert read[3:5] == ("", 0)
    assert (read.status, read.parent_remote, read.attributes, read.trace_state) == (0, None, {}, "")
    assert [event.name for event in read.events] == [""]
    assert read.links == ()


MALFORMED: list[tuple[Any, str]] = [
    (7, "a number is no OTLP request"),
    (None, "null is no OTLP request"),
    ("spans", "a string is no OTLP request"),
    (True, "a boolean is no OTLP request"),
    ({"spans": []}, "an object without resourceSpans or resourceLogs is no OTLP request"),
    ({"resourceSpans": {}}, "resourceSpans is an object, not a list"),
    ({"resourceSpans": [7]}, "a number stands among the resourceSpans"),
    ({"resourceSpans": [{"scopeSpans": "s"}]}, "scopeSpans is a string, not a list"),
    (request("span"), "a string stands among the spans"),
    ({"resourceLogs": [{"scopeLogs": [{"logRecords": [[]]}]}]}, "a list stands among the logRecords"),
]


@pytest.mark.parametrize(("body", "detail"), MALFORMED)
def test_malformed_request(body: object, detail: str) -> None:
    """What has another shape than a request is named; no field of it is guessed."""
    assert told(decode_request(body)) == [("shape", detail)]


def test_broken_parts_leave_the_others() -> None:
    """A broken group, scope or span costs none of its neighbours."""
    groups = [None, {"scopeSpans": [5, {"spans": ["x", SPAN]}]}, *request(SPAN)["resourceSpans"]]
    batch = decode_request({"resourceSpans": groups})

    assert len(batch.spans) == 2
    assert len(batch.malformed) == 3


EMPTY: list[Any] = [
    {},
    {"resourceMetrics": [1]},
    {"resourceSpans": None},
    {"resourceSpans": [{}]},
    {"resourceSpans": [], "x": 1},
]


@pytest.mark.parametrize("body", EMPTY)
def test_empty_requests(body: object) -> None:
    """An empty request, another signal, and keys of a later schema are no fault."""
    assert decode_request(body) == Batch()


def test_list_of_requests() -> None:
    """Several requests in a list are read one after another."""
    batch = decode_request([request(SPAN), 3, request(SPAN)])

    assert len(batch.spans) == 2
    assert told(batch) == [("shape", "a number is no OTLP request")]


def test_logs_and_spans_in_one_object() -> None:
    """An object may hold both signals."""
    log = {
        "eventName": "gen_ai.evaluation.result",
        "observedTimeUnixNano": str(at(5)),
        "traceId": trace_id(1).hex(),
        "spanId": span_id(2).hex(),
        "attributes": [
            {"key": "gen_ai.evaluation.name", "value": {"stringValue": "success"}},
            {"key": "gen_ai.evaluation.score.label", "value": {"stringValue": "pass"}},
        ],
    }
    batch = decode_request({**request(SPAN), "resourceLogs": [{"scopeLogs": [{"logRecords": [log, {}]}]}]})

    assert len(batch.spans) == batch.other_logs == 1
    assert batch.evaluations == [Evaluation("success", None, "pass", at(5), trace_id(1), span_id(2))]


@given(st.dictionaries(st.sampled_from(sorted(SPAN)), JSON))
def test_every_span_is_accounted_for(change: dict[str, Any]) -> None:
    """Whatever types a span's fields have, it is read or malformed, and its neighbour is read."""
    batch = decode_request(request({**SPAN, **change}, SPAN))

    assert len(batch.spans) + len(batch.malformed) == 2
    assert batch.spans[-1] == decode_request(request(SPAN)).spans[0]


@given(JSON)
def test_any_json_is_taken(body: Any) -> None:
    """Any JSON at all is a request or malformed, and never an error."""
    assert decode_request(body).spans == []
    assert decode_request({"resourceSpans": body, "resourceLogs": body}).spans == []


def test_json_of_the_recorder_is_the_request() -> None:
    """The object that is written is JSON of the keys the specification names."""
    assert json.loads(json.dumps(traces_json([span()])))["resourceSpans"][0]["scopeSpans"][0]["scope"]["name"] == "test"
