"""OTLP-JSON → `Batch`: one request, or a file of them, one a line, as the Collector's file exporter
writes.

OTLP-JSON is the JSON of protobuf with two exceptions: ids are hexadecimal, enums are integers.
64-bit numbers may be strings. Values of the wrong type are absent; a span is malformed only for its
ids and times. Unknown keys are ignored.

Files may be packed with gzip or zstd. They are read in bounded memory: one line at a time, and none
longer than a bound. A file may also be one document over several lines (`lines.documents`), up to
the same bound.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, cast

from otel_reliability.errors import UndecodableBody
from otel_reliability.model.span import RawEvent, RawLog, RawSpan, Resource, SpanRef
from otel_reliability.sources.batch import (
    MAX_DEPTH,
    Batch,
    Malformed,
    Reason,
    fault,
    link_ref,
    parent,
    parent_remote,
    take_log,
    with_status_message,
)
from otel_reliability.sources.chunks import STDIN, Chunks, Progress
from otel_reliability.sources.lines import LONGEST, Line, documents

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_OPENING: Final = (b"{", b"[")
_ESCAPED_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")


class NotJson(UndecodableBody):
    """Bytes that are no JSON: why, and where."""

    def __init__(self, reason: Reason, detail: str, line: int = 1, column: int = 1) -> None:
        self.reason = reason
        self.detail = detail
        self.line = line
        self.column = column
        super().__init__(f"{detail} at line {line}, column {column}")


def is_json(body: bytes) -> bool:
    """Return whether a request is in OTLP-JSON; no OTLP message in protobuf begins with a brace.

    >>> is_json(b'{"resourceSpans": []}'), is_json(b"")
    (True, False)
    """
    return body.removeprefix(BYTE_ORDER_MARK).startswith(b"{")


def parse(body: bytes) -> object:
    """A body as JSON has it, without a byte order mark. Raises `NotJson`.

    >>> parse(b'{"resourceSpans": ')
    Traceback (most recent call last):
    otel_reliability.sources.otlp_json.NotJson: not JSON: Expecting value at line 1, column 19
    """
    try:
        decoded = body.removeprefix(BYTE_ORDER_MARK).decode()
        request = json.loads(decoded)
        return _mended(request) if _ESCAPED_SURROGATE.search(decoded) else request
    except json.JSONDecodeError as error:
        raise NotJson(
            Reason.JSON, f"not JSON: {error.msg.removesuffix(' at')}", error.lineno, error.colno
        ) from None
    except UnicodeDecodeError as error:
        raise NotJson(Reason.ENCODING, "not UTF-8", column=error.start + 1) from None
    except RecursionError:
        raise NotJson(Reason.JSON, "nested too deeply") from None
    except ValueError:
        raise NotJson(Reason.JSON, "a number of too many digits") from None


def read_file(
    path: str | os.PathLike[str], *, longest: int = LONGEST, progress: Progress | None = None
) -> Iterator[Batch]:
    """The requests of a file of OTLP-JSON lines, one `Batch` each. `-` is standard input.

    What cannot be read is in `Batch.malformed`, each with its place (`file:line`), and the rest
    goes on; where a packed file is damaged, reading ends there and the last batch says so. A line
    longer than `longest` bytes is passed over without being held. `progress(read, total)` is called
    with the bytes read as they lie on disk.

    Raises `SourceError` when reading begins and the file cannot be opened, or is packed with zstd
    and the extra is missing.
    """
    for _, batch in read_lines(path, longest=longest, progress=progress):
        yield batch


def read_lines(
    path: str | os.PathLike[str],
    *,
    longest: int = LONGEST,
    progress: Progress | None = None,
    size: int | None = None,
) -> Iterator[tuple[int, Batch]]:
    """Read the same, each with the number of the line that it begins on. `size`: no more bytes of
    the file than these.
    """
    chunks = Chunks(path, progress, size)
    name = "standard input" if chunks.name == STDIN else chunks.name
    yield from with_damage(chunks, name, decode_lines(name, chunks, longest))


def with_damage(
    chunks: Chunks, name: str, batches: Iterator[tuple[int, Batch]]
) -> Iterator[tuple[int, Batch]]:
    """Add to what was read of a file how it is damaged; the last line, cut off, is not reported
    twice.
    """
    last = 1
    for last, batch in batches:
        if chunks.damage:
            kept = [each for each in batch.malformed if each.reason is not Reason.TRUNCATED]
            batch.malformed = kept
        yield last, batch
    if chunks.damage:
        yield last, Batch(malformed=[chunks.damage._replace(place=f"{name}:{last}")])


def decode_lines(name: str, pieces: Iterable[bytes], longest: int) -> Iterator[tuple[int, Batch]]:
    """Decode the unpacked bytes of a file, each line with its number; `name` is said in places."""
    for line in documents(pieces, longest):
        if line.text is None or line.text.strip():
            yield line.number, _decode_line(name, line, longest)


def _decode_line(name: str, line: Line, longest: int) -> Batch:
    """One line's batch."""
    if line.text is None:
        return _malformed(name, line, Reason.LINE_TOO_LONG, f"a line longer than {longest} bytes")
    try:
        batch = decode_request(parse(line.text))
    except NotJson as error:
        if not line.ended and line.text.lstrip().startswith(_OPENING):
            cut = "the file ends in the middle of a line"
            return _malformed(name, line, Reason.TRUNCATED, cut)
        at = line._replace(number=line.number + error.line - 1)
        remedy = (
            "; write one request per line, for example with jq -c" if b"\n" in line.text else ""
        )
        return _malformed(
            name, at, error.reason, f"{error.detail} at column {error.column}{remedy}"
        )
    batch.malformed = [
        problem._replace(place=f"{name}:{line.number}") for problem in batch.malformed
    ]
    return batch


