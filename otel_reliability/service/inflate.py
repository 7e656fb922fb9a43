"""Unpack gzip up to a bound: a small request may unpack to a thousand times its size."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Final

from otel_reliability.service.refusal import Problem, Refused

MAGIC: Final = b"\x1f\x8b"
"""What gzip begins with; no OTLP message in protobuf does (it would be a field of an unknown wire type)."""
MOST_MEMBERS: Final = 64
"""Members that one body may have. Encoders write one; a million empty ones would only cost time."""
_GZIP: Final = 16 + zlib.MAX_WBITS
_IN: Final = 64 * 1024
_OUT: Final = 1024 * 1024


def inflate(packed: bytes, limit: int, grow: Callable[[int], None] = lambda size: None) -> bytes:
    """What was packed, in one or more gzip members. `grow` is told each part's size before the next is unpacked.

    Raises `Refused`: TOO_LARGE beyond `limit`, UNDECODABLE for what is damaged, cut off or no gzip.

    >>> import gzip
    >>> inflate(gzip.compress(b"one") + gzip.compress(b"two"), 100)
    b'onetwo'
    """
    parts: list[bytes] = []
    left = limit
    for part in _parts(packed):
        left -= len(part)
        if left < 0:
            raise Refused(Problem.TOO_LARGE, "too_large", f"the body unpacks to more than {limit} bytes")
        grow(len(part))
        parts.append(part)
    return b"".join(parts)


def _parts(packed: bytes) -> Iterator[bytes]:
    """What was packed, in parts of a bounded size, the next unpacked when it is asked for."""
    members, member = 0, None
    for start in range(0, len(packed), _IN):
        rest = packed[start : start + _IN]
        while rest:
            if member is None:
                members += 1
                member = _member(members)
            part = _part(member, rest)
            if part:
                yield part
            rest = member.unused_data if member.eof else member.unconsumed_tail
            if member.eof:
                member = None
    if member is not None:
        raise _damaged("it is cut off")


def _member(number: int) -> zlib._Decompress:
    if number > MOST_MEMBERS:
        raise _damaged(f"it has more than {MOST_MEMBERS} members")
    return zlib.decompressobj(_GZIP)


def _part(member: zlib._Decompress, rest: bytes) -> bytes:
    try:
        return member.decompress(rest, _OUT)
    except zlib.error:
        raise _damaged("it is damaged") from None


def _damaged(how: str) -> Refused:
    return Refused(Problem.UNDECODABLE, "gzip", f"the body is said to be gzip, but {how}")
