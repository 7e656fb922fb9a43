"""Requests that nobody in their right mind sends: mutations of sound ones, and things that only
look like requests.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Sequence
from copy import deepcopy
from random import Random
from typing import Any, Final, NamedTuple, cast

import zstandard

from otel_reliability.model.span import Evaluation
from otel_reliability.service.answers import Encoding, OtlpSignal
from otel_reliability.service.compression import DEFLATE, GZIP, ZSTD, ContentCoding
from otel_reliability.sources.otlp_write import logs_json, traces_json
from otel_reliability.testing import at, span, trace_id
from tests.otlp import logs_protobuf, traces_protobuf
from tests.service.running import run_of, runs_of
from tests.sources.strategies import wire


class Case(NamedTuple):
    """One request."""

    signal: OtlpSignal
    encoding: Encoding
    body: bytes
    compression: ContentCoding | None = None


EVALUATION: Final = Evaluation("correctness", 0.5, "pass", at(1), trace_id(5), None)
SPANS: Final = [
    *runs_of(3, ("search", "book"), "victim", first=500),
    span(
        7,
        1,
        trace=500,
        events=[("gen_ai.evaluation.result", {"gen_ai.evaluation.name": "x"})],
        links=[(1, 2)],
    ),
]
WEB: Final = [
    span(number, 1, trace=600, name="GET /", attributes={"http.route": "/"})
    for number in range(2, 9)
]
BODIES: Final[Sequence[tuple[OtlpSignal, bytes]]] = (
    (OtlpSignal.TRACES, traces_protobuf(SPANS)),
    (OtlpSignal.TRACES, traces_protobuf(WEB)),
    (OtlpSignal.TRACES, traces_protobuf(run_of(700))),
    (OtlpSignal.LOGS, logs_protobuf([EVALUATION])),
)
JSON_BODIES: Final[Sequence[tuple[OtlpSignal, Any]]] = (
    (OtlpSignal.TRACES, traces_json(SPANS)),
    (OtlpSignal.LOGS, logs_json([EVALUATION])),
)
JUNK: Final[Sequence[Any]] = (
    None,
    True,
    -1,
    1e308,
    2**64,
    "",
    "x" * 300,
    "\ud800",
    [],
    {},
    [[]],
    {"": None},
    "00" * 16,
    "zz",
    10**30,
    {"stringValue": 7},
    [{"key": 1}],
    "18446744073709551616",
    float("nan"),
    float("inf"),
)


def cases(seed: int, number: int) -> list[Case]:
    """So many requests; the same for the same seed."""
    random = Random(seed)
    return [random.choices(MAKERS, WEIGHTS)[0](random) for _ in range(number)]


def mutated(random: Random, body: bytes) -> bytes:
    """A few bytes changed, taken out, put in, moved or doubled, or the end cut off."""
    found = bytearray(body)
    for _ in range(random.randint(1, 6)):
        at, to = sorted((random.randrange(len(found) + 1), random.randrange(len(found) + 1)))
        match random.randrange(6):
            case 0 if found:
                found[random.randrange(len(found))] = random.randrange(256)
            case 1:
                del found[at : min(to, at + 30)]
            case 2:
                found[at:at] = random.randbytes(random.randint(1, 12))
            case 3:
                found[at:at] = found[at : min(to, at + 200)]
            case 4:
                found[at:at] = bytes([255] * random.randint(1, 10))
            case _:
                del found[to:]
    return bytes(found)


def _garbage(random: Random) -> Case:
    return Case(
        random.choice(list(OtlpSignal)),
        random.choice(list(Encoding)),
        random.randbytes(random.randrange(300)),
    )


def _mutated_protobuf(random: Random) -> Case:
    signal, body = random.choice(BODIES)
    return Case(signal, Encoding.PROTOBUF, mutated(random, body))


def _spliced(random: Random) -> Case:
    """The beginning of one request and the end of another, perhaps sent as the other signal."""
    (signal, one), (_, other) = random.choice(BODIES), random.choice(BODIES)
    body = one[: random.randrange(len(one))] + other[random.randrange(len(other)) :]
    return Case(
        random.choice([signal, OtlpSignal.LOGS, OtlpSignal.TRACES]), Encoding.PROTOBUF, body
    )


def _mutated_json(random: Random) -> Case:
    signal, request = random.choice(JSON_BODIES)
    return Case(signal, Encoding.JSON, mutated(random, json.dumps(request).encode()))


def _wrong_json(random: Random) -> Case:
    """Sound JSON in which some values are of a type or size that does not belong there."""
    signal, request = random.choice(JSON_BODIES)
    damaged = json.loads(json.dumps(request))
    for _ in range(random.randint(1, 4)):
        _spoil(random, damaged)
    return Case(signal, Encoding.JSON, json.dumps(damaged).encode())


def _spoil(random: Random, node: Any) -> None:
    while True:
        places: list[Any] = list(cast("Any", node) if isinstance(node, dict) else range(len(node)))
        if not places:
            return
        place = random.choice(places)
        inner = cast("Any", node)[place]
        if isinstance(inner, dict | list) and inner and random.random() < 0.85:
            node = cast("Any", inner)
            continue
        node[place] = deepcopy(random.choice(JUNK))
        return


def _deep(random: Random) -> Case:
    """Nested far deeper than anybody's stack."""
    depth = random.choice([50, 500, 5_000, 100_000])
    if random.random() < 0.5:
        opening, closing = random.choice(
            [(b"[", b"]"), (b'{"a":', b"}"), (b'{"arrayValue":{"values":[', b"]}}")]
        )
        whole = opening * depth + (b"1" if opening != b"[" else b"") + closing * depth
        body = (
            b'{"resourceSpans":[{"resource":{"attributes":[{"key":"a","value":' + whole + b"}]}}]}"
        )
        return Case(OtlpSignal.TRACES, Encoding.JSON, random.choice([whole, body]))
    nested = b""
    for _ in range(min(depth, 500)):
        nested = wire(5, wire(1, nested))
    resource = wire(1, wire(1, b"a") + wire(2, nested))
    return Case(OtlpSignal.TRACES, Encoding.PROTOBUF, wire(1, wire(1, resource)))