def _malformed(name: str, line: Line, reason: Reason, detail: str) -> Batch:
    return Batch(malformed=[Malformed(reason, detail, f"{name}:{line.number}")])


def _mended(value: Any) -> Any:
    """The value with half characters (JSON may hold one of a surrogate pair) replaced: nothing
    downstream could write them.
    """
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_mended(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {_mended(key): _mended(item) for key, item in cast("dict[str, Any]", value).items()}
    return value


# --- Values ---------------------------------------------------------------------------------------


_DIGITS: Final = re.compile(r"-?[0-9]{1,20}")
_URL_SAFE: Final = str.maketrans("-_", "+/")


def text(value: object) -> str:
    """A string, else the empty one."""
    return value if isinstance(value, str) else ""


def items(value: object) -> list[Any]:
    """A list, else the empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def record(value: object) -> dict[str, Any]:
    """An object, else the empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def whole(value: object) -> int | None:
    """A whole number, written as a number or as a string; None where it is none.

    >>> whole("1795228530895715839"), whole(3), whole(2.0), whole("3.5"), whole(True)
    (1795228530895715839, 3, 2, None, None)
    """
    if type(value) is int:
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else None


def enum(value: object, names: Mapping[str, int]) -> int:
    """An enum's number. The specification allows integers only, but some senders write names;
    anything else is 0.

    >>> enum("STATUS_CODE_ERROR", {"STATUS_CODE_ERROR": 2}), enum(2, {}), enum([], {})
    (2, 2, 0)
    """
    return names[value] if isinstance(value, str) and value in names else whole(value) or 0


def hexadecimal(value: object) -> bytes | None:
    """The bytes of an id, in either case; empty where it is absent, None where it is not
    hexadecimal.

    >>> hexadecimal("00F067aa0ba902b7").hex(), hexadecimal(None), hexadecimal("APBnqgupArc=")
    ('00f067aa0ba902b7', b'', None)
    """
    if value is None:
        return b""
    try:
        return binascii.unhexlify(value) if isinstance(value, str) else None
    except ValueError:
        return None


def attributes(pairs: object, depth: int = MAX_DEPTH) -> dict[str, Any]:
    """Pairs as a dict. Of pairs with the same key the last one counts; what is no pair with a key
    is passed over.

    >>> attributes(
    ...     [
    ...         {"key": "a", "value": {"intValue": "1"}},
    ...         {"key": "b", "value": {"stringValue": "two"}},
    ...         3,
    ...     ]
    ... )
    {'a': 1, 'b': 'two'}
    """
    found: dict[str, Any] = {}
    for pair in map(record, items(pairs)):
        if isinstance(key := pair.get("key"), str):
            value: dict[str, Any] | None = pair.get("value")
            usual = value.get("stringValue") if type(value) is dict and len(value) == 1 else None
            found[key] = usual if type(usual) is str else plain(value, depth)
    return found


def plain(value: object, depth: int = MAX_DEPTH) -> Any:
    r"""A value as str, bool, int, float, bytes, tuple or dict; None where it holds nothing that we
    can know.

    >>> plain(
    ...     {
    ...         "arrayValue": {
    ...             "values": [{"boolValue": True}, {"doubleValue": "NaN"}, {"bytesValue": "AAE="}]
    ...         }
    ...     }
    ... )
    (True, nan, b'\x00\x01')
    """
    for kind, content in record(value).items():
        match kind:
            case "stringValue":
                return content if isinstance(content, str) else None
            case "intValue":
                number = whole(content)
                return number if number is not None and -(2**63) <= number < 2**63 else None
            case "boolValue":
                return content if isinstance(content, bool) else None
            case "doubleValue":
                return _double(content)
            case "bytesValue":
                return _bytes(content)
            case "arrayValue":
                return (
                    tuple([plain(item, depth - 1) for item in items(record(content).get("values"))])
                    if depth
                    else None
                )
            case "kvlistValue":
                return attributes(record(content).get("values"), depth - 1) if depth else None
            case _:
                pass
    return None


def _double(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _bytes(value: object) -> bytes | None:
    try:
        return (
            base64.b64decode(value.translate(_URL_SAFE) + "==") if isinstance(value, str) else None
        )
    except ValueError:
        return None


# --- Requests -------------------------------------------------------------------------------------


SIGNALS: Final[Mapping[str, str]] = {
    "resourceSpans": "traces",
    "resourceLogs": "logs",
    "resourceMetrics": "metrics",
    "resourceProfiles": "profiles",
}
"""The key of a request → its signal."""
_OTHER_SPELLINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "resourceSpans": ("resource_spans",),
    "resourceLogs": ("resource_logs",),
    "scopeSpans": (
        "scope_spans",
        "instrumentationLibrarySpans",
        "instrumentation_library_spans",
    ),
    "scopeLogs": ("scope_logs", "instrumentationLibraryLogs", "instrumentation_library_logs"),
    "logRecords": ("log_records", "logs"),
}
"""Keys under which other JSON of protobuf, or OTLP before 1.0, has a list."""
_SPANS: Final = ("resourceSpans", "scopeSpans", "spans")
_LOGS: Final = ("resourceLogs", "scopeLogs", "logRecords")
_LEVELS: Final = (_SPANS, _LOGS)
"""The lists of a request, each within the objects of the one before."""
_TYPES: Final[Mapping[type, str]] = {
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    list: "a list",
}
_IDS: Final = (
    (Reason.TRACE_ID, "traceId", 32),
    (Reason.SPAN_ID, "spanId", 16),
    (Reason.PARENT_ID, "parentSpanId", 16),
)
_KINDS: Final = {
    f"SPAN_KIND_{name}": number
    for number, name in enumerate(
        ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
    )
}
_STATUSES: Final = {
    f"STATUS_CODE_{name}": number for number, name in enumerate(("UNSET", "OK", "ERROR"))
}


LARGE: Final = 1024 * 1024
"""Bytes from which the parts of a request are counted."""
LEAST_PART: Final = 24
"""Bytes that a resource, a scope, a span or a log record has at least, on average; sound ones take
more than their keys: `{"scopeLogs":[]}`.
"""


MOST_OBJECTS: Final = 4_000_000
"""Objects and lists of a request. One of attributes alone has so many in 68 MB."""


def check_text(body: bytes) -> None:
    """Raise `UndecodableBody` for a request with so many objects and lists that it cannot be
    parsed: an empty one takes three bytes of text and 64 of memory. Brackets in texts count too.

    >>> check_text(b'{"resourceSpans": []}')
    """
    if body.count(b"{") + body.count(b"[") > MOST_OBJECTS:
        raise UndecodableBody(f"a request of more than {MOST_OBJECTS} objects and lists")


def check(request: Mapping[str, Any], size: int) -> None:
    """Raise `UndecodableBody` for a large request of more parts than could be sound in its `size`
    in bytes: an empty one takes three bytes, and as much work as any.

    >>> check({"resourceSpans": [{}] * 500_000}, 1_500_000)
    Traceback (most recent call last):
    otel_reliability.errors.UndecodableBody: a request of 1500000 bytes with more parts than could \
be sound in it
    """
    if size <= LARGE:
        return
    room = size // LEAST_PART
    for names in _LEVELS:
        parts: list[Any] = [request]
        for name in names:
            below = [items(record(part).get(name)) for part in parts]
            room -= sum(map(len, below))
            if room < 0:
                raise UndecodableBody(
                    f"a request of {size} bytes with more parts than could be sound in it"
                )
            parts = list(chain.from_iterable(below))


def decode_request(request: object) -> Batch:
    """The spans and evaluations of a parsed request, or of a list of requests. `{}` is an empty
    request.

    >>> decode_request({"hello": "world"}).malformed[0].detail
    'an object without resourceSpans or resourceLogs is no OTLP request'
    """
    batch = Batch()
    for part in cast("list[Any]", request) if isinstance(request, list) else [request]:
        _take_request(batch, part)
    return batch


def _take_request(batch: Batch, request: object) -> None:
    signals = record(request)
    if not isinstance(request, dict):
        _refuse(batch, f"{_kind(request)} is no OTLP request")
    elif signals and not any(signal in signals for signal in SIGNALS):
        _refuse(
            batch,
            other_spelling(signals, "resourceSpans")
            or other_spelling(signals, "resourceLogs")
            or "an object without resourceSpans or resourceLogs is no OTLP request",
        )
    else:
        for span, scope, resource in _parts(batch, signals, _SPANS):
            _take_span(batch, span, scope, resource)
        for log, scope, resource in _parts(batch, signals, _LOGS):
            take_log(batch, _log(log, text(scope.get("name")), resource), plain(log.get("body")))


def _parts(
    batch: Batch, signals: Mapping[str, Any], names: tuple[str, str, str]
) -> Iterator[tuple[dict[str, Any], dict[str, Any], Resource]]:
    """The spans or log records of a request, each with its scope and its resource. `names`: of the
    lists of each level.
    """
    by_resource, by_scope, parts = names
    for group in _records(batch, signals, by_resource):
        resource = Resource.of(attributes(record(group.get("resource")).get("attributes")))
        for scoped in _records(batch, group, by_scope):
            scope = record(scoped.get("scope"))
            for part in _records(batch, scoped, parts):
                yield part, scope, resource


_DROPPED: Final = ("droppedAttributesCount", "droppedEventsCount", "droppedLinksCount")


def _take_span(
    batch: Batch, span: Mapping[str, Any], scope: Mapping[str, Any], resource: Resource
) -> None:
    ids = _ids(span)
    if isinstance(ids, Malformed):
        batch.malformed.append(ids)
        return
    trace_id, span_id, parent_id = ids
    start_ns = _time(span.get("startTimeUnixNano"))
    end_ns = _time(span.get("endTimeUnixNano"))
    if problem := fault(trace_id, span_id, parent_id, start_ns, end_ns):
        batch.malformed.append(problem)
        return
    status = record(span.get("status"))
    code = enum(status.get("code"), _STATUSES)
    events = tuple(_event(record(event)) for event in items(span.get("events")))
    batch.spans.append(
        RawSpan(
            trace_id,
            span_id,
            parent_id=parent(parent_id),
            name=text(span.get("name")),
            span_kind=enum(span.get("kind"), _KINDS),
            start_ns=start_ns,
            end_ns=end_ns,
            status=code,
            parent_remote=parent_remote(whole(span.get("flags")) or 0),
            attributes=attributes(span.get("attributes")),
            events=with_status_message(events, code, status.get("message"), end_ns),
            links=tuple(ref for link in items(span.get("links")) if (ref := _link(record(link)))),
            scope=text(scope.get("name")),
            scope_version=text(scope.get("version")),
            resource=resource,
            trace_state=text(span.get("traceState")),
            dropped=sum(whole(span.get(key)) or 0 for key in _DROPPED),
        )
    )


def _ids(span: Mapping[str, Any]) -> tuple[bytes, bytes, bytes] | Malformed:
    """The ids of a span, of whatever length, or the first that is not
    hexadecimal (base64, often).
    """
    trace_id, span_id, parent_id = ids = [hexadecimal(span.get(key)) for _, key, _ in _IDS]
    if trace_id is not None and span_id is not None and parent_id is not None:
        return trace_id, span_id, parent_id
    reason, key, digits = _IDS[ids.index(None)]
    value = span.get(key)
    found = f"has {len(value)} characters" if isinstance(value, str) else f"is {_kind(value)}"
    return Malformed(reason, f"the {key} {found}, not {digits} hexadecimal digits")


def _event(event: Mapping[str, Any]) -> RawEvent:
    return RawEvent(
        text(event.get("name")),
        max(_time(event.get("timeUnixNano")), 0),
        attributes(event.get("attributes")),
    )


def _link(link: Mapping[str, Any]) -> SpanRef | None:
    return link_ref(hexadecimal(link.get("traceId")) or b"", hexadecimal(link.get("spanId")) or b"")


def _log(log: Mapping[str, Any], scope: str, resource: Resource) -> RawLog:
    return RawLog(
        name=text(log.get("eventName")),
        time_ns=max(_time(log.get("timeUnixNano")) or _time(log.get("observedTimeUnixNano")), 0),
        trace_id=hexadecimal(log.get("traceId")) or b"",
        span_id=hexadecimal(log.get("spanId")) or b"",
        attributes=attributes(log.get("attributes")),
        scope=scope,
        resource=resource,
    )


def _time(value: object) -> int:
    return whole(value) or 0


def other_spelling(entry: Mapping[str, Any], name: str) -> str:
    """Return what is wrong where a list stands under a key that OTLP-JSON does not have; empty
    where it does not.

    >>> other_spelling({"resource_spans": []}, "resourceSpans")
    'resource_spans is no key of OTLP-JSON; write resourceSpans'
    """
    found = next((other for other in _OTHER_SPELLINGS.get(name, ()) if other in entry), "")
    return f"{found} is no key of OTLP-JSON; write {name}" if found else ""


def _records(batch: Batch, group: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects of the list of that name; what else stands in their place is malformed, null
    apart, which is absent. So is a list of another name that is known to be meant.
    """
    value = group.get(name)
    if name not in group and (misspelled := other_spelling(group, name)):
        _refuse(batch, misspelled)
    entries = items(value)
    if value is not None and entries is not value:
        _refuse(batch, f"{name} is {_kind(value)}, not a list")
    for entry in entries:
        if not isinstance(entry, dict):
            _refuse(batch, f"{_kind(entry)} stands among the {name}")
    return [entry for entry in entries if isinstance(entry, dict)]


def _refuse(batch: Batch, detail: str) -> None:
    batch.malformed.append(Malformed(Reason.SHAPE, detail))


def _kind(value: object) -> str:
    """Return what JSON calls the type of a value."""
    return "null" if value is None else _TYPES.get(type(value), "an object")
