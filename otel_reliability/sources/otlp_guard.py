"""A guard before the OTLP decoders: refuses large requests that would unpack to far more memory than they have bytes.

An empty message takes two bytes on the wire and hundreds in memory, so a request within the size limit can still be a bomb:
4 MB of empty spans took 650 MB. What is sound cannot be that small. Only requests beyond `LARGE` are checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from otel_reliability.errors import UndecodableBody

LARGE: Final = 1024 * 1024
"""Bytes from which a request, and from which a single span, is looked into; the largest resource, too."""
LEAST_SPAN: Final = 40
"""Bytes a span has at least, on average: sound ids and times alone take 44."""
MOST_FIELDS: Final = 100_000
"""Attributes, events and links that one large span may have."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIZES: Final = {_VARINT: 0, _FIXED64: 8, _FIXED32: 4}
_INSIDE: Final = {"request": (1, "resource"), "resource": (2, "scope"), "scope": (2, "span")}
"""Which field of a message holds the messages of the next level."""


def check(body: bytes) -> None:
    """Raises `UndecodableBody` for a large request of too many, or too full, parts. What is no protobuf
    passes: the decoders refuse it.

    >>> check(b"anything small")
    """
    if len(body) > LARGE and _parts(body, 0, len(body), "request") > len(body) // LEAST_SPAN:
        raise UndecodableBody(f"a request of {len(body)} bytes with more spans than could be sound in it")


def _parts(body: bytes, at: int, end: int, level: str) -> int:
    """Return how many messages there are at this level and below, spans the last. A large one that is none of them is refused."""
    wanted, below = _INSIDE[level]
    parts = 0
    for number, start, stop in _fields(body, at, end):
        parts += 1
        if number == wanted and below != "span":
            parts += _parts(body, start, stop, below)
        elif stop - start > LARGE:
            _check_large(body, start, stop, below if number == wanted else "")
    return parts


def _check_large(body: bytes, start: int, end: int, level: str) -> None:
    if level != "span":
        raise UndecodableBody(f"a resource or scope of {end - start} bytes")
    if any(count >= MOST_FIELDS for count, _ in enumerate(_fields(body, start, end))):
        raise UndecodableBody(f"a span of more than {MOST_FIELDS} attributes, events and links")


def _fields(body: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Number, start and end of each field between two places, as far as they can be made out."""
    while at < end:
        tag, at = (body[at], at + 1) if body[at] < 128 else _varint(body, at)
        kind, size = tag & 7, 0
        if kind in (_VARINT, _BYTES) and at < end:
            size, at = (body[at], at + 1) if body[at] < 128 else _varint(body, at)
        stop = at + (size if kind == _BYTES else _SIZES.get(kind, end))
        yield tag >> 3, at, min(stop, end)
        at = stop


def _varint(body: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends: after ten bytes at most, since longer ones are no protobuf."""
    value = shift = 0
    while at < len(body) and shift < 70:
        byte = body[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
    return value, at
