"""Compressed bodies: gzip, zlib's deflate and zstd → the bytes, in bounded memory.

A body is fed to its decompressor in pieces so small that what one piece becomes is bounded, so a
guard that counts the bytes stops in time. Sources: RFC 9110 §8.4.1 (content codings; `x-gzip` is
gzip), RFC 1950, RFC 1952, RFC 8878.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import zstandard

from otel_reliability.service.answers import Problem, Refused

MAX_MEMBERS: Final = 64
"""Members that one body may have. Encoders write one; a million empty ones would only cost time."""
MAX_WINDOW_BYTES: Final = 32 * 1024 * 1024
"""Memory that a zstd body may ask for. Encoders at their highest level use it."""

_GZIP_FIRST: Final = b"\x1f\x8b"
"""First bytes of gzip; in protobuf they would be a field of an unknown wire type."""
_ZLIB_FIRST: Final = b"\x78"
"""First byte of zlib's format with a window of 32 KB, which gRPC writes."""
_GZIP_BITS: Final = 16 + zlib.MAX_WBITS
_ZLIB_METHOD: Final = 8
_ZLIB_CHECK: Final = 31


class ContentCoding(NamedTuple):
    """A content coding. `new` makes a decompressor for a body, and `piece` bytes of it become at
    most some 8 MB.
    """

    name: str
    new: Callable[[bytes], Any]
    piece: int


def _gzip(_: bytes) -> Any:
    return zlib.decompressobj(_GZIP_BITS)


def _deflate(body: bytes) -> Any:
    """Return a decompressor for zlib's format, or for bare deflate, which some clients send."""
    return zlib.decompressobj(zlib.MAX_WBITS if _has_zlib_head(body) else -zlib.MAX_WBITS)


def _has_zlib_head(body: bytes) -> bool:
    return (
        len(body) > 1
        and body[0] & 0x0F == _ZLIB_METHOD
        and int.from_bytes(body[:2]) % _ZLIB_CHECK == 0
    )


def _zstd(_: bytes) -> Any:
    return zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES).decompressobj()


GZIP: Final = ContentCoding("gzip", _gzip, 2 * 1024)
DEFLATE: Final = ContentCoding("deflate", _deflate, 2 * 1024)
ZSTD: Final = ContentCoding("zstd", _zstd, 256)
CODINGS: Final[Mapping[str, ContentCoding | None]] = {
    "": None,
    "identity": None,
    "gzip": GZIP,
    "x-gzip": GZIP,
    "deflate": DEFLATE,
    "zstd": ZSTD,
}
"""Values of `Content-Encoding` → what they name."""


def compression_of(message: bytes) -> ContentCoding | None:
    r"""Return how a message of gRPC is compressed, which does not say so where it is read. No
    request in protobuf begins as these do.

    >>> compression_of(zlib.compress(b"a request")).name, compression_of(b"\n\x02")
    ('deflate', None)
    """
    if message.startswith(_GZIP_FIRST):
        return GZIP
    return DEFLATE if message.startswith(_ZLIB_FIRST) and _has_zlib_head(message) else None


def inflate(
    body: bytes,
    compression: ContentCoding,
    limit: int,
    grow: Callable[[int], None] = lambda size: None,
) -> bytes:
    """Return the decompressed data of one or more members. `grow` gets the size of each part.

    Raises `Refused`: TOO_LARGE beyond `limit`, UNDECODABLE for what is damaged, cut off or
    compressed in another way.

    >>> import gzip
    >>> inflate(gzip.compress(b"one") + gzip.compress(b"two"), GZIP, 100)
    b'onetwo'
    """
    parts: list[bytes] = []
    left = limit
    try:
        for part in _parts(body, compression):
            left -= len(part)
            if left < 0:
                raise Refused(
                    Problem.TOO_LARGE,
                    "too_large",
                    f"the body decompresses to more than {limit} bytes",
                )
            grow(len(part))
            parts.append(part)
    except (zlib.error, zstandard.ZstdError) as error:
        name = compression.name
        raise Refused(Problem.UNDECODABLE, name, f"the body is not valid {name}: {error}") from None
    return b"".join(parts)


def _parts(body: bytes, compression: ContentCoding) -> Iterator[bytes]:
    """Yield the decompressed data in parts of a bounded size, each decompressed when it is asked
    for. Raise the library's error.
    """
    member = compression.new(body)
    members = 1
    for start in range(0, len(body), compression.piece):
        rest = body[start : start + compression.piece]
        while rest:
            if member.eof:
                member = compression.new(rest)
                members += 1
            if members > MAX_MEMBERS:
                raise zlib.error(f"it has more than {MAX_MEMBERS} members")
            yield member.decompress(rest)
            rest = member.unused_data if member.eof else b""
    if body and not member.eof:
        raise zlib.error("it is cut off")
