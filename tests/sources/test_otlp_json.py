from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.errors import UndecodableBody
from otel_reliability.model.span import KIND_CLIENT, STATUS_ERROR, Evaluation, RawSpan
from otel_reliability.sources.batch import MAX_DEPTH, Batch, Malformed, Reason
from otel_reliability.sources.otlp_json import decode_request, parse, read_file
from otel_reliability.sources.otlp_write import traces_json
from otel_reliability.testing import at, span, span_id, trace_id, write_otlp
from tests.shared import each_file
from tests.sources.strategies import plain, raw_spans

LINE = json.dumps(traces_json([span()])).encode() + b"\n"
MB = 1024 * 1024


def read(path: Path | str, longest: int = 10 * MB) -> tuple[list[RawSpan], list[Malformed]]:
    batches = list(read_file(path, longest=longest))
    return [s for b in batches for s in b.spans], [m for b in batches for m in b.malformed]


def file(folder: Path, content: bytes) -> Path:
    path = folder / "runs.jsonl"
    path.write_bytes(content)
    return path


@given(
    st.lists(raw_spans(), max_size=4), st.sampled_from(["a.jsonl", "a.jsonl.gz"]), st.integers(1, 3)
)
def test_round_trip(
    tmp_path_factory: pytest.TempPathFactory, spans: list[RawSpan], name: str, batch: int
) -> None:
    path = write_otlp(tmp_path_factory.getbasetemp() / name, spans, batch=batch)
    found, malformed = read(path)

    assert plain(found) == plain(spans)
    assert malformed == []


@pytest.mark.parametrize("recording", each_file("corpora/*/*.jsonl.gz"))
def test_recordings(recording: Path) -> None:
    told = sum(
        len(scope["spans"])
        for line in gzip.decompress(recording.read_bytes()).splitlines()
        for group in msgspec.json.decode(line).get("resourceSpans", ())
        for scope in group["scopeSpans"]
    )
    spans, malformed = read(recording)

    assert len(spans) == told
    assert malformed == []


def test_standard_input() -> None:
    code = (
        "from otel_reliability.sources.otlp_json import read_file\n"
        "print([len(batch.spans) or batch.malformed[0].place for batch in read_file('-')])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], input=LINE + b"x\n" + LINE, capture_output=True, check=True
    )

    assert found.stdout.decode().strip() == "[1, 'standard input:2', 1]"


def test_malformed_lines_are_placed(tmp_path: Path) -> None:
    bad_span = LINE.replace(b'"traceId": "0', b'"traceId": "x')
    lines = [
        LINE,
        b"{nonsense}\n",
        b"\n",
        b"[1]\n",
        LINE,
        b"\xff\xfe\n",
        b'{"spans": []}\n',
        bad_span,
        LINE,
    ]
    path = file(tmp_path, b"".join(lines))
    spans, malformed = read(path)

    assert len(spans) == 3
    assert malformed == [
        Malformed(
            Reason.JSON,
            "not JSON: Expecting property name enclosed in double quotes at column 2",
            f"{path}:2",
        ),
        Malformed(Reason.SHAPE, "a number is no OTLP request", f"{path}:4"),
        Malformed(Reason.ENCODING, "not UTF-8 at column 1", f"{path}:6"),
        Malformed(
            Reason.SHAPE,
            "an object without resourceSpans or resourceLogs is no OTLP request",
            f"{path}:7",
        ),
        Malformed(
            Reason.TRACE_ID, "the traceId has 32 characters, not 32 hexadecimal digits", f"{path}:8"
        ),
    ]


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        (b"[" * 100_000 + b"]" * 100_000, "nested too deeply at column 1"),
        (b'{"resourceSpans": ' + b"1" * 5_000 + b"}", "a number of too many digits at column 1"),
        (b'{"a": "\x01"}', "not JSON: Invalid control character at column 8"),
    ],
)
def test_hostile_lines(tmp_path: Path, line: bytes, detail: str) -> None:
    path = file(tmp_path, line + b"\n" + LINE)
    spans, malformed = read(path)

    assert len(spans) == 1
    assert malformed == [Malformed(Reason.JSON, detail, f"{path}:1")]


