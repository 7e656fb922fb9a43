"""Runs and spans as bytes: the one form in which they are stored, carried by Kafka and shown by the API.

A run record is one change of one run as a JSON object that anybody can read: `{"version", "change", "revision", "run": {…}}`,
with the fields of `Run` by name, enumerations by value, named tuples as lists, and ids in base64. In the state
database runs and spans are MessagePack arrays of their fields. Both forms follow from the annotations of the types: a new field
of a type, at its end and with a default, needs no change here, and bytes written without it are read all the same.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Final, NamedTuple, TypeVar, cast, get_type_hints

import msgspec

from otel_reliability.model.run import AgentKey, Run, RunChange
from otel_reliability.model.span import (
    LONGEST,
    AgentSpan,
    CompressionFacts,
    HandoffFacts,
    InvocationFacts,
    ModelFacts,
    RejectionFacts,
    Resource,
    ToolFacts,
)

VERSION: Final = 2
"""Version of run records; raised when a reader of the version before could no longer understand one."""

MAX_INTEGER: Final = 2**63 - 1
T = TypeVar("T")
_CHECKSUM_BYTES: Final = 4
_ID_BYTES: Final = {"trace_id": 16, "root_span_id": 8}
_FACTS: Final[tuple[Any, ...]] = (
    None, InvocationFacts, ToolFacts, ModelFacts, HandoffFacts, RejectionFacts, CompressionFacts,
)  # fmt: skip
_RESOURCE_AT: Final = AgentSpan._fields.index("resource")
_FACTS_AT: Final = AgentSpan._fields.index("facts")


class BadRecord(ValueError):
    """Error: bytes or an object that are no run record. The message names the field and the problem and holds no content."""


class Damaged(Exception):
    """Error: stored bytes that differ from the bytes that were written."""


class RunRecord(NamedTuple):
    """One change of one run. Of two records of one run, the one with the greater `revision` (Unix nanoseconds) is current."""

    change: RunChange
    run: Run
    revision: int


# --- Run records: JSON that anybody may have sent ----------------------------------------------------------------------


def write(record: RunRecord) -> bytes:
    """Return the record as JSON.

    >>> from otel_reliability.testing import run
    >>> read(write(RunRecord(RunChange.CLOSED, run(["search"]), 1))).run.path
    ('search',)
    """
    head = {"version": VERSION, "change": record.change.value, "revision": record.revision}
    return _clean(_to_json, {**head, "run": write_run(record.run)})


def read(raw: object) -> RunRecord:
    """Return the record that JSON text or bytes, or the parsed object, holds. Raise `BadRecord` for anything else."""
    if isinstance(raw, str | bytes):
        try:
            raw = msgspec.json.decode(raw)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            raise BadRecord("a run record is a JSON object") from None
    if not isinstance(raw, dict):
        raise BadRecord("a run record is a JSON object")
    found = cast("dict[str, Any]", raw)
    version = found.get("version")
    if version != VERSION:
        raise BadRecord(f"a record of version {version!s:.20}; this service reads version {VERSION}")
    try:
        change = msgspec.convert(found.get("change"), RunChange)
        revision = msgspec.convert(found.get("revision"), int)
    except msgspec.ValidationError as error:
        raise BadRecord(f"record.change or record.revision: {error}") from None
    return RunRecord(change, read_run(found.get("run")), revision)


def read_run(raw: object) -> Run:
    """Return the run that an object of its fields by name holds. Raise `BadRecord` for anything else."""
    try:
        run = Run(*msgspec.structs.astuple(msgspec.convert(raw, _run_object())))
    except msgspec.ValidationError as error:
        raise BadRecord(f"record.run: {error}".replace("$.", "run.")) from None
    if run.end_ns < run.start_ns:
        raise BadRecord("run.end_ns is before run.start_ns")
    for name, field in zip(Run._fields, run, strict=True):
        _check_sizes(f"run.{name}", field)
    return run


def write_run(run: Run) -> dict[str, Any]:
    """Return a run as an object of its fields by name, as records have it: plain values for JSON.

    The hashes of arguments and results stay in the process: retries and repeats are marked already.
    """
    calls = run.tool_calls
    if calls is not None:
        run = run._replace(tool_calls=tuple([call._replace(arguments=None, result=None) for call in calls]))
    plain: tuple[Any, ...] = _clean(msgspec.to_builtins, run)
    return dict(zip(Run._fields, plain, strict=True))


@cache
def _run_object() -> type[msgspec.Struct]:
    """Return the type of a run as an object, with the ranges that a record from outside must keep."""
    span_id: Any = Annotated[bytes, msgspec.Meta(min_length=8, max_length=8)]
    hints: Mapping[str, Any] = get_type_hints(Run) | {
        "trace_id": Annotated[bytes, msgspec.Meta(min_length=16, max_length=16)],
        "root_span_id": span_id | None,
        "start_ns": Annotated[int, msgspec.Meta(ge=0)],
        "weight": Annotated[int, msgspec.Meta(ge=1)],
        "span_count": Annotated[int, msgspec.Meta(ge=0)],
    }
    defaults = Run._field_defaults
    fields = [(name, hint, defaults[name]) if name in defaults else (name, hint) for name, hint in hints.items()]
    return msgspec.defstruct("RunObject", fields)


def _check_sizes(place: str, value: Any) -> None:
    match value:
        case bool() | None:
            return
        case str() | bytes() if len(value) > LONGEST:
            raise BadRecord(f"{place} has more than {LONGEST} characters")
        case int() if not -MAX_INTEGER <= value <= MAX_INTEGER:
            raise BadRecord(f"{place} is out of range")
        case float() if not math.isfinite(value):
            raise BadRecord(f"{place} is no finite number")
        case tuple():
            for item in cast("tuple[Any, ...]", value):
                _check_sizes(place, item)
        case _:
            return


# --- State: MessagePack with a checksum, which only this service writes -------------------------------------------------


def pack(value: Any) -> bytes:
    """Return plain values (None, booleans, numbers, texts, bytes, lists, tuples, dictionaries) as bytes with a checksum.

    >>> unpack(pack([1, "two", None]))
    [1, 'two', None]
    """
    body = _clean(_to_msgpack, value)
    return zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "big") + body


def unpack(data: bytes) -> Any:
    """Return the values that `pack` was given, with lists for tuples. Raise `Damaged`."""
    return _decoded(_plain_decoder, data)


def agent_key(plain: Iterable[Any]) -> AgentKey:
    """Return an agent key from the list that `unpack` made of it."""
    namespace, service, environment, agent, extra = plain
    return AgentKey(namespace, service, environment, agent, tuple((name, value) for name, value in extra))


def pack_run(run: Run) -> bytes:
    """Return a run as bytes. `unpack_run` returns an equal run.

    >>> from otel_reliability.testing import run
    >>> unpack_run(pack_run(run(["search"]))).path
    ('search',)
    """
    return pack(run)


def unpack_run(data: bytes) -> Run:
    """Return the run that `pack_run` was given. Raise `Damaged`."""
    return _decoded(_run_decoder(), data)


def pack_spans(spans: Iterable[AgentSpan]) -> bytes:
    """Return spans as bytes. Attributes of their resources are left out: what counts of them was read before."""
    resources: dict[tuple[str, ...], int] = {}
    rows: list[tuple[Any, ...]] = []
    for span in spans:
        at, facts = resources.setdefault(span.resource[:5], len(resources)), span.facts
        kind = 0 if facts is None else _FACTS.index(type(facts))
        rows.append((*span[:_FACTS_AT], (kind, facts), span.scope, at, *span[_RESOURCE_AT + 1 :]))
    return pack((list(resources), rows))


def unpack_spans(data: bytes) -> list[AgentSpan]:
    """Return the spans that `pack_spans` was given. Raise `Damaged`."""
    identities, rows = _decoded(_spans_decoder(), data)
    resources = [Resource(*identity) for identity in identities]
    try:
        return [_span(row, resources) for row in rows]
    except (msgspec.ValidationError, LookupError, TypeError) as error:
        raise Damaged(f"spans of another form ({type(error).__name__})") from None


def _span(row: Any, resources: Sequence[Resource]) -> AgentSpan:
    fields: list[Any] = list(row)
    kind, facts = fields[_FACTS_AT]
    fields[_FACTS_AT] = None if facts is None else msgspec.convert(facts, _FACTS[kind])
    fields[_RESOURCE_AT] = resources[fields[_RESOURCE_AT]]
    return AgentSpan(*fields)


def _decoded(decoder: msgspec.msgpack.Decoder[Any], data: bytes) -> Any:
    body = memoryview(data)[_CHECKSUM_BYTES:]
    if zlib.crc32(body) != int.from_bytes(data[:_CHECKSUM_BYTES], "big") or not body:
        raise Damaged("the checksum is wrong")
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise Damaged(f"bytes of another form ({type(error).__name__})") from None


# --- How types are written ----------------------------------------------------------------------------------------------

_to_msgpack: Final = msgspec.msgpack.Encoder().encode
_to_json: Final = msgspec.json.Encoder().encode
_plain_decoder: Final = msgspec.msgpack.Decoder()


@cache
def _run_decoder() -> msgspec.msgpack.Decoder[Run]:
    return msgspec.msgpack.Decoder(Run)


@cache
def _spans_decoder() -> msgspec.msgpack.Decoder[Any]:
    """Spans as `pack_spans` wrote them: facts with their kind, resources by their position. Fields that have a default may be
    absent at the end.
    """
    hints = get_type_hints(AgentSpan) | {"facts": tuple[int, Any], "resource": int}
    row: Any = NamedTuple("SpanRow", list(hints.items()))
    row.__new__.__defaults__ = tuple(AgentSpan._field_defaults.values())
    row._field_defaults = AgentSpan._field_defaults
    return msgspec.msgpack.Decoder(tuple[list[list[str]], list[row]])


def _clean(encode: Callable[[Any], T], value: Any) -> T:
    """Encode a value. Text with lone surrogates and integers beyond 64 bits, which no encoder sends, are made valid."""
    try:
        return encode(value)
    except (UnicodeEncodeError, OverflowError):
        return encode(_valid(value))


def _valid(value: Any) -> Any:
    match value:
        case bool():
            return value
        case str():
            return value.encode("utf-8", "replace").decode("utf-8")
        case int():
            return max(-MAX_INTEGER, min(MAX_INTEGER, value))
        case dict():
            return {_valid(key): _valid(item) for key, item in cast("dict[Any, Any]", value).items()}
        case list() | tuple():
            return tuple([_valid(item) for item in cast("Iterable[Any]", value)])
        case _:
            return value
