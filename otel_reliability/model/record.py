"""Runs and spans as bytes: MessagePack with a checksum, in the state database and in messages of
Kafka.

Both are arrays of their fields, and the form follows from the annotations of the types: a new field
of a type, at its end and with a default, needs no change here, and bytes written without it are
read all the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final, Union, cast

import msgspec
from msgspec import Struct, defstruct
from msgspec.structs import asdict, fields, replace

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
_FACTS: Final = (
    type(None),
    InvocationFacts,
    ToolFacts,
    ModelFacts,
    HandoffFacts,
    RejectionFacts,
    CompressionFacts,
)
"""The types of facts. A number in what is stored says which: a new one goes to the end."""


class BadRecord(ValueError):
    """Error: bytes that are no run record, or one of another version. The message
    holds no content.
    """


class Damaged(Exception):
    """Error: stored bytes that differ from the bytes that were written."""


class RunRecord(Struct, frozen=True, array_like=True):
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
    return pack((VERSION, replace(record, run=without_hashes(record.run))))


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
    return replace(
        run,
        tool_calls=tuple([replace(call, arguments=None, result=None) for call in run.tool_calls]),
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
        body = _encode(_valid(msgspec.to_builtins(value, builtin_types=(bytes,))))
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
    stored: list[AgentSpan] = []
    numbered = _numbered_facts()
    for span in spans:
        at = resources.setdefault(_identity(span.resource), len(resources))
        facts = numbered[type(span.facts)](span.facts)
        stored.append(replace(span, facts=facts, resource=at))
    return pack((list(resources), stored))


def unpack_spans(data: bytes) -> list[AgentSpan]:
    """Return the spans that `pack_spans` was given. Raise `Damaged`."""
    identities, stored = _decoded(_stored_spans(), _checked(data))
    try:
        resources = [_resource(*each) for each in identities]
        return [_span(asdict(each), resources) for each in stored]
    except (LookupError, TypeError) as error:
        raise Damaged(f"spans of another form ({type(error).__name__})") from None


def _span(parts: dict[str, Any], resources: Sequence[Resource]) -> AgentSpan:
    parts["facts"] = parts["facts"].facts
    parts["resource"] = resources[parts["resource"]]
    return AgentSpan(**parts)


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
def _numbered_facts() -> Mapping[type, Any]:
    """Return by type what stands for facts in stored spans: their number in `_FACTS`, and they."""
    return {
        kind: defstruct("NumberedFacts", [("facts", kind)], array_like=True, tag=number)
        for number, kind in enumerate(_FACTS)
    }


@cache
def _stored_spans() -> Any:
    """Return the form of what `pack_spans` wrote: resources, and spans with numbered facts and the
    position of their resource. Fields that have a default may be absent at the end.
    """
    forms = {"facts": Union[tuple(_numbered_facts().values())], "resource": int}  # noqa: UP007
    stored = defstruct(
        "StoredSpan",
        [
            (field.name, forms.get(field.name, field.type))
            if field.required
            else (field.name, field.type, field.default)
            for field in fields(AgentSpan)
        ],
        array_like=True,
    )
    return tuple[list[list[str]], list[stored]]


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