def test_no_content_in_messages(tmp_path: Path) -> None:
    """What a line says is never told, only where and why it could not be read."""
    secrets = [
        b'{"resourceSpans": "secret"}',
        b'{"secret": 1}',
        b"secret",
        LINE.replace(b"0001", b"secr"),
    ]
    _, malformed = read(file(tmp_path, b"\n".join(secrets) + b"\n"))

    assert len(malformed) == 4
    assert not any("secr" in problem.detail for problem in malformed)


def test_too_long_a_line(tmp_path: Path) -> None:
    path = file(tmp_path, LINE + b'{"x": "' + b"x" * 5_000 + b'"}\n' + LINE)
    spans, malformed = read(path, longest=4_000)

    assert len(spans) == 2
    assert malformed == [
        Malformed(Reason.LINE_TOO_LONG, "a line longer than 4000 bytes", f"{path}:2")
    ]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_line_ends_and_marks(tmp_path: Path, mark: bytes, end: bytes) -> None:
    """A byte order mark, the line ends of Windows and a last line without one are no fault."""
    spans, malformed = read(file(tmp_path, mark + LINE.strip() + b"\n" + LINE.strip() + end))

    assert (len(spans), malformed) == (2, [])


@pytest.mark.parametrize("indent", [2, "\t"])
@pytest.mark.parametrize("requests", [1, 2])
def test_file_may_be_one_indented_document(
    tmp_path: Path, indent: int | str, requests: int
) -> None:
    request = traces_json([span()])
    text = json.dumps(request if requests == 1 else [request] * requests, indent=indent)
    spans, malformed = read(file(tmp_path, text.encode()))

    assert (len(spans), malformed) == (requests, [])


def test_broken_document_names_the_line_and_the_remedy(tmp_path: Path) -> None:
    path = file(tmp_path, b'{\n  "resourceSpans": [\n    oops\n  ]\n}\n')
    spans, malformed = read(path)
    detail = (
        "not JSON: Expecting value at column 5; write one request per line, for example with jq -c"
    )

    assert (spans, malformed) == ([], [Malformed(Reason.JSON, detail, f"{path}:3")])


def test_cut_off_file(tmp_path: Path) -> None:
    path = file(tmp_path, LINE * 2 + LINE[:-20])
    spans, malformed = read(path)

    assert len(spans) == 2
    assert malformed == [
        Malformed(Reason.TRUNCATED, "the file ends in the middle of a line", f"{path}:3")
    ]


