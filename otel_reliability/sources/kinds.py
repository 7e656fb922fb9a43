"""The kinds of files that people have: recognized once per file, from its first bytes or its keys.

`KINDS` is the table, the first row that fits counts. A row has what reads such a file, or the
sentence that says what to do instead. What fits none is read as OTLP-JSON lines, whose reader names
each line that is none.

A key counts where it stands in quotes before a colon: inside a text of content its quotes would be
escaped.
"""

from __future__ import annotations

import os
import re
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import RawIOBase
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, cast

import msgspec

from otel_reliability.errors import SourceError, UndecodableBody
from otel_reliability.model.span import RawSpan
from otel_reliability.sources import from_plain
from otel_reliability.sources.batch import Batch, Malformed, Reason
from otel_reliability.sources.chunks import STDIN, Chunks, MemberChunks, Progress, head_of
from otel_reliability.sources.lines import LONGEST, documents, split
from otel_reliability.sources.otlp_json import (
    decode_lines,
    decode_request,
    items,
    record,
    with_damage,
)
from otel_reliability.sources.sessions.formats import (
    SessionFile,
    SessionFormat,
    files_below,
    format_of,
    session_file,
)

HEAD: Final = 64 * 1024
"""Bytes by which the kind of a file is known."""

MAX_HEAD: Final = 4 * 1024 * 1024
"""Bytes by which it is known at most."""

MAX_UNKNOWN: Final = 100_000
"""Lines after which a file of no known kind is given up, if none was OTLP-JSON."""

MAX_LINES: Final = 64
"""Lines of them that are compared with the records of session files."""

Numbered: TypeAlias = Iterator[tuple[int, Batch]]
"""Batches, each with the number of the line that it begins on."""
Read: TypeAlias = Callable[[str, Iterable[bytes], int], Numbered]
"""Reads a file's bytes; it gets the name for places, and the bound of a line or message."""


class FileKind(NamedTuple):
    """One kind of file. It fits where the file begins with one of `begins`, or where all `keys` and
    none of `without` stand in its head. Without `read`, `remedy` says what works instead.
    """

    name: str
    keys: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    begins: tuple[bytes, ...] = ()
    at: int = 0
    read: Read | None = None
    remedy: str = ""
    session: SessionFormat | None = None

    def fits(self, head: bytes, keys: frozenset[str]) -> bool:
        """Return whether a file with this head is of the kind."""
        if self.begins:
            return head[self.at :].startswith(self.begins)
        return keys.issuperset(self.keys) and keys.isdisjoint(self.without)


# --- Readers --------------------------------------------------------------------------------------


def _each_document(translate: Callable[[Any], Batch]) -> Read:
    """Return what reads each JSON document by itself; what is none, such as a program's other
    output, is passed over, unless it is all.
    """

    def read(name: str, pieces: Iterable[bytes], longest: int) -> Numbered:
        has_document = False
        for line in documents(pieces, longest):
            if line.text is None:
                detail = f"a document longer than {longest} bytes"
                problem = Malformed(Reason.LINE_TOO_LONG, detail, f"{name}:{line.number}")
                yield line.number, Batch(malformed=[problem])
                continue
            for document in _documents_in(line.text):
                has_document = True
                batch = translate(document)
                place = f"{name}:{line.number}"
                batch.malformed = [each._replace(place=place) for each in batch.malformed]
                yield line.number, batch
        if not has_document:
            detail = "no JSON document; remove what other programs wrote in front of its lines"
            yield 1, _problem(name, 1, Reason.JSON, detail)

    return read


_OPENING: Final = re.compile(rb"^\s*[{\[]")
_END: Final = re.compile(rb"^[}\]]\s*$", re.MULTILINE)


def _documents_in(text: bytes) -> Iterator[Any]:
    """The JSON document that a text is, or that it begins with before other output."""
    if not _OPENING.match(text):
        return
    ends = [len(text), *(found.end() for found in _END.finditer(text))]
    for end in ends[:3]:
        try:
            yield msgspec.json.decode(text[:end])
        except (msgspec.DecodeError, RecursionError):
            continue
        else:
            return


_NO_KIND: Final = frozenset({Reason.SHAPE, Reason.JSON})


def _decode_unknown(name: str, pieces: Iterable[bytes], longest: int) -> Numbered:
    """Read lines as OTLP-JSON. Where none of several is any, one problem stands for all of them."""
    held: list[tuple[int, Batch]] = []
    lines = decode_lines(name, pieces, longest)
    for at, batch in lines:
        held.append((at, batch))
        if not batch.malformed:
            yield from held
            yield from lines
            return
        if len(held) == MAX_UNKNOWN:
            break
    if len(held) == 1 and held[0][1].malformed[0].reason not in _NO_KIND:
        yield from held
    elif held:
        first = held[0][1].malformed[0]
        several = f"none of {len(held):,} lines is an OTLP request (the first: {first.detail})"
        why = first.detail if len(held) == 1 else several
        detail = f"this is no kind of file that is known: {why}; {_BY_OTLP}"
        yield 1, Batch(malformed=[Malformed(Reason.KIND, detail, name)])


