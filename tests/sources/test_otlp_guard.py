from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from otel_reliability.errors import UndecodableBody
from otel_reliability.sources import otlp_json, otlp_protobuf
from otel_reliability.sources.otlp_json import MOST_OBJECTS
from otel_reliability.sources.otlp_protobuf import LARGE, LEAST_SPAN, check, decode_logs
from otel_reliability.testing import span
from tests.otlp import decode_traces, traces_protobuf
from tests.sources.strategies import plain, wire

MB = 1024 * 1024


EMPTY = {
    "spans": wire(1, wire(2, wire(2, b"") * MB)),
    "scopes": wire(1, wire(2, b"") * MB),
    "resources": wire(1, b"") * MB,
    "other fields": b"\x28\x01" * MB,
    "events": wire(1, wire(2, wire(2, wire(11, b"") * MB))),
    "links": wire(1, wire(2, wire(2, wire(13, b"") * MB))),
    "attributes": wire(1, wire(2, wire(2, wire(9, b"") * MB))),
    "resource attributes": wire(1, wire(1, wire(1, b"") * MB)),
    "scope attributes": wire(1, wire(2, wire(1, wire(3, b"") * MB))),
}


@pytest.mark.parametrize("parts", EMPTY)
def test_a_request_of_empty_parts_is_refused(parts: str) -> None:
    with pytest.raises(UndecodableBody):
        decode_traces(EMPTY[parts])


LOGS = {
    "records": wire(1, wire(2, wire(2, b"") * MB)),
    "scopes": wire(1, wire(2, b"") * MB),
    "resources": wire(1, b"") * MB,
    "attributes": wire(1, wire(2, wire(2, wire(6, b"") * MB))),
    "attributes of records that are not large": wire(1, wire(2, wire(2, wire(6, b"") * 20_000))),
    "elements of the body": wire(1, wire(2, wire(2, wire(5, wire(5, wire(1, b"") * MB))))),
    "entries of an attribute": wire(
        1, wire(2, wire(2, wire(6, wire(2, wire(6, wire(1, b"") * MB)))))
    ),
    "resource attributes": wire(1, wire(1, wire(1, b"") * MB)),
}


@pytest.mark.parametrize("parts", LOGS)
def test_a_request_of_empty_parts_of_logs_is_refused(parts: str) -> None:
    with pytest.raises(UndecodableBody):
        decode_logs(LOGS[parts])


def test_a_log_record_that_is_nested_deeply_is_refused() -> None:
    value = b""
    for _ in range(2_000):
        value = wire(5, wire(1, value))
    with pytest.raises(UndecodableBody):
        decode_logs(wire(1, wire(2, wire(2, wire(5, value) + wire(3, b"x" * LARGE)))))


