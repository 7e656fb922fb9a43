from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.model.span import KIND_CLIENT, STATUS_ERROR, Evaluation
from otel_reliability.sources.batch import MAX_DEPTH, Batch
from otel_reliability.sources.otlp_json import decode_request
from otel_reliability.testing import at, span, span_id, trace_id, traces_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)
KINDS = ["stringValue", "intValue", "boolValue", "doubleValue", "bytesValue", "arrayValue", "kvlistValue"]
SPAN = traces_json([span(2, 1, attributes={"a": 1}, events=[("e", {"b": 2})], links=[(3, 4)])])["resourceSpans"][0][
    "scopeSpans"
][0]["spans"][0]


def request(*spans: object) -> dict[str, Any]:
    """A request of these spans."""
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def read_value(value: object) -> Any:
    """An attribute of this value, as it is read."""
    (found,) = decode_request(request({**SPAN, "attributes": [{"key": "k", "value": value}]})).spans
    return found.attributes["k"]


def told(batch: Batch) -> list[tuple[str, str]]:
    """What is malformed in a batch, by reason and detail."""
    return [(str(problem.reason), problem.detail) for problem in batch.malformed]


def test_enums_as_names_and_ids_in_upper_case() -> None:
    """The specification wants integers and lower case; senders that write otherwise are understood."""
    named = {**SPAN, "traceId": "AB" * 16, "kind": "SPAN_KIND_CLIENT", "status": {"code": "STATUS_CODE_ERROR"}}
    read = decode_request(request(named)).spans[0]

    assert (read.span_kind, read.status, read.trace_id) == (KIND_CLIENT, STATUS_ERROR, b"\xab" * 16)


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


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ({"stringValue": "ü"}, "ü"),
        ({"stringValue": ""}, ""),
        ({"intValue": "9223372036854775807"}, 2**63 - 1),
        ({"intValue": 7}, 7),
        ({"intValue": 7.0}, 7),
        ({"boolValue": False}, False),
        ({"doubleValue": 1}, 1.0),
        ({"doubleValue": "0.5"}, 0.5),
        ({"doubleValue": "-Infinity"}, float("-inf")),
        ({"bytesValue": "AAE="}, b"\0\1"),
        ({"bytesValue": "-_8"}, b"\xfb\xff"),
        ({"arrayValue": {"values": [{"intValue": "1"}, {}]}}, (1, None)),
        ({"arrayValue": {}}, ()),
        ({"kvlistValue": {"values": [{"key": "k", "value": {"boolValue": True}}]}}, {"k": True}),
        ({"laterValue": 1, "stringValue": "s"}, "s"),
    ],
)
def test_values(value: object, read: object) -> None:
    """Each kind of value is read as its own type, numbers as numbers or strings, bytes in either alphabet."""
    assert read_value(value) == read
    assert type(read_value(value)) is type(read)


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        "bare",
        {"stringValue": 5},
        {"intValue": "five"},
        {"intValue": 1.5},
        {"intValue": True},
        {"intValue": 2**63},
        {"intValue": "1_000"},
        {"boolValue": "true"},
        {"doubleValue": "many"},
        {"doubleValue": True},
        {"doubleValue": 10**400},
        {"bytesValue": "A"},
        {"bytesValue": "ü"},
        {"laterValue": 1},
    ],
)
def test_values_of_a_wrong_type_are_absent(value: object) -> None:
    """A value that is not of the type it says is None, not a guess and not an error."""
    assert read_value(value) is None


@given(st.sampled_from(KINDS), JSON)
def test_reading_a_value_is_total(kind: str, content: Any) -> None:
    """Whatever stands where a value should, reading raises nothing and gives one of our types."""
    assert isinstance(read_value({kind: content}), (str, int, bool, float, bytes, tuple, dict, type(None)))


def test_attributes_pass_over_what_is_no_pair() -> None:
    """A pair without a key, or with one that is no text, is not there; of equal keys the last counts."""
    given: list[Any] = [{"key": "a", "value": {"intValue": 1}}, {"value": {}}, {"key": 5}, "a", None, {"key": "a"}]

    assert decode_request(request({**SPAN, "attributes": given})).spans[0].attributes == {"a": None}


def test_depth_is_bounded() -> None:
    """Lists nested deeper than the bound end in None, as in protobuf."""
    value: dict[str, Any] = {"intValue": 1}
    for _ in range(MAX_DEPTH + 1):
        value = {"arrayValue": {"values": [value]}}
    depth, read = 0, read_value(value)
    while read:
        (read,) = read
        depth += 1

    assert (read, depth) == (None, MAX_DEPTH)
