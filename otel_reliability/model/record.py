"""Runs and spans as bytes: MessagePack with a checksum, in the state database and in messages of
Kafka.

Both are arrays of their fields, and the form follows from the annotations of the types: a new field
of a type, at its end and with a default, needs no change here, and bytes written without it are
read all the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final, NamedTuple, cast, get_type_hints

import msgspec

from otel_reliability.model.run import AgentKey, Run, RunChange
from otel_reliability.model.span import (
    AgentSpan,
    CompressionFacts,
    Evaluation,
    HandoffFacts,
    InvocationFacts,
    ModelFacts,
    RejectionFacts,
    Resource,
    ToolFacts,
)

VERSION: Final = 3
"""Version of run records; raised by any change of their form but a new field at the end of a type,
with a default.
"""

_MAX_INTEGER: Final = 2**63 - 1
_CHECKSUM_BYTES: Final = 4
_FACTS: Final[tuple[Any, ...]] = (
    None,
    InvocationFacts,
    ToolFacts,
    ModelFacts,
    HandoffFacts,
    RejectionFacts,
    CompressionFacts,
)
_RESOURCE_AT: Final = AgentSpan._fields.index("resource")
_FACTS_AT: Final = AgentSpan._fields.index("facts")


class BadRecord(ValueError):
    """Error: bytes that are no run record, or one of another version. The message
    holds no content.
    """


class Damaged(Exception):
    """Error: stored bytes that differ from the bytes that were written."""


class RunRecord(NamedTuple):
    """One change of one run. Of two records of one run, the one with the greater `revision` (Unix
    nanoseconds) is current.
    """

    change: RunChange
    run: Run
    revision: int


# --- Run records: messages of Kafka ---------------------------------------------------------------


def write(record: RunRecord) -> bytes:
    """Return the record as bytes, after the version of its form.

    >>> from otel_reliability.testing import run
    >>> read(write(RunRecord(RunChange.CLOSED, run(["search"]), 1))).run.path
    ('search',)
    """
    return pack((VERSION, record._replace(run=without_hashes(record.run))))


def read(data: bytes) -> RunRecord:
    """Return the record that `write` returned as bytes. Raise `BadRecord`."""
    try:
        version, record = _decoded(_VERSIONED, _checked(data))
        if version != VERSION:
            raise BadRecord(
                f"a run record of version {version}; this service reads version {VERSION}"
            )
        return _decoded(RunRecord, record)
    except Damaged as error:
        raise BadRecord(f"no run record: {error}") from None


def without_hashes(run: Run) -> Run:
    """Return a run without the hashes of arguments and results.

    They stay in the process: retries and repeats are marked already. Hashes of effects are needed
    by the metrics.
    """
    if run.tool_calls is None:
        return run
    return run._replace(
        tool_calls=tuple([call._replace(arguments=None, result=None) for call in run.tool_calls])
    )


# --- Values, runs and spans -----------------------------------------------------------------------


def pack(value: Any) -> bytes:
    """Return plain values (None, booleans, numbers, texts, bytes, lists, tuples, dictionaries) or a
    run as bytes with a checksum.

    Text with lone surrogates and integers beyond 64 bits, which no encoder sends, are made valid.

    >>> unpack(pack([1, "two", None]))
    [1, 'two', None]
    """
    try:
        body = _encode(value)
    except (UnicodeEncodeError, OverflowError):
        body = _encode(_valid(value))
    return zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "big") + body


def unpack(data: bytes) -> Any:
    """Return the values that `pack` was given, with lists for tuples. Raise `Damaged`."""
    return _decoded(Any, _checked(data))


def agent_key(plain: Iterable[Any]) -> AgentKey:
    """Return an agent key from the list that `unpack` made of it."""
    return msgspec.convert(plain, AgentKey)


def evaluations_of(plain: Iterable[Any]) -> tuple[Evaluation, ...]:
    """Return evaluations from the lists that `unpack` made of them."""
    return tuple([msgspec.convert(one, Evaluation) for one in plain])


def unpack_run(data: bytes) -> Run:
    """Return the run that `pack` was given. Raise `Damaged`."""
    return _decoded(Run, _checked(data))


def pack_spans(spans: Iterable[AgentSpan]) -> bytes:
    """Return spans as bytes. Attributes of their resources are left out: what counts of them was
    read before.
    """
    resources: dict[tuple[str, ...], int] = {}
    rows: list[tuple[Any, ...]] = []
    for span in spans:
        at = resources.setdefault(_identity(span.resource), len(resources))
        facts = span.facts
        kind = 0 if facts is None else _FACTS.index(type(facts))
        rows.append((*span[:_FACTS_AT], (kind, facts), span.scope, at, *span[_RESOURCE_AT + 1 :]))
    return pack((list(resources), rows))


def unpack_spans(data: bytes) -> list[AgentSpan]:
    """Return the spans that `pack_spans` was given. Raise `Damaged`."""
    identities, rows = _decoded(_span_rows(), _checked(data))
    resources = [_resource(*each) for each in identities]
    try:
        return [_span(row, resources) for row in rows]
    except (msgspec.ValidationError, LookupError, TypeError) as error:
        raise Damaged(f"spans of another form ({type(error).__name__})") from None


def _identity(sender: Resource) -> tuple[str, ...]:
    """Return what is stored of a resource."""
    return (
        sender.service_namespace,
        sender.service_name,
        sender.environment,
        sender.service_version,
        sender.scope_version,
        *sender.attempt,
    )


def _resource(
    namespace: str, name: str, environment: str, version: str, scope_version: str, *attempt: str
) -> Resource:
    """Return the resource of an identity."""
    return Resource(namespace, name, environment, version, scope_version, attempt=attempt)


def _span(row: Any, resources: Sequence[Resource]) -> AgentSpan:
    fields: list[Any] = list(row)
    kind, facts = fields[_FACTS_AT]
    fields[_FACTS_AT] = None if facts is None else msgspec.convert(facts, _FACTS[kind])
    fields[_RESOURCE_AT] = resources[fields[_RESOURCE_AT]]
    return AgentSpan(*fields)


def _checked(data: bytes) -> memoryview:
    body = memoryview(data)[_CHECKSUM_BYTES:]
    if zlib.crc32(body) != int.from_bytes(data[:_CHECKSUM_BYTES], "big") or not body:
        raise Damaged("the checksum is wrong")
    return body


def _decoded(form: Any, body: memoryview | msgspec.Raw) -> Any:
    try:
        return _decoder(form).decode(body)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise Damaged(f"bytes of another form ({type(error).__name__})") from None


# --- How types are written ------------------------------------------------------------------------

_encode: Final = msgspec.msgpack.Encoder().encode
_decoder: Final = cache(msgspec.msgpack.Decoder[Any])
_VERSIONED: Final = tuple[int, msgspec.Raw]


@cache
def _span_rows() -> Any:
    """Spans as `pack_spans` wrote them: facts with their kind, resources by their position. Fields
    that have a default may be absent at the end.
    """
    hints = get_type_hints(AgentSpan) | {"facts": tuple[int, Any], "resource": int}
    row: Any = NamedTuple("SpanRow", list(hints.items()))
    row.__new__.__defaults__ = tuple(AgentSpan._field_defaults.values())
    row._field_defaults = AgentSpan._field_defaults
    return tuple[list[list[str]], list[row]]


def _valid(value: Any) -> Any:
    match value:
        case bool():
            return value
        case str():
            return value.encode("utf-8", "replace").decode("utf-8")
        case int():
            return max(-_MAX_INTEGER, min(_MAX_INTEGER, value))
        case dict():
            return {
                _valid(key): _valid(item) for key, item in cast("dict[Any, Any]", value).items()
            }
        case list() | tuple():
            return tuple([_valid(item) for item in cast("Iterable[Any]", value)])
        case _:
            return value