COMPRESSIONS: Final[Sequence[tuple[ContentCoding, Callable[[bytes], bytes]]]] = (
    (GZIP, gzip.compress),
    (DEFLATE, zlib.compress),
    (ZSTD, zstandard.compress),
)


def _packed(random: Random) -> Case:
    """Compressed: sound, damaged, cut off, a bomb, or something else under its name."""
    case = random.choice([_mutated_protobuf, _wrong_json, _garbage])(random)
    compression, compress = random.choice(COMPRESSIONS)
    match random.randrange(5):
        case 0:
            body = compress(case.body)
        case 1:
            body = mutated(random, compress(case.body))
        case 2:
            body = compress(bytes(random.choice([100_000, 3_000_000])))
        case 3:
            body = compress(case.body) * random.randint(2, 80)
        case _:
            body = case.body
    return case._replace(body=body, compression=compression)


def _swarm(random: Random) -> Case:
    """Very many very small parts: an empty message takes two bytes on the wire and hundreds in
    memory.
    """
    number = random.choice([1_000, 30_000])
    level = random.randrange(3)
    body = b"\x12\x00" * number
    for _ in range(level):
        body = wire(2, body)
    return Case(OtlpSignal.TRACES, Encoding.PROTOBUF, wire(1, body))


MAKERS: Final[Sequence[Callable[[Random], Case]]] = (
    _mutated_protobuf,
    _spliced,
    _mutated_json,
    _wrong_json,
    _garbage,
    _packed,
    _deep,
    _swarm,
)
WEIGHTS: Final = (40, 15, 12, 15, 8, 8, 1, 1)
