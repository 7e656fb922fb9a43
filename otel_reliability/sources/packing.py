"""Packed bytes → unpacked ones, in bounded memory: gzip members, zstd frames, and the Collector's packed messages.

Data that ends in the middle raises EOFError, other damage what the unpacker raises; what came before was given out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

PACKED_CHUNK: Final = 1024
"""What is unpacked at once. It bounds the memory, also for a file made to explode: 1 000 times in gzip, 32 000 in zstd."""

_CHECKSUM_BYTES: Final = 8
_SIZE_BYTES: Final = 4


class Frame(Protocol):
    """One gzip member or zstd frame being unpacked: what `zlib` and `zstandard` have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


def unpack(pieces: Iterable[bytes], new: Callable[[], Frame]) -> Iterator[bytes]:
    """Frame after frame. Zero bytes between them are padding."""
    frame, begun = new(), False
    for piece in _split(pieces):
        rest = piece if begun else piece.lstrip(b"\0")
        while rest:
            yield frame.decompress(rest)
            begun = not frame.eof
            rest = frame.unused_data.lstrip(b"\0") if frame.eof else b""
            frame = frame if begun else new()
    if begun:
        raise EOFError


def unpack_messages(pieces: Iterable[bytes], new: Callable[[], Frame]) -> Iterator[bytes]:
    """Messages packed one by one, each after its size in four bytes, as lines.

    So the Collector's file exporter writes with `compression: zstd` (unless its gate `exporter.file.nativeCompression` is
    on): such a file is not one that zstd itself would unpack.
    """
    source = _Source(pieces)
    while size := source.take(_SIZE_BYTES):
        if len(size) < _SIZE_BYTES:
            raise EOFError
        yield from _message(source, int.from_bytes(size), new())
        yield b"\n"


def _message(source: _Source, size: int, frame: Frame) -> Iterator[bytes]:
    while size:
        piece = source.take(min(size, PACKED_CHUNK))
        size -= len(piece)
        if not piece:
            raise EOFError
        yield frame.decompress(piece)
    if not frame.eof:
        raise EOFError


class _Source:
    """Bytes to be taken in any number, however they come."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._held, self._at = b"", 0

    def take(self, size: int) -> bytes:
        """As many bytes, or what is left of them."""
        while len(self._held) < self._at + size and (piece := next(self._pieces, b"")):
            self._held, self._at = self._held[self._at :] + piece, 0
        self._at += size
        return self._held[self._at - size : self._at]


def _split(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Smaller pieces, the last bytes one by one: a wrong checksum, which stands there, then costs no data before it."""
    kept = b""
    for piece in pieces:
        data = kept + piece
        end = len(data) - _CHECKSUM_BYTES
        yield from (data[at : min(at + PACKED_CHUNK, end)] for at in range(0, end, PACKED_CHUNK))
        kept = data[-_CHECKSUM_BYTES:]
    yield from (kept[at : at + 1] for at in range(len(kept)))