def _each_object(translate: Callable[[Mapping[str, Any]], Batch]) -> Read:
    """Return what reads each JSON object, or each of a list of them, by itself."""

    def read(document: object) -> Batch:
        found = Batch()
        for each in items(document) or [document]:
            if record(each) is each:
                batch = translate(record(each))
                found.spans += batch.spans
                found.logs += batch.logs
                found.malformed += batch.malformed
        return found

    return _each_document(read)


def _protobuf_json(document: object) -> Batch:
    return decode_request(from_plain.otlp_of(document))


def _bare_spans(document: object) -> Batch:
    return decode_request(from_plain.otlp_of(from_plain.request_of_spans(document)))


def _container_log(name: str, pieces: Iterable[bytes], longest: int) -> Numbered:
    """Read what a container printed, out of the log of its runtime."""
    lost: list[tuple[int, Batch]] = []
    for found in read_pieces(name, _printed(name, pieces, longest, lost), longest):
        yield found
        yield from lost
        lost.clear()
    yield from lost


def _printed(
    name: str, pieces: Iterable[bytes], longest: int, lost: list[tuple[int, Batch]]
) -> Iterator[bytes]:
    """Yield the output in the lines of Docker's log, or of one in the form of Kubernetes (CRI). A
    part of a long line has no line feed, or the mark `P`. Lines of neither are `lost`.
    """
    for line in split(pieces, longest):
        text = line.text or b""
        if found := _CRI.match(text):
            yield found[2] + (b"\n" if found[1] == b"F" else b"")
            continue
        try:
            printed = record(msgspec.json.decode(text)).get("log")
        except (msgspec.DecodeError, RecursionError):
            printed = None
        if not isinstance(printed, str):
            if line.text is None or text.strip():
                reason = Reason.LINE_TOO_LONG if line.text is None else Reason.JSON
                detail = "no line of the log of a container"
                lost.append((line.number, _problem(name, line.number, reason, detail)))
        else:
            yield printed.encode("utf-8", "replace")


_SIZE: Final = struct.Struct(">I")


def _length_prefixed(name: str, pieces: Iterable[bytes], longest: int) -> Numbered:
    """Read messages of protobuf, each after its size in four bytes."""
    held = b""
    number = 0
    for piece in pieces:
        held += piece
        at = 0
        while len(held) >= at + _SIZE.size:
            size = _SIZE.unpack_from(held, at)[0]
            if size > longest:
                detail = f"a message of {size} bytes, longer than {longest}"
                yield number, _problem(name, number, Reason.LINE_TOO_LONG, detail)
                return
            if len(held) < at + _SIZE.size + size:
                break
            number += 1
            at += _SIZE.size
            yield number, _message(name, number, held[at : at + size])
            at += size
        held = held[at:]
    if held:
        detail = "the file ends in the middle of a message"
        yield number, _problem(name, number + 1, Reason.TRUNCATED, detail)


def _whole_message(name: str, pieces: Iterable[bytes], longest: int) -> Numbered:
    """Read one message of protobuf; several, one after the other, are one to protobuf itself."""
    body = bytearray()
    for piece in pieces:
        body += piece
        if len(body) > longest:
            detail = f"a message longer than {longest} bytes"
            yield 1, _problem(name, 1, Reason.LINE_TOO_LONG, detail)
            return
    yield 1, _message(name, 1, bytes(body))


def _message(name: str, number: int, body: bytes) -> Batch:
    from otel_reliability.sources.otlp_protobuf import read_traces  # noqa: PLC0415  few files need it

    try:
        spans, malformed = read_traces(body, _same)
    except UndecodableBody as error:
        return _problem(name, number, Reason.SHAPE, str(error))
    place = f"{name}:{number}"
    return Batch(spans=spans, malformed=[each._replace(place=place) for each in malformed])


def _same(span: RawSpan) -> RawSpan:
    return span


def _problem(name: str, number: int, reason: Reason, detail: str) -> Batch:
    return Batch(malformed=[Malformed(reason, detail, f"{name}:{number}")])