def test_large_log_records_pass() -> None:
    pair = wire(1, b"gen_ai.output.messages") + wire(2, wire(1, b"x" * 3 * MB))
    record = b"\x09" + (10**18).to_bytes(8, "little") + wire(12, b"claude_code.api_request")
    many = [wire(2, record + wire(6, wire(1, b"%d" % n))) for n in range(2 * LARGE // 40)]

    (log,) = decode_logs(wire(1, wire(2, wire(2, record + wire(6, pair))))).logs
    assert log.attributes == {"gen_ai.output.messages": "x" * 3 * MB}
    assert len(decode_logs(wire(1, wire(2, b"".join(many)))).logs) == len(many)


MANY: list[dict[str, object]] = [{}] * MB
OBJECTS: dict[str, dict[str, object]] = {
    "resources": {"resourceLogs": MANY},
    "scopes": {"resourceSpans": [{"scopeSpans": MANY}]},
    "records": {"resourceLogs": [{"scopeLogs": [{"logRecords": MANY}]}]},
}


@pytest.mark.parametrize("parts", OBJECTS)
def test_a_request_of_empty_objects_in_json_is_refused(parts: str) -> None:
    """An object of three bytes takes as much work as any."""
    with pytest.raises(UndecodableBody, match="more parts"):
        otlp_json.check(OBJECTS[parts], 3 * MB)


@pytest.mark.parametrize("part", [b"{},", b"[],", b'{"a":[]},'])
def test_a_request_of_many_objects_is_not_parsed(part: bytes) -> None:
    otlp_json.check_text(part * (MOST_OBJECTS // 2))
    with pytest.raises(UndecodableBody, match="objects and lists"):
        otlp_json.check_text(part * (MOST_OBJECTS + 1))


def test_sound_objects_in_json_pass() -> None:
    record: dict[str, object] = {"timeUnixNano": "1", "body": {}}
    request: dict[str, object] = {
        "resourceLogs": [{"scopeLogs": [{"logRecords": [record] * 100_000}]}]
    }
    otlp_json.check(request, len(json.dumps(request, separators=(",", ":"))))


def test_small_requests_pass() -> None:
    body = wire(1, wire(2, wire(2, b"") * 1_000))

    assert len(decode_traces(body).malformed) == 1_000


def test_the_smallest_sound_spans_pass() -> None:
    bare = replace(span(), name="", scope="", scope_version="", span_kind=0, parent_remote=None)
    one = traces_protobuf([bare])
    count = 2 * LARGE // 44
    inner = one[one.index(b"\x0a\x10" + bare.trace_id) :]
    assert LEAST_SPAN < len(inner) < 64
    body = wire(1, wire(2, wire(2, inner) * count))
    batch = decode_traces(body)

    assert len(body) > LARGE
    assert (len(batch.spans), batch.malformed) == (count, [])


def test_large_contents_pass() -> None:
    long = [span(n, attributes={"gen_ai.input.messages": "x" * 3 * MB}) for n in (1, 2)]
    some = [span(n, attributes={f"key{k}": "value" for k in range(20)}) for n in range(1, 51)]
    many = traces_protobuf(some) * 100  # requests that follow one another are one request

    assert plain(decode_traces(traces_protobuf(long)).spans) == plain(long)
    assert len(decode_traces(many).spans) == 5_000


def test_a_list_beyond_the_bound_is_none() -> None:
    facts = {"list": ["x" * MB] * 9, "text": "x" * 9 * MB}
    attributes = decode_traces(traces_protobuf([span(attributes=facts)])).spans[0].attributes

    assert attributes["list"] is None
    assert attributes["text"] == facts["text"]


@given(st.binary(max_size=64))
def test_garbage_passes(start: bytes) -> None:
    body = start + b"\xff" * (LARGE + 1)
    for decode in (decode_traces, decode_logs):
        with pytest.raises(UndecodableBody):
            decode(body)


@pytest.mark.parametrize("nested", [False, True])
def test_the_guard_stops_at_the_first_part_too_many(
    nested: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20 kB of gzip decompress to 20 MB of zeros, each of which is a part."""
    body = bytes(20 * MB) if not nested else wire(1, wire(2, bytes(2) * (10 * MB)))
    read = 0
    field = otlp_protobuf._field

    def counted(body: bytes, at: int, end: int) -> tuple[int, int, int]:
        nonlocal read
        read += 1
        return field(body, at, end)

    monkeypatch.setattr(otlp_protobuf, "_field", counted)
    with pytest.raises(UndecodableBody):
        check(body)

    assert read <= len(body) // LEAST_SPAN + 10


def test_memory_of_the_worst_request_that_passes() -> None:
    code = (
        "import sys; from otel_reliability.sources.otlp_protobuf import read_traces\n"
        "spans, malformed = read_traces(sys.stdin.buffer.read(), lambda span: span)\n"
        "import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, len(malformed))"
    )
    tiny = wire(2, b"\x32" + bytes([LEAST_SPAN - 3]) + b"x" * (LEAST_SPAN - 3))
    body = wire(1, wire(2, tiny * (8 * MB // len(tiny))))
    check(body)
    idle, full = (
        subprocess.run(
            [sys.executable, "-c", code], input=text, capture_output=True, check=True
        ).stdout.split()
        for text in (b"", body)
    )

    assert int(full[1]) > 200_000
    assert int(full[0]) - int(idle[0]) < 40 * len(body) // 1024
