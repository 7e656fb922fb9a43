from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.errors import UndecodableBody
from otel_reliability.model.span import RawSpan
from otel_reliability.sources.batch import Malformed, Reason
from otel_reliability.sources.otlp_json import decode_json, read_file
from otel_reliability.testing import span, traces_json, write_otlp
from tests.sources.recordings import every_recording
from tests.sources.strategies import plain, raw_spans

LINE = json.dumps(traces_json([span()])).encode() + b"\n"
MB = 1024 * 1024


def read(path: Path | str, longest: int = 10 * MB) -> tuple[list[RawSpan], list[Malformed]]:
    """All spans of a file, and all that was malformed."""
    batches = list(read_file(path, longest=longest))
    return [s for b in batches for s in b.spans], [m for b in batches for m in b.malformed]


def file(folder: Path, content: bytes) -> Path:
    """A file with that content."""
    path = folder / "runs.jsonl"
    path.write_bytes(content)
    return path


@given(st.lists(raw_spans(), max_size=4), st.sampled_from(["a.jsonl", "a.jsonl.gz"]), st.integers(1, 3))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, spans: list[RawSpan], name: str, batch: int) -> None:
    """Spans written to a file are read as they were, in order."""
    path = write_otlp(tmp_path_factory.getbasetemp() / name, spans, batch=batch)
    found, malformed = read(path)

    assert plain(found) == plain(spans)
    assert malformed == []


@every_recording
def test_recordings(recording: Path) -> None:
    """Every recording is read whole: as many spans as its lines hold, and nothing malformed."""
    told = sum(
        len(scope["spans"])
        for line in gzip.decompress(recording.read_bytes()).splitlines()
        for group in json.loads(line).get("resourceSpans", ())
        for scope in group["scopeSpans"]
    )
    spans, malformed = read(recording)

    assert len(spans) == told
    assert malformed == []


def test_standard_input() -> None:
    """`-` reads what a pipe holds, and names places in it."""
    code = (
        "from otel_reliability.sources.otlp_json import read_file\n"
        "print([len(batch.spans) or batch.malformed[0].place for batch in read_file('-')])"
    )
    found = subprocess.run([sys.executable, "-c", code], input=LINE + b"x\n" + LINE, capture_output=True, check=True)

    assert found.stdout.decode().strip() == "[1, 'standard input:2', 1]"