class _Stream(RawIOBase):
    """Pieces of bytes as a file that can be read once, as `tarfile` wants one."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._held = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while size < 0 or len(self._held) < size:
            piece = next(self._pieces, b"")
            if not piece:
                break
            self._held += piece
        end = len(self._held) if size < 0 else size
        found = self._held[:end]
        self._held = self._held[end:]
        return found


def _tar(name: str, pieces: Iterable[bytes], longest: int) -> Numbered:
    try:
        with tarfile.open(fileobj=cast("Any", _Stream(pieces)), mode="r|") as archive:
            files = ((member, archive.extractfile(member)) for member in archive)
            found = (MemberChunks(f"{name}!{each.name}", file) for each, file in files if file)
            yield from _members(name, found, longest)
    except (tarfile.TarError, EOFError):
        yield 1, _problem(name, 1, Reason.COMPRESSION, "the tar archive is damaged")


def _zip(name: str, pieces: Iterable[bytes], longest: int) -> Numbered:
    for _ in pieces:  # its table stands at the end: it is opened by its name
        break
    if name == "standard input":
        yield 1, _problem(name, 1, Reason.KIND, "a zip archive cannot be read from a pipe")
        return
    if not Path(name).is_file():
        detail = "a zip archive in another archive is not read; unpack it"
        yield 1, _problem(name, 1, Reason.KIND, detail)
        return
    try:
        with zipfile.ZipFile(name) as archive:
            files = (each.filename for each in archive.infolist() if not each.is_dir())
            found = (MemberChunks(f"{name}!{each}", archive.open(each)) for each in files)
            yield from _members(name, found, longest)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError, zlib.error):
        yield 1, _problem(name, 1, Reason.COMPRESSION, "the zip archive is damaged or encrypted")


def _members(name: str, files: Iterable[MemberChunks], longest: int) -> Numbered:
    """Read the files of an archive, as those of a folder: what is of no known kind is passed over,
    unless it is all.
    """
    unknown = known = 0
    sessions: FileKind | None = None
    for member in files:
        pieces = iter(member)
        head = beginning(pieces)
        kind = kind_of(head)
        if kind.session is not None:
            sessions = sessions or kind
        elif kind is UNKNOWN:
            unknown += 1
        else:
            known += 1
            batches = _read_as(kind, member.name, chain((head,), pieces), longest)
            yield from with_damage(member, member.name, batches)
    if sessions is not None:
        detail = f"it holds {sessions.name}; unpack it, and name the folder"
        yield 1, Batch(malformed=[Malformed(Reason.KIND, detail, name)])
    elif not known:
        detail = f"no file in this archive, of {unknown}, is a recording"
        yield 1, Batch(malformed=[Malformed(Reason.KIND, detail, name)])


# --- The table ------------------------------------------------------------------------------------


_BY_OTLP: Final = (
    "let the agent write OTLP-JSON: otel_reliability.record(path) in Python, "
    "or a Collector with the file exporter"
)
_FROM_STORE: Final = "its traces also go by OTLP to a Collector with the file exporter, from now on"
_FETCH: Final = "read them from the store itself: otel-reliability fetch {} --since 7d"
_NO_TIMES: Final = "it holds messages without spans or times; " + _BY_OTLP

_AS_FILE: Final = "name the file, or its folder: several files may hold one session"

_OF_STORES: Final = (
    ("spans of Datadog", ("trace_id", "span_id", "resource_name")),
    ("spans of Datadog", ("trace_id", "span_id", "ml_app")),
    ("spans of Datadog's agent", ("trace_id", "span_id", "parent_id", "resource", "metrics")),
    ("traces of AWS X-Ray", ("Traces", "Segments", "Document")),
    ("a segment of AWS X-Ray", ("trace_id", "id", "start_time", "end_time", "name")),
    ("traces of Google Cloud Trace", ("projectId", "traceId")),
    ("events of Honeycomb", ("trace.trace_id", "trace.span_id")),
    ("documents of Elastic APM", ("processor", "trace", "transaction")),
    ("documents of Elasticsearch", ("@timestamp", "trace_id", "span_id")),
    ("documents of Elasticsearch", ("_index", "_id", "_source", "@timestamp")),
    ("a transaction of Sentry", ("contexts", "spans", "start_timestamp", "op")),
    ("events of New Relic", ("trace.id", "entity.name")),
    ("rows of Application Insights", ("operation_Id", "timestamp")),
    ("rows of Application Insights", ("tables", "columns", "rows")),
    ("rows of ClickHouse", ("TraceId", "SpanId", "SpanName", "Duration")),
    ("spans of SigNoz", ("trace_id", "span_id", "durationNano")),
    ("spans of OpenObserve", ("trace_id", "span_id", "operation_name", "service_name")),
    ("an answer that Grafana shows", ("results", "frames", "schema")),
    ("spans of Braintrust", ("span_id", "root_span_id", "span_attributes")),
    ("requests that LiteLLM logged", ("call_type", "response_cost")),
    ("requests that Helicone logged", ("request_body", "response_body")),
)
"""Exports of stores that are not read, by keys."""

ARCHIVES: Final = (
    FileKind("a zip archive", begins=(b"PK\x03\x04",), read=_zip),
    FileKind("a tar archive", begins=(b"ustar",), at=257, read=_tar),
)

KINDS: Final[tuple[FileKind, ...]] = (
    FileKind(
        "data compressed with bzip2", begins=(b"BZh",), remedy="decompress it: bunzip2 --keep FILE"
    ),
    FileKind(
        "data compressed with xz",
        begins=(b"\xfd7zXZ\0",),
        remedy="decompress it: unxz --keep FILE",
    ),
    FileKind("a Parquet file", begins=(b"PAR1",), remedy="write the rows as spans; " + _BY_OTLP),
    FileKind(
        "an SQLite database",
        begins=(b"SQLite format 3\0",),
        remedy="a store's own: otel-reliability fetch phoenix or fetch mlflow reads its server",
    ),
    FileKind(
        "data that is compressed twice",
        begins=(b"\x1f\x8b", b"\x28\xb5\x2f\xfd"),
        remedy="decompress it once: gunzip or unzstd FILE",
    ),
    FileKind(
        "UTF-16 without a byte order mark",
        begins=(b"{\0", b"[\0"),
        remedy="iconv -f UTF-16LE -t UTF-8 FILE | otel-reliability report -",
    ),
    FileKind(
        "a web page",
        begins=(b"<!DOCTYPE", b"<!doctype", b"<html", b"<HTML"),
        remedy="a server sent it instead of data; " + _FROM_STORE,
    ),
    FileKind("XML", begins=(b"<?xml",), remedy=_BY_OTLP),
    FileKind(
        "the log of a container (Docker)", keys=("log", "stream", "time"), read=_container_log
    ),
    FileKind(
        "requests of OTLP before version 0.15 (instrumentationLibrarySpans)",
        keys=("resourceSpans", "instrumentationLibrarySpans"),
        remedy="written by an OTLP before 0.15; update the Collector or SDK that wrote it",
    ),
    FileKind(
        "OTLP-JSON in snake case (protobuf's JSON)",
        keys=("resource_spans",),
        read=_each_document(_protobuf_json),
    ),
    FileKind(
        "an MLflow trace",
        keys=("trace_id", "start_time_unix_nano", "request_time"),
        remedy=_FETCH.format("mlflow"),
    ),
    FileKind("an answer of Tempo's API", keys=("batches",), read=_each_document(_protobuf_json)),
    FileKind(
        "an answer of Tempo's API",
        keys=("trace", "resourceSpans"),
        read=_each_document(_protobuf_json),
    ),
    FileKind(
        "an answer of Jaeger's API",
        keys=("result", "resourceSpans"),
        read=_each_document(_protobuf_json),
    ),
    FileKind(
        "spans of resources (OtlpJsonLoggingSpanExporter of the SDK for Java)",
        keys=("resource", "scopeSpans"),
        without=("resourceSpans",),
        read=_each_document(_protobuf_json),
    ),
    FileKind(
        "a trace that Grafana shows",
        keys=("traceID", "spanID", "operationName", "serviceName"),
        without=("processID", "process", "references"),
        remedy="read it from the store: otel-reliability fetch tempo or fetch jaeger --since 7d",
    ),
    FileKind(
        "traces of Jaeger",
        keys=("traceID", "spanID", "operationName"),
        read=_each_object(from_plain.jaeger),
    ),
    FileKind(
        "spans of Zipkin",
        keys=("traceId", "id", "localEndpoint"),
        read=_each_document(from_plain.zipkin),
    ),
    FileKind(
        "spans that the SDK for Python printed (ConsoleSpanExporter)",
        keys=("context", "trace_id", "span_id", "parent_id", "start_time", "resource"),
        without=("span_kind",),
        read=_each_object(from_plain.python_span),
    ),
    FileKind(
        "spans that the SDK for Go printed (stdouttrace)",
        keys=("SpanContext", "TraceID", "Parent", "StartTime"),
        read=_each_object(from_plain.go_span),
    ),
    FileKind(
        "records of the SDK for JavaScript",
        keys=("instrumentationScope", "startTime", "traceId"),
        without=("resourceSpans",),
        read=_each_object(from_plain.js_record),
    ),
    FileKind(
        "records of the SDK for JavaScript",
        keys=("hrTime", "resource"),
        without=("resourceSpans",),
        read=_each_object(from_plain.js_record),
    ),
    FileKind(
        "spans of Phoenix",
        keys=("context.trace_id", "context.span_id"),
        remedy=_FETCH.format("phoenix"),
    ),
    FileKind(
        "spans of Phoenix",
        keys=("context", "trace_id", "span_kind", "status_code"),
        remedy=_FETCH.format("phoenix"),
    ),
    FileKind(
        "Langfuse observations",
        keys=("traceId", "parentObservationId"),
        remedy=_FETCH.format("langfuse"),
    ),
    FileKind(
        "Langfuse traces",
        keys=("userId", "sessionId", "latency", "timestamp"),
        remedy=_FETCH.format("langfuse"),
    ),
    FileKind(
        "spans of Zipkin before version 2",
        keys=("traceId", "id", "binaryAnnotations"),
        remedy="read them from the server, as /api/v2/traces",
    ),
    FileKind(
        "spans of Zipkin",
        keys=("traceId", "id", "timestamp", "duration", "tags"),
        read=_each_document(from_plain.zipkin),
    ),
    FileKind(
        "a list of traces of Tempo",
        keys=("traceID", "rootServiceName"),
        remedy=_FETCH.format("tempo"),
    ),
    FileKind(
        "an MLflow trace",
        keys=("info", "data", "spans", "request_id", "experiment_id"),
        remedy=_FETCH.format("mlflow"),
    ),
    FileKind(
        "a table of MLflow traces",
        keys=("trace_id", "trace_metadata", "execution_duration"),
        remedy=_FETCH.format("mlflow"),
    ),
    FileKind(
        "LangSmith runs", keys=("run_type", "dotted_order"), remedy=_FETCH.format("langsmith")
    ),
    FileKind(
        "a table of Langfuse traces",
        keys=("userId", "sessionId", "release", "input", "output"),
        remedy=_FETCH.format("langfuse"),
    ),
    FileKind(
        "a table of LangSmith runs",
        keys=("run_type", "start_time", "inputs"),
        remedy=_FETCH.format("langsmith"),
    ),
    FileKind(
        "MLflow traces",
        keys=("traces", "request_id", "experiment_id"),
        remedy=_FETCH.format("mlflow"),
    ),
    FileKind("an MLflow trace", keys=("info", "trace_location"), remedy=_FETCH.format("mlflow")),
    FileKind("rows of Logfire", keys=("start_timestamp", "span_name"), remedy=_FROM_STORE),
    FileKind("calls of Weave", keys=("op_name", "project_id", "started_at"), remedy=_FROM_STORE),
    FileKind("spans of Opik", keys=("parent_span_id", "type", "usage"), remedy=_FROM_STORE),
    FileKind("results of tau-bench", keys=("traj", "reward", "task_id"), remedy=_NO_TIMES),
    FileKind("an SWE-agent trajectory", keys=("trajectory", "environment"), remedy=_NO_TIMES),
    FileKind("a mini-SWE-agent trajectory", keys=("trajectory_format",), remedy=_NO_TIMES),
    FileKind("an ATIF trajectory", keys=("schema_version", "steps", "agent"), remedy=_BY_OTLP),
    FileKind(
        "an Inspect log",
        keys=("eval", "eval_id", "task_id"),
        remedy="its samples hold no spans; " + _BY_OTLP,
    ),
    FileKind(
        "the stream of claude -p --output-format stream-json",
        keys=("type", "subtype", "session_id"),
        remedy="read the session file of the same run, in ~/.claude/projects",
    ),
    FileKind(
        "traces of the OpenAI Agents SDK",
        keys=("object", "span_data"),
        remedy="add openinference-instrumentation-openai-agents; " + _BY_OTLP,
    ),
    FileKind("a LangGraph state", keys=("values", "messages", "config"), remedy=_NO_TIMES),
    *(FileKind(name, keys=keys, remedy=_FROM_STORE) for name, keys in _OF_STORES),
    FileKind("events of Chrome's tracing", keys=("traceEvents",), remedy=_BY_OTLP),
    FileKind(
        "the journal of systemd",
        keys=("__REALTIME_TIMESTAMP", "MESSAGE"),
        remedy="its messages alone are read: journalctl --output cat | otel-reliability report -",
    ),
    FileKind(
        "log events of CloudWatch",
        keys=("events", "message", "ingestionTime"),
        remedy="their messages alone are read: jq -r '.events[].message' FILE | "
        "otel-reliability report -",
    ),
    FileKind(
        "spans that the SDK for PHP printed (ConsoleSpanExporter)",
        keys=("context", "trace_id", "parent_span_id", "start", "end"),
        without=("span_kind", "resourceSpans"),
        remedy=_BY_OTLP,
    ),
    FileKind(
        "OTLP spans without their resource",
        keys=("traceId", "spanId", "startTimeUnixNano"),
        without=("resourceSpans",),
        read=_each_document(_bare_spans),
    ),
    FileKind(
        "the stream of opencode run --format json",
        keys=("type", "sessionID", "part"),
        without=("resourceSpans",),
        remedy="read the session itself, in ~/.local/share/opencode",
    ),
    FileKind(
        "the answer of gemini --output-format json",
        keys=("response", "stats", "models", "tools"),
        without=("resourceSpans",),
        remedy="read the session file of the same run, in ~/.gemini/tmp",
    ),
    FileKind(
        "prompts that Claude Code logged",
        keys=("display", "pastedContents", "timestamp"),
        remedy="it holds prompts only; read the session files, in ~/.claude/projects",
    ),
    FileKind(
        "prompts that Codex logged",
        keys=("session_id", "ts", "text"),
        without=("resourceSpans",),
        remedy="it holds prompts only; read the session files, in ~/.codex/sessions",
    ),
    FileKind("chats of claude.ai", keys=("chat_messages", "sender"), remedy=_NO_TIMES),
    FileKind("chat messages", keys=("messages", "role"), remedy=_NO_TIMES),
    FileKind(
        "chat messages",
        keys=("role", "content"),
        without=("resourceSpans", "sessionId", "session_id"),
        remedy=_NO_TIMES,
    ),
    FileKind(
        "the stream of codex exec --json",
        keys=("type", "thread_id"),
        without=("sessionId", "session_id", "resourceSpans"),
        remedy="read the session file of the same run, in ~/.codex/sessions",
    ),
    FileKind(
        "the stream of gemini --output-format stream-json",
        keys=("type", "session_id", "model", "timestamp"),
        without=("uuid", "resourceSpans"),
        remedy="read the session file of the same run, in ~/.gemini/tmp",
    ),
    FileKind(
        "prompts that Gemini CLI logged",
        keys=("sessionId", "messageId", "message"),
        without=("uuid", "resourceSpans"),
        remedy="it holds prompts only; read the session files, in ~/.gemini/tmp",
    ),
)

_CRI: Final = re.compile(
    rb"\d{4}-\d\d-\d\dT\S{8,40} std(?:out|err) ([PF])(?::\S*)? (.*)", re.DOTALL
)
_PREFIXED: Final = re.compile(
    rb'^[^{\n]{1,400}(\{"(?:resourceSpans|resource)".*)(\n?)', re.MULTILINE
)
_LINE_OF_JSON: Final = re.compile(rb'^\s*[{\[]\s*["{\[\n]', re.MULTILINE)
_BY_COLLECTOR: Final = "it is no JSON; use the OTLP exporter and a Collector with the file exporter"
PRINTED: Final = (
    (
        re.compile(rb"^.{0,60}\binfo\b\s+(?:ResourceSpans #|Traces\b)", re.MULTILINE),
        FileKind(
            "the Collector's debug output",
            remedy="use the file exporter instead of debug: it writes OTLP-JSON lines",
        ),
    ),
    (
        re.compile(rb"\btraceId: (?:\x1b\[\d+m)?['\"][0-9a-f]{32}['\"]"),
        FileKind(
            "spans that the SDK for JavaScript printed (ConsoleSpanExporter)", remedy=_BY_COLLECTOR
        ),
    ),
    (
        re.compile(rb"^\s*severityNumber: ", re.MULTILINE),
        FileKind(
            "log records that the SDK for JavaScript printed (ConsoleLogRecordExporter)",
            remedy=_BY_COLLECTOR,
        ),
    ),
    (
        re.compile(rb"#<struct OpenTelemetry::SDK::Trace::SpanData"),
        FileKind("spans that the SDK for Ruby printed (ConsoleSpanExporter)", remedy=_BY_COLLECTOR),
    ),
    (
        re.compile(rb"^\s*trace_id\s*: [0-9a-f]{32}\b", re.MULTILINE),
        FileKind("spans that the SDK for C++ printed (ostream exporter)", remedy=_BY_COLLECTOR),
    ),
    (
        re.compile(rb"\bActivity\.TraceId: "),
        FileKind("spans that the SDK for .NET printed (console exporter)", remedy=_BY_COLLECTOR),
    ),
    (
        re.compile(rb"^\s*TraceId\s*: [0-9a-f]{32}\b", re.MULTILINE),
        FileKind("spans that the SDK for Rust printed (stdout exporter)", remedy=_BY_COLLECTOR),
    ),
    (
        re.compile(rb"'[^'\n]{1,200}' : [0-9a-f]{32} [0-9a-f]{16} [A-Z]+ \[tracer: "),
        FileKind("spans that the SDK for Java printed (LoggingSpanExporter)", remedy=_BY_COLLECTOR),
    ),
    (
        re.compile(rb'\A\s*\{\s*"(?:errors?|detail|message)"\s*:.{0,2000}\Z', re.DOTALL),
        FileKind(
            "an error that a server answered",
            remedy="check the address and the key that it was asked with",
        ),
    ),
    (re.compile(rb"\0"), FileKind("binary data", remedy=_BY_OTLP)),
)
"""Output of SDKs, the Collector and servers for people, by a pattern of each."""
CONTAINER_LOG: Final = FileKind("the log of a container (CRI)", read=_container_log)
PREFIXED_LINES: Final = FileKind(
    "OTLP-JSON with other text before each line",
    remedy="remove it: sed 's/^[^{]*//' FILE | otel-reliability report -",
)
OTLP_LINES: Final = FileKind("OTLP-JSON lines", read=decode_lines)
UNKNOWN: Final = FileKind("no known kind: read as OTLP-JSON lines", read=_decode_unknown)
PIPE: Final = FileKind("standard input")
UNREADABLE: Final = FileKind("a file or folder that may not be read")
PROTOBUF_JSON: Final = FileKind(
    "OTLP-JSON with ids in base64 (protobuf's JSON)", read=_each_document(_protobuf_json)
)
PROTOBUF: Final = FileKind("an OTLP request in protobuf", read=_whole_message)
PREFIXED: Final = FileKind("OTLP requests in protobuf, each after its size", read=_length_prefixed)

_KEY: Final = re.compile(rb'"([\w.@-]{1,64})"\s{0,8}:')
_COLUMN: Final = re.compile(rb'"?[\w.@ -]{1,64}"?\r?')
_SQLITE: Final = b"SQLite format 3\0"
_TABLE: Final = re.compile(rb'CREATE TABLE [`"]?(\w{1,64})')
_BASE64_ID: Final = re.compile(rb'"traceId"\s{0,8}:\s{0,8}"[A-Za-z0-9+/_-]{22}(?:==)?"')
_SIGNALS: Final = frozenset(
    {"resourceSpans", "resourceLogs", "resourceMetrics", "resourceProfiles"}
)
_FIELD: Final = 0x0A
"""The first byte of a request in protobuf: its field 1, of variable length."""


def kind_of(head: bytes) -> FileKind:
    r"""Return the kind of a file by its first bytes.

    >>> kind_of(b'{"resourceSpans": []}').name, kind_of(b"PAR1").name
    ('OTLP-JSON lines', 'a Parquet file')
    >>> kind_of(b'[{"traceId": "1", "id": "2", "localEndpoint": {}}]').name
    'spans of Zipkin'
    """
    other = _binary_kind(head) or _prefixed_kind(head)
    if other is not None:
        return other
    known = _TABLE if head.startswith(_SQLITE) else _KEY
    keys = frozenset(found.decode() for found in known.findall(head)) or _columns(head)
    lines = _keys_of_lines(head)
    together = frozenset[str]().union(*lines) if lines else keys
    session = next(filter(None, map(format_of, [*lines, together])), None)
    if session is not None:
        return FileKind(f"a session of {session.agent}", session=session, remedy=_AS_FILE)
    for kind in KINDS:
        if kind.fits(head, keys):
            return kind
    if "resourceSpans" in keys and _BASE64_ID.search(head):
        return PROTOBUF_JSON
    if not keys.isdisjoint(_SIGNALS):
        return OTLP_LINES
    return next((kind for form, kind in PRINTED if form.search(head)), UNKNOWN)


def beginning(pieces: Iterator[bytes]) -> bytes:
    """Return the first bytes of a file, more of them where its lines are too long to be known by
    fewer: a prompt may hold a picture.
    """
    head = head_of(HEAD, pieces)
    size = HEAD
    while len(head) >= size < MAX_HEAD and head[:1] == b"{" and kind_of(head) is UNKNOWN:
        size *= 8
        head += head_of(size - len(head), pieces)
    return head


def _binary_kind(head: bytes) -> FileKind | None:
    if head[:1] == bytes([_FIELD]) and head.lstrip()[:1] not in (b"{", b"["):
        return PROTOBUF if _is_protobuf(head) else UNKNOWN
    if len(head) > _SIZE.size and head[0] == 0 and head[_SIZE.size] == _FIELD:
        return PREFIXED
    # the head of an archive holds those of files in it
    return next((each for each in ARCHIVES if each.fits(head, frozenset())), None)


def _prefixed_kind(head: bytes) -> FileKind | None:
    if _CRI.match(head):
        return CONTAINER_LOG
    found = None if _LINE_OF_JSON.search(head) else _PREFIXED.search(head)
    if found is None:
        return None
    rest, end = found.groups()
    if end:  # of the last line, the head may have a part
        try:
            msgspec.json.decode(rest)
        except (msgspec.DecodeError, RecursionError):
            return None  # the source of a program that writes such lines, say
    return PREFIXED_LINES


def _columns(head: bytes) -> frozenset[str]:
    """Return the names of a table's columns, where the first line is those."""
    names = head.partition(b"\n")[0].split(b",")
    is_table = len(names) > 2 and all(map(_COLUMN.fullmatch, names))
    return frozenset(name.strip(b'\r "').decode() for name in names) if is_table else frozenset()


