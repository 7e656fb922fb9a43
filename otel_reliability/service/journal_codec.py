"""A request as bytes: what a journal keeps of it, and gives back equal.

One byte of version, a checksum, and the request as nested plain values in Python's own `marshal` form, whose format 4 every
supported Python reads. The checksum stands first, so that damaged bytes are never unpacked. Attributes of resources are
left out: whatever of them counts was read when the request came in. Nothing else of a request is text of its content.
"""

from __future__ import annotations

import marshal
import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from otel_reliability.model import record
from otel_reliability.model.span import (
    AgentSpan,
    Call,
    Evaluation,
    Facts,
    HandoffFacts,
    InvocationFacts,
    Kind,
    ModelFacts,
    Notes,
    Resource,
    Session,
    Tokens,
    ToolFacts,
)
from otel_reliability.service.decoded import Decoded

VERSION: Final = 8
"""Raised when a reader of the version before could no longer understand an entry. Versions differ in more than one bit."""
_MARSHAL: Final = 4
_LEVEL: Final = 1
_HEAD: Final = struct.Struct("<BI")

Plain = Any
"""Nested tuples, lists and dictionaries of None, booleans, numbers, texts and bytes."""
T = TypeVar("T")
_Identities: TypeAlias = dict[Any, tuple[Plain, ...]]
_Resources: TypeAlias = dict[tuple[Plain, ...], Resource]


class Damaged(Exception):
    """Bytes that are not what was written."""


def pack(value: Plain) -> bytes:
    """Plain values as checked bytes."""
    return _sealed(marshal.dumps(value, _MARSHAL))


def press(value: Plain) -> bytes:
    """The same in fewer bytes, for what is written seldom."""
    return _sealed(zlib.compress(marshal.dumps(value, _MARSHAL), _LEVEL))


def _sealed(body: bytes) -> bytes:
    return _HEAD.pack(VERSION, zlib.crc32(body)) + body


def unpack(data: bytes) -> Plain:
    """The values that `pack` was given. Raises `Damaged`.

    >>> unpack(pack((1, "two", None)))
    (1, 'two', None)
    """
    return marshal.loads(check(data))  # noqa: S302 (the checksum says that we wrote it)


def unpress(data: bytes) -> Plain:
    """The values that `press` was given. Raises `Damaged`.

    >>> unpress(press((1, "two", None)))
    (1, 'two', None)
    """
    return marshal.loads(zlib.decompress(check(data)))  # noqa: S302 (as above)


def check(data: bytes) -> memoryview:
    """The body of checked bytes. Raises `Damaged`."""
    if len(data) < _HEAD.size:
        raise Damaged("an entry is cut off")
    version, checksum = _HEAD.unpack_from(data)
    body = memoryview(data)[_HEAD.size :]
    if version != VERSION:
        raise Damaged(f"an entry of version {version}; this service reads version {VERSION}")
    if zlib.crc32(body) != checksum:
        raise Damaged("the checksum of an entry is wrong")
    return body


def write(request: Decoded) -> bytes:
    """A request as bytes."""
    return pack(
        (
            _write_spans(request.spans, {}),
            [tuple(one) for one in request.evaluations],
            [record.write(one) for one in request.records],
            dict(request.malformed),
            request.other_logs,
        )
    )


def read(data: bytes) -> Decoded:
    """The request that `write` was given. Raises `Damaged`."""
    spans, evaluations, records, malformed, other_logs = unpack(data)
    return Decoded(
        _read_spans(spans, {}),
        tuple(Evaluation(*one) for one in evaluations),
        tuple(record.read(one) for one in records),
        malformed,
        other_logs=other_logs,
    )


def _write_spans(spans: Sequence[AgentSpan], resources: _Identities) -> Plain:
    return [_write_span(span, resources) for span in spans]


def _read_spans(raw: Plain, resources: _Resources) -> Sequence[AgentSpan]:
    return tuple([_read_span(span, resources) for span in raw])


def _resource(identity: tuple[Plain, ...], resources: _Resources) -> Resource:
    found = resources.get(identity)
    if found is None:
        found = resources[identity] = Resource(*identity)
    return found


def _write_span(span: AgentSpan, resources: _Identities) -> Plain:
    identity = span.resource[:3]
    return (
        *span[:7],
        _NUMBERS[span.kind],
        span.failed,
        None if span.facts is None else _write_facts(span.facts),
        span.scope,
        resources.setdefault(identity, identity),
        _bare(span.session),
        _bare(span.notes),
        tuple([tuple(one) for one in span.evaluations]),
        span.link,
        span.threshold,
        span.extra,
    )


def _read_span(raw: Plain, resources: _Resources) -> AgentSpan:
    values = list(raw)
    values[7] = _KINDS[raw[7]]
    values[9] = None if raw[9] is None else _read_facts(raw[9])
    values[11] = _resource(raw[11], resources)
    values[12] = _made(Session, raw[12])
    values[13] = _made(Notes, raw[13])
    values[14] = tuple([Evaluation(*one) for one in raw[14]])
    return AgentSpan(*values)


_KINDS: Final = tuple(Kind)
_NUMBERS: Final = {kind: number for number, kind in enumerate(_KINDS)}


def _write_facts(facts: Facts) -> Plain:
    match facts:
        case InvocationFacts():
            return 0, *facts[:4], _bare(facts.tokens), *facts[5:7], _bare(facts.call), *facts[8:]
        case ToolFacts():
            return (1, _calls(facts.calls), facts.finish)
        case ModelFacts():
            return (2, *facts._replace(tokens=_bare(facts.tokens), calls=_calls(facts.calls)))
        case HandoffFacts():
            return (3, facts.target)


def _read_facts(raw: Plain) -> Facts:
    kind, *fields = raw
    match kind:
        case 0:
            facts = InvocationFacts(*fields)
            return facts._replace(tokens=_made(Tokens, facts.tokens), call=_made(Call, facts.call))
        case 1:
            return ToolFacts(_read_calls(fields[0]), fields[1])
        case 2:
            model = ModelFacts(*fields)
            return model._replace(tokens=Tokens(*model.tokens), calls=_read_calls(model.calls))
        case _:
            return HandoffFacts(*fields)


def _calls(calls: Iterable[Call]) -> Plain:
    return tuple([tuple(call) for call in calls])


def _read_calls(raw: Iterable[Plain]) -> tuple[Call, ...]:
    return tuple([Call(*call) for call in raw])


def _bare(value: tuple[Any, ...] | None) -> Any:
    """A named tuple without its name."""
    return None if value is None else tuple(value)


def _made(kind: type[T], raw: Any) -> T | None:
    return None if raw is None else kind(*raw)