def test_malformed_lines_are_placed(tmp_path: Path) -> None:
    """Each line that is none is named with its place and reason, and the others are read."""
    bad_span = LINE.replace(b'"traceId": "0', b'"traceId": "x')
    lines = [LINE, b"{nonsense}\n", b"\n", b"[1]\n", LINE, b"\xff\xfe\n", b'{"spans": []}\n', bad_span, LINE]
    path = file(tmp_path, b"".join(lines))
    spans, malformed = read(path)

    assert len(spans) == 3
    assert malformed == [
        Malformed(Reason.JSON, "not JSON: Expecting property name enclosed in double quotes at column 2", f"{path}:2"),
        Malformed(Reason.SHAPE, "a number is no OTLP request", f"{path}:4"),
        Malformed(Reason.ENCODING, "not UTF-8 at column 1", f"{path}:6"),
        Malformed(Reason.SHAPE, "an object without resourceSpans or resourceLogs is no OTLP request", f"{path}:7"),
        Malformed(Reason.TRACE_ID, "the traceId has 32 characters, not 32 hexadecimal digits", f"{path}:8"),
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
    """Lines made to break a parser are named like others."""
    path = file(tmp_path, line + b"\n" + LINE)
    spans, malformed = read(path)

    assert len(spans) == 1
    assert malformed == [Malformed(Reason.JSON, detail, f"{path}:1")]


def test_no_content_in_messages(tmp_path: Path) -> None:
    """What a line says is never told, only where and why it could not be read."""
    secrets = [b'{"resourceSpans": "secret"}', b'{"secret": 1}', b"secret", LINE.replace(b"0001", b"secr")]
    _, malformed = read(file(tmp_path, b"\n".join(secrets) + b"\n"))

    assert len(malformed) == 4
    assert not any("secr" in problem.detail for problem in malformed)


def test_too_long_a_line(tmp_path: Path) -> None:
    """A line beyond the bound is named and passed over."""
    path = file(tmp_path, LINE + b'{"x": "' + b"x" * 5_000 + b'"}\n' + LINE)
    spans, malformed = read(path, longest=4_000)

    assert len(spans) == 2
    assert malformed == [Malformed(Reason.LINE_TOO_LONG, "a line longer than 4000 bytes", f"{path}:2")]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_line_ends_and_marks(tmp_path: Path, mark: bytes, end: bytes) -> None:
    """A byte order mark, the line ends of Windows and a last line without one are no fault."""
    spans, malformed = read(file(tmp_path, mark + LINE.strip() + b"\n" + LINE.strip() + end))

    assert (len(spans), malformed) == (2, [])


@pytest.mark.parametrize("indent", [None, 2, "\t"])
def test_documents(tmp_path: Path, indent: int | str | None) -> None:
    """One document, a list of them, or several one after another are read, pretty-printed or not."""
    request = traces_json([span()])
    texts = [json.dumps(value, indent=indent) for value in (request, [request, request], request)]
    spans, malformed = read(file(tmp_path, "\n".join(texts).encode()))

    assert (len(spans), malformed) == (4, [])


def test_broken_document_names_the_line(tmp_path: Path) -> None:
    """In a document over several lines the place is the line on which it breaks."""
    path = file(tmp_path, b'{\n  "resourceSpans": [\n    oops\n  ]\n}\n' + LINE)
    spans, malformed = read(path)

    assert len(spans) == 1
    assert malformed == [Malformed(Reason.JSON, "not JSON: Expecting value at column 5", f"{path}:3")]


def test_cut_off_file(tmp_path: Path) -> None:
    """A file that ends in the middle of a line says so, once."""
    path = file(tmp_path, LINE * 2 + LINE[:-20])
    spans, malformed = read(path)

    assert len(spans) == 2
    assert malformed == [Malformed(Reason.TRUNCATED, "the file ends in the middle of a line", f"{path}:3")]


@pytest.mark.parametrize(("packing", "pack"), [("gzip", gzip.compress), ("zstd", zstandard.compress)])
def test_cut_off_packed_file(tmp_path: Path, packing: str, pack: Callable[[bytes], bytes]) -> None:
    """A packed file that ends too early says so once, in the line it reached, and keeps what came before."""
    dice = random.Random(1)
    lines = [json.dumps(traces_json([span(dice.randrange(1, 2**60))])).encode() + b"\n" for _ in range(3_000)]
    packed = pack(b"".join(lines))
    path = file(tmp_path, packed[: len(packed) // 2])
    spans, malformed = read(path)

    assert 500 < len(spans) < 2_500
    assert [(m.reason, m.detail) for m in malformed] == [
        (Reason.TRUNCATED, f"the {packing} data ends in the middle; what came before it was read")
    ]
    assert len(spans) <= int(malformed[0].place.removeprefix(f"{path}:")) <= len(spans) + 1


@pytest.mark.parametrize("newlines", [True, False])
def test_binary_garbage(tmp_path: Path, newlines: bool) -> None:
    """Random bytes give no span and end; each of their lines is named."""
    garbage = random.Random(2).randbytes(200_000)
    path = file(tmp_path, garbage if newlines else garbage.replace(b"\n", b""))
    spans, malformed = read(path)

    assert spans == []
    assert {problem.reason for problem in malformed} <= {Reason.ENCODING, Reason.JSON, Reason.SHAPE}
    assert len(malformed) > (300 if newlines else 0)


def test_empty_file(tmp_path: Path) -> None:
    """A file of no bytes, or of blank lines, holds nothing and is no fault."""
    assert read(file(tmp_path, b"")) == ([], [])
    assert read(file(tmp_path, b"\n \n\t\r\n")) == ([], [])


def test_half_characters_are_replaced() -> None:
    """JSON may hold half of a surrogate pair, which no text can; whole pairs stay what they are."""
    line = LINE.replace(b'"name": "span"', b'"name": "\\ud83d\\ude00 \\ud83d", "\\ud800": ["\\udc00"]')
    name = decode_json(line).spans[0].name

    assert name == "\U0001f600 \ufffd"


@given(st.binary(max_size=60))
def test_any_body_is_decoded_or_undecodable(body: bytes) -> None:
    """Random bytes raise nothing but `UndecodableBody`."""
    try:
        batch = decode_json(body)
    except UndecodableBody:
        return
    assert batch.spans == []


@pytest.mark.parametrize("packed", [False, True])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, packed: bool) -> None:
    """Reading 40 MB in lines of 100 kB, one of 30 MB among them, takes a fraction of either."""
    line = json.dumps(traces_json([span(n, attributes={"text": "x" * 1_000}) for n in range(1, 60)])).encode() + b"\n"
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
    """A few kilobytes that unpack to 256 MB without a line end are one line too long, and are never held."""
    bomb, zeros = zstandard.ZstdCompressor().compressobj(), bytes(MB)
    path = file(tmp_path, b"".join(bomb.compress(zeros) for _ in range(256)) + bomb.flush())
    tracemalloc.start()
    spans, malformed = read(path, longest=MB)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert spans == []
    assert [problem.reason for problem in malformed] == [Reason.LINE_TOO_LONG]
    assert path.stat().st_size < 20_000
    assert peak < 100 * MB