@pytest.mark.parametrize(
    ("packing", "pack"), [("gzip", gzip.compress), ("zstd", zstandard.compress)]
)
def test_cut_off_packed_file(tmp_path: Path, packing: str, pack: Callable[[bytes], bytes]) -> None:
    dice = random.Random(1)
    lines = [
        json.dumps(traces_json([span(dice.randrange(1, 2**60))])).encode() + b"\n"
        for _ in range(3_000)
    ]
    packed = pack(b"".join(lines))
    path = file(tmp_path, packed[: len(packed) // 2])
    spans, malformed = read(path)

    assert 500 < len(spans) < 2_500
    assert [(m.reason, m.detail) for m in malformed] == [
        (Reason.TRUNCATED, f"the {packing} data ends in the middle; what came before it was read")
    ]
    assert len(spans) <= int(malformed[0].place.removeprefix(f"{path}:")) <= len(spans) + 1


def test_empty_file(tmp_path: Path) -> None:
    assert read(file(tmp_path, b"")) == ([], [])
    assert read(file(tmp_path, b"\n \n\t\r\n")) == ([], [])


def test_half_characters_are_replaced() -> None:
    """JSON may hold half of a surrogate pair, which no text can; whole pairs stay what they are."""
    line = LINE.replace(
        b'"name": "span"', b'"name": "\\ud83d\\ude00 \\ud83d", "\\ud800": ["\\udc00"]'
    )
    name = decode_request(parse(line)).spans[0].name
    written = json.dumps(
        traces_json([span(attributes={"half": "\ud800", "large": 2**70})])
    ).encode()

    assert name == "\U0001f600 \ufffd"
    assert decode_request(parse(written)).spans[0].attributes == {"half": "\ufffd", "large": None}


@given(st.binary(max_size=60))
def test_any_body_is_decoded_or_undecodable(body: bytes) -> None:
    try:
        batch = decode_request(parse(body))
    except UndecodableBody:
        return
    assert batch.spans == []


@pytest.mark.parametrize("packed", [False, True])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, packed: bool) -> None:
    line = (
        json.dumps(
            traces_json([span(n, attributes={"text": "x" * 1_000}) for n in range(1, 60)])
        ).encode()
        + b"\n"
    )
    long = b'{"x": "' + b"y" * (30 * MB) + b'"}\n'
    content = line * (5 * MB // len(line)) + long + line * (5 * MB // len(line))
    path = file(tmp_path, gzip.compress(content, 1) if packed else content)
    tracemalloc.start()
    spans = sum(len(batch.spans) for batch in read_file(path, longest=MB))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert spans > 5_000
    assert peak < 8 * MB


def test_a_file_made_to_explode(tmp_path: Path) -> None:
    bomb = zstandard.ZstdCompressor().compressobj()
    zeros = bytes(MB)
    path = file(tmp_path, b"".join(bomb.compress(zeros) for _ in range(256)) + bomb.flush())
    tracemalloc.start()
    spans, malformed = read(path, longest=MB)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert spans == []
    assert [problem.reason for problem in malformed] == [Reason.LINE_TOO_LONG]
    assert path.stat().st_size < 20_000
    assert peak < 100 * MB


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=5,
)
KINDS = [
    "stringValue",
    "intValue",
    "boolValue",
    "doubleValue",
    "bytesValue",
    "arrayValue",
    "kvlistValue",
]
SPAN = traces_json([span(2, 1, attributes={"a": 1}, events=[("e", {"b": 2})], links=[(3, 4)])])[
    "resourceSpans"
][0]["scopeSpans"][0]["spans"][0]


def request(*spans: object) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def read_value(value: object) -> Any:
    (found,) = decode_request(request({**SPAN, "attributes": [{"key": "k", "value": value}]})).spans
    return found.attributes["k"]


def told(batch: Batch) -> list[tuple[str, str]]:
    return [(str(problem.reason), problem.detail) for problem in batch.malformed]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"traceId": "AB" * 16, "kind": "SPAN_KIND_CLIENT"},
            {"trace_id": b"\xab" * 16, "span_kind": KIND_CLIENT},
        ),
        ({"status": {"code": "STATUS_CODE_ERROR"}}, {"status": STATUS_ERROR}),
        (
            {"startTimeUnixNano": at(0), "endTimeUnixNano": float(at(1))},
            {"start_ns": at(0), "end_ns": at(1)},
        ),
        ({"flags": "768", "kind": "3"}, {"parent_remote": True, "span_kind": KIND_CLIENT}),
        ({"endTimeUnixNano": "1"}, {"start_ns": at(0), "end_ns": 1}),
    ],
    ids=["upper case, names", "names", "64-bit numbers", "32-bit strings", "a clock set back"],
)
def test_what_senders_write_otherwise_is_understood(
    change: dict[str, Any], expected: dict[str, Any]
) -> None:
    read = decode_request(request({**SPAN, **change})).spans[0]

    assert {name: getattr(read, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"traceId": "xyz"},
            ("trace_id", "the traceId has 3 characters, not 32 hexadecimal digits"),
        ),
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
        (
            {"parentSpanId": {}},
            ("parent_id", "the parentSpanId is an object, not 16 hexadecimal digits"),
        ),
        ({"parentSpanId": "ab"}, ("parent_id", "the parent span id has 1 bytes, not 8")),
        (
            {"startTimeUnixNano": "noon"},
            ("start_time", "the start time of span 0000000000000002 is absent"),
        ),
        (
            {"startTimeUnixNano": -5},
            ("start_time", "the start time of span 0000000000000002 is out of range"),
        ),
        (
            {"endTimeUnixNano": str(2**63)},
            ("end_time", "the end time of span 0000000000000002 is out of range"),
        ),
        (
            {"endTimeUnixNano": True},
            ("end_time", "the end time of span 0000000000000002 is absent"),
        ),
    ],
)
def test_malformed_span(change: dict[str, Any], problem: tuple[str, str]) -> None:
    batch = decode_request(request({**SPAN, **change}, SPAN))

    assert told(batch) == [problem]
    assert len(batch.spans) == 1


