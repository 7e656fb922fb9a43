"""OTLP-JSON → `Batch`: one request, or a file of them, one a line, as the Collector's file exporter writes.

Files may be packed with gzip or zstd, and a document may also be written over several lines (`lines.documents`). They are
read in bounded memory: one line at a time, and none longer than a bound.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, cast

from otel_reliability.errors import UndecodableBody
from otel_reliability.sources.batch import Batch, Malformed, Reason
from otel_reliability.sources.chunks import STDIN, Chunks, Progress
from otel_reliability.sources.json_request import decode_request
from otel_reliability.sources.lines import LONGEST, Line, documents, split

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_OPENING: Final = (b"{", b"[")
_ESCAPED_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")


def decode_json(body: bytes) -> Batch:
    """The spans and evaluations of one OTLP-JSON request. Raises `UndecodableBody` for a body that is not JSON.

    >>> decode_json(b"{}").spans
    []
    >>> decode_json(b'{"resourceSpans": ')
    Traceback (most recent call last):
    otel_reliability.errors.UndecodableBody: not JSON: Expecting value at line 1, column 19
    """
    return decode_request(parse(body))


def parse(body: bytes) -> object:
    """A body as JSON has it. Raises `UndecodableBody` for one that is not JSON."""
    request = _parse(body)
    if isinstance(request, _Unreadable):
        raise UndecodableBody(f"{request.detail} at line {request.line}, column {request.column}")
    return request


def read_file(
    path: str | os.PathLike[str], *, longest: int = LONGEST, progress: Progress | None = None
) -> Iterator[Batch]:
    """The requests of a file of OTLP-JSON lines, one `Batch` each. `-` is standard input.

    What cannot be read is in `Batch.malformed`, each with its place (`file:line`), and the rest goes on; where a packed file
    is damaged, reading ends there and the last batch says so. A line longer than `longest` bytes is passed over without being
    held. `progress(read, total)` is called with the bytes read as they lie on disk.

    Raises `SourceError` when reading begins and the file cannot be opened, or is packed with zstd and the extra is missing.
    """
    for _, batch in read_lines(path, longest=longest, progress=progress):
        yield batch


def read_lines(
    path: str | os.PathLike[str], *, longest: int = LONGEST, progress: Progress | None = None, size: int | None = None
) -> Iterator[tuple[int, Batch]]:
    """Read the same, each with the number of the line that it begins on. `size`: no more bytes of the file than these."""
    chunks = Chunks(path, progress, size)
    name = "standard input" if chunks.name == STDIN else chunks.name
    last = 1
    for line in documents(split(chunks, longest), longest):
        last = line.number
        if line.text is None or line.text.strip():
            yield last, _decode_line(name, line, longest, damaged=chunks.damage is not None)
    if chunks.damage:
        yield last, Batch(malformed=[chunks.damage._replace(place=f"{name}:{last}")])


class _Unreadable(NamedTuple):
    reason: Reason
    detail: str
    line: int = 1
    column: int = 1


def _decode_line(name: str, line: Line, longest: int, *, damaged: bool) -> Batch:
    """One line's batch. Of a damaged file the last line, cut off, is not reported twice."""
    if line.text is None:
        return _malformed(name, line, Reason.LINE_TOO_LONG, f"a line longer than {longest} bytes")
    request = _parse(line.text.removeprefix(BYTE_ORDER_MARK))
    if not isinstance(request, _Unreadable):
        batch = decode_request(request)
        batch.malformed = [problem._replace(place=f"{name}:{line.number}") for problem in batch.malformed]
        return batch
    if not line.ended and line.text.lstrip().startswith(_OPENING):
        return Batch() if damaged else _malformed(name, line, Reason.TRUNCATED, "the file ends in the middle of a line")
    at = line._replace(number=line.number + request.line - 1)
    return _malformed(name, at, request.reason, f"{request.detail} at column {request.column}")


def _malformed(name: str, line: Line, reason: Reason, detail: str) -> Batch:
    return Batch(malformed=[Malformed(reason, detail, f"{name}:{line.number}")])


def _parse(text: bytes) -> Any | _Unreadable:
    try:
        decoded = text.decode()
        request = json.loads(decoded)
        return _mended(request) if _ESCAPED_SURROGATE.search(decoded) else request
    except json.JSONDecodeError as error:
        return _Unreadable(Reason.JSON, f"not JSON: {error.msg.removesuffix(' at')}", error.lineno, error.colno)
    except UnicodeDecodeError as error:
        return _Unreadable(Reason.ENCODING, "not UTF-8", column=error.start + 1)
    except RecursionError:
        return _Unreadable(Reason.JSON, "nested too deeply")
    except ValueError:
        return _Unreadable(Reason.JSON, "a number of too many digits")


def _mended(value: Any) -> Any:
    """The value with half characters (JSON may hold one of a surrogate pair) replaced: nothing downstream could write them."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_mended(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {_mended(key): _mended(item) for key, item in cast("dict[str, Any]", value).items()}
    return value