def _keys_of_lines(head: bytes) -> list[frozenset[str]]:
    """Return the keys of each whole line that is an object, and of its message: deeper ones may be
    those of any tool's arguments. None where no line is one.
    """
    found: list[frozenset[str]] = []
    for line in head.split(b"\n")[:MAX_LINES]:
        if not line.lstrip().startswith(b"{"):
            continue
        try:
            given = record(msgspec.json.decode(line))
        except (msgspec.DecodeError, RecursionError):
            continue
        found.append(frozenset(given).union(record(given.get("message"))))
    return found


def _is_protobuf(head: bytes) -> bool:
    """Return whether a line feed begins a message rather than a text."""
    return any(byte < 9 for byte in head[:HEAD]) and len(head) > 3


# --- Reading --------------------------------------------------------------------------------------


def read_lines(
    path: str | os.PathLike[str],
    *,
    longest: int = LONGEST,
    progress: Progress | None = None,
    size: int | None = None,
) -> Numbered:
    """Read a file of any kind, each batch with the number of the line that it begins on.

    A kind that cannot be read is one `Malformed` of the whole file. For the rest see
    `otlp_json.read_file`, which reads OTLP-JSON lines only.
    """
    chunks = Chunks(path, progress, size)
    name = "standard input" if chunks.name == STDIN else chunks.name
    yield from with_damage(chunks, name, read_pieces(name, chunks, longest))


