"""First bytes of connections that are no request: mutations of HTTP/1.1 and of gRPC's HTTP/2, and
things that look like neither. Each holds a canary, which no log may show.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from tests.service.hostile import mutated
from tests.service.running import EXPORT_TRACES, HEALTH

CANARY: Final = "sk-live-canary"
_C: Final = CANARY.encode()

_HTTP: Final[Sequence[bytes]] = (
    b"GET /" + _C + b" HTTP/1.1\r\nHost: " + _C + b"\r\nAuthorization: Bearer " + _C + b"\r\n\r\n",
    b"POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    b"Content-Length: 30\r\n\r\n" + b'{"' + _C + b'": "' + _C,
    b"POST /v1/logs HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nX: " + _C + b"\r\n\r\n"
    b"f\r\n" + _C + b"\r\n0\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _C,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + _C,
    _C + b" / HTTP/1.1\r\n\r\n",
)
_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_SETTINGS: Final = 4
_HEADERS: Final = 1
_DATA: Final = 0
_END_STREAM: Final = 1
_END_HEADERS: Final = 4


def openings(seed: int, number: int) -> list[tuple[str, bytes]]:
    """Return so many openings, the same for the same seed, each with the endpoint it goes to."""
    random = Random(seed)
    return [random.choice(_MAKERS)(random) for _ in range(number)]


def _http(random: Random) -> tuple[str, bytes]:
    opening = random.choice(_HTTP)
    return "http", mutated(random, opening) if random.random() < 0.8 else opening


def _grpc(random: Random) -> tuple[str, bytes]:
    """HTTP/2 with some header or frame that is not right."""
    headers = {
        b":method": b"POST",
        b":scheme": b"http",
        b":authority": b"a",
        b":path": random.choice((EXPORT_TRACES, HEALTH, f"/{CANARY}/Export")).encode(),
        b"te": b"trailers",
        b"content-type": b"application/grpc",
        b"authorization": b"Bearer " + _C,
    }
    name = random.choice((*headers, *_GRPC_HEADERS))
    headers[name] = random.choice((_C, b"", b"\xff" + _C, b"1" * 40))
    block = b"".join(map(_literal, headers, headers.values()))
    message = struct.pack(">BI", random.choice((0, 1, 7)), random.choice((0, 14, 2**31))) + _C
    frames = (
        _frame(_SETTINGS, 0, 0, b"")
        + _frame(_HEADERS, _END_HEADERS, 1, block)
        + _frame(random.choice((_DATA, 9, 200)), _END_STREAM, 1, message)
    )
    damaged = mutated(random, frames) if random.random() < 0.4 else frames
    return "grpc", _PREFACE + damaged


def _garbage(random: Random) -> tuple[str, bytes]:
    return random.choice(("http", "grpc")), random.randbytes(random.randrange(200)) + _C


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _literal(name: bytes, value: bytes) -> bytes:
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


_GRPC_HEADERS: Final = (
    b"grpc-encoding",
    b"grpc-timeout",
    b"grpc-status",
    b"grpc-accept-encoding",
    b"canary-bin",
    _C,
    _C.upper(),
    b"content-length",
)
_MAKERS: Final[Sequence[Callable[[Random], tuple[str, bytes]]]] = (
    _http,
    _http,
    _grpc,
    _grpc,
    _garbage,
)