def test_wrong_types_are_absent() -> None:
    keys = ("name", "kind", "status", "flags", "attributes", "events", "links", "traceState")
    odd = {**SPAN, **{key: [["odd"]] for key in keys}}
    read = decode_request(request(odd)).spans[0]

    assert (read.name, read.span_kind) == ("", 0)
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
    (
        {"resourceLogs": [{"scopeLogs": [{"logRecords": [[]]}]}]},
        "a list stands among the logRecords",
    ),
]


@pytest.mark.parametrize(("body", "detail"), MALFORMED)
def test_malformed_request(body: object, detail: str) -> None:
    assert told(decode_request(body)) == [("shape", detail)]


def test_broken_parts_leave_the_others() -> None:
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
    assert decode_request(body) == Batch()


def test_list_of_requests() -> None:
    batch = decode_request([request(SPAN), 3, request(SPAN)])

    assert len(batch.spans) == 2
    assert told(batch) == [("shape", "a number is no OTLP request")]


def test_logs_and_spans_in_one_object() -> None:
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
    batch = decode_request(
        {**request(SPAN), "resourceLogs": [{"scopeLogs": [{"logRecords": [log, {}]}]}]}
    )

    assert len(batch.spans) == batch.other_logs == 1
    assert batch.evaluations == [
        Evaluation("success", None, "pass", at(5), trace_id(1), span_id(2))
    ]


@given(st.dictionaries(st.sampled_from(sorted(SPAN)), JSON))
def test_every_span_is_accounted_for(change: dict[str, Any]) -> None:
    batch = decode_request(request({**SPAN, **change}, SPAN))

    assert len(batch.spans) + len(batch.malformed) == 2
    assert batch.spans[-1] == decode_request(request(SPAN)).spans[0]


@given(JSON)
def test_any_json_is_taken(body: Any) -> None:
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
    assert read_value(value) is None


@given(st.sampled_from(KINDS), JSON)
def test_reading_a_value_is_total(kind: str, content: Any) -> None:
    assert isinstance(
        read_value({kind: content}), (str, int, bool, float, bytes, tuple, dict, type(None))
    )


def test_attributes_pass_over_what_is_no_pair() -> None:
    given: list[Any] = [
        {"key": "a", "value": {"intValue": 1}},
        {"value": {}},
        {"key": 5},
        "a",
        None,
        {"key": "a"},
    ]

    assert decode_request(request({**SPAN, "attributes": given})).spans[0].attributes == {"a": None}


def test_depth_is_bounded() -> None:
    value: dict[str, Any] = {"intValue": 1}
    for _ in range(MAX_DEPTH + 1):
        value = {"arrayValue": {"values": [value]}}
    depth = 0
    read = read_value(value)
    while read:
        (read,) = read
        depth += 1

    assert (read, depth) == (None, MAX_DEPTH)