def read_pieces(name: str, pieces: Iterable[bytes], longest: int) -> Numbered:
    """Read the unpacked bytes of a file of any kind."""
    stream = iter(pieces)
    head = beginning(stream)
    yield from _read_as(kind_of(head), name, chain((head,), stream), longest)


def _read_as(kind: FileKind, name: str, pieces: Iterable[bytes], longest: int) -> Numbered:
    if kind.read is None:
        detail = f"this is {kind.name}, which is not read: {kind.remedy}"
        yield 1, Batch(malformed=[Malformed(Reason.KIND, detail, name)])
        return
    yield from kind.read(name, pieces, longest)


class Input(NamedTuple):
    """A file, its kind, and where it is a session that."""

    path: str | os.PathLike[str]
    kind: FileKind
    session: SessionFile | None


def input_of(path: str | os.PathLike[str]) -> Input:
    """Return a file with its kind, recognized by its head. Standard input is not opened."""
    if os.fspath(path) == STDIN:
        return Input(path, PIPE, None)
    head = beginning(iter(Chunks(path)))
    kind = kind_of(head)
    session = None if kind.session is None else session_file(Path(path), kind.session, head)
    return Input(path, kind, session)


def inputs_of(paths: Sequence[str | os.PathLike[str]]) -> list[Input]:
    """Return these files, and of folders among them the files below that are of a kind that is
    read.

    Raises `SourceError` for a folder without any.
    """
    found: list[Input] = []
    for path in paths:
        if os.fspath(path) == STDIN or not Path(path).is_dir():
            found.append(input_of(path))
            continue
        below = [_input_below(file) for file in files_below([Path(path)])]
        known = [each for each in below if each.session is not None or _is_known(each.kind)]
        if not known:
            raise SourceError(
                f"{os.fspath(path)}: no file in this folder, of {len(below)}, is a session of a "
                "coding agent or a recording; name the file."
            )
        found += known
    return found


class SessionsBelow(NamedTuple):
    """The files below a folder that are sessions of coding agents, and the files and folders that
    may not be read, by name.
    """

    files: list[Path]
    unreadable: list[Path]


def sessions_below(folder: Path) -> SessionsBelow:
    """Return what lies below a folder."""
    found = SessionsBelow([], [])
    for path in files_below([folder]):
        each = _input_below(path)
        if each.session is not None:
            found.files.append(path)
        elif each.kind is UNREADABLE:
            found.unreadable.append(path)
    return found


def _input_below(path: Path) -> Input:
    """Return a file that was not named itself, so that one that cannot be opened costs no other."""
    try:
        return input_of(path)
    except SourceError:
        return Input(path, UNREADABLE, None)


def _is_known(kind: FileKind) -> bool:
    return kind is UNREADABLE or (kind.read is not None and kind is not UNKNOWN)
