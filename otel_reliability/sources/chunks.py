"""A file, a pipe or standard input → its bytes, decompressed in bounded memory, piece by piece. The
format is read from its first bytes, never from its name.

Damage raises nothing: reading ends there, `Chunks.damage` says how, and what came before is kept.
"""

from __future__ import annotations

import codecs
import importlib
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Any, Final, cast

from otel_reliability.errors import SourceError
from otel_reliability.sources.batch import Malformed, Reason
from otel_reliability.sources.lines import LONGEST

# --- Compressed data ------------------------------------------------------------------------------


PACKED_CHUNK: Final = 1024
"""Bytes that are unpacked at once. It bounds the memory, also for a file made to explode: 1 000
times in gzip, 32 000 in zstd.
"""

_CHECKSUM_BYTES: Final = 8
_SIZE_BYTES: Final = 4
_PROTOBUF: Final = b"\n"
"""The first byte of a request: its field 1, of variable length."""


def unpack(pieces: Iterable[bytes], new: Callable[[], Any]) -> Iterator[bytes]:
    """Frame after frame: `new` makes a decompressor object of `zlib` or `zstandard`. Zero bytes
    between frames are padding.
    """
    frame = new()
    begun = False
    for piece in _split(pieces):
        rest = piece if begun else piece.lstrip(b"\0")
        while rest:
            yield frame.decompress(rest)
            begun = not frame.eof
            rest = frame.unused_data.lstrip(b"\0") if frame.eof else b""
            frame = frame if begun else new()
    if begun:
        raise EOFError


def unpack_messages(pieces: Iterable[bytes], new: Callable[[], Any]) -> Iterator[bytes]:
    """Messages packed one by one, each after its size in four bytes: JSON as lines, protobuf after
    its unpacked size, as it is written without compression.

    So the Collector's file exporter writes with `compression: zstd` (unless its gate
    `exporter.file.nativeCompression` is on): such a file is not one that zstd itself would unpack.
    """
    source = _Source(pieces)
    while size := source.take(_SIZE_BYTES):
        if len(size) < _SIZE_BYTES:
            raise EOFError
        parts = _message(source, int.from_bytes(size), new())
        first = head_of(1, parts)
        if first.startswith(_PROTOBUF):
            message = _within(LONGEST, first, parts)
            yield len(message).to_bytes(_SIZE_BYTES) + message
        else:
            yield first
            yield from parts
            yield b"\n"


def _within(bound: int, first: bytes, parts: Iterator[bytes]) -> bytes:
    """The parts, joined; of more than the bound only so much as shows it: the reader refuses it."""
    held = bytearray(first)
    for part in parts:
        if len(held) <= bound:
            held += part
    return bytes(held)


def _message(source: _Source, size: int, frame: Any) -> Iterator[bytes]:
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
        self._held = b""
        self._at = 0

    def take(self, size: int) -> bytes:
        """As many bytes, or what is left of them."""
        while len(self._held) < self._at + size and (piece := next(self._pieces, b"")):
            self._held = self._held[self._at :] + piece
            self._at = 0
        self._at += size
        return self._held[self._at - size : self._at]


def _split(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Smaller pieces, the last bytes one by one: a wrong checksum, which stands there, then costs
    no data before it.
    """
    kept = b""
    for piece in pieces:
        data = kept + piece
        end = len(data) - _CHECKSUM_BYTES
        yield from (data[at : min(at + PACKED_CHUNK, end)] for at in range(0, end, PACKED_CHUNK))
        kept = data[-_CHECKSUM_BYTES:]
    yield from (kept[at : at + 1] for at in range(len(kept)))


# --- Inputs ---------------------------------------------------------------------------------------


Progress = Callable[[int, int | None], None]
"""Called with the bytes read so far, as they lie on disk, and all there are (None for a pipe)."""

STDIN: Final = "-"
CHUNK: Final = 256 * 1024

_HEAD_BYTES: Final = 8
_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_WINDOW: Final = 31
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
"""Begin what a shell of Windows writes."""
_UTF8_MARK: Final = b"\xef\xbb\xbf"
_KEPT: Final = "what came before it was read"


class Chunks:
    """The unpacked bytes of one input, to be iterated once. `damage` is set where they ended before
    they should. `read` counts the bytes as they lie on disk; with a `size` it ends after so many:
    what is added to a file while it is read is left for the next time.

    Raises `SourceError` where there is nothing to read, or nothing here that could unpack it.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        progress: Progress | None = None,
        size: int | None = None,
    ) -> None:
        self.name = os.fspath(path)
        self.damage: Malformed | None = None
        self.read = 0
        self._progress = progress
        self._size = size

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._unpacked(self._pieces())
        except OSError as error:
            self._end(Reason.TRUNCATED, f"reading failed here ({error.strerror}); {_KEPT}")

    def _pieces(self) -> Iterator[bytes]:
        """The bytes as they lie on disk, or in an archive; `progress` is called with each piece."""
        with _open(self.name) as file:
            total = _size(file) if self._size is None else self._size
            while piece := file.read1(
                CHUNK if self._size is None else min(CHUNK, self._size - self.read)
            ):
                self.read += len(piece)
                if self._progress:
                    self._progress(self.read, total)
                yield piece

    def _unpacked(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        head = head_of(_HEAD_BYTES, pieces)
        rest = pieces
        pieces = chain((head,), rest)
        if head.startswith(_GZIP_MAGIC):
            return self._packed(
                "gzip", unpack(pieces, lambda: zlib.decompressobj(_GZIP_WINDOW)), zlib.error
            )
        if _ZSTD_MAGIC in (head[:4], head[4:8]):
            zstandard = self._zstandard()
            read = unpack if head.startswith(_ZSTD_MAGIC) else unpack_messages
            frames = read(pieces, zstandard.ZstdDecompressor().decompressobj)
            return self._packed("zstd", frames, zstandard.ZstdError)
        if head.startswith(_UTF16_MARKS):
            return _in_utf8(pieces)
        return chain((head.removeprefix(_UTF8_MARK),), rest)

    def _packed(
        self, packing: str, unpacked: Iterator[bytes], broken: type[Exception]
    ) -> Iterator[bytes]:
        try:
            yield from unpacked
        except EOFError:
            self._end(Reason.TRUNCATED, f"the {packing} data ends in the middle; {_KEPT}")
        except broken:
            self._end(Reason.COMPRESSION, f"the {packing} data is damaged here; {_KEPT}")

    def _zstandard(self) -> Any:
        try:
            return importlib.import_module("zstandard")
        except ImportError:
            raise SourceError(
                f"{self.name}: 'zstd' is not a packing that this installation reads; "
                "install otel-reliability[zstd], or unpack the file first."
            ) from None

    def _end(self, reason: Reason, detail: str) -> None:
        self.damage = Malformed(reason, detail)


class MemberChunks(Chunks):
    """The unpacked bytes of a file in an archive, which may be compressed by itself."""

    def __init__(self, name: str, file: Any) -> None:
        super().__init__(name)
        self._file = file

    def _pieces(self) -> Iterator[bytes]:
        return iter(lambda: self._file.read(CHUNK), b"")


def _in_utf8(pieces: Iterable[bytes]) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    for piece in pieces:
        yield decoder.decode(piece).encode()
    yield decoder.decode(b"", final=True).encode()


def head_of(size: int, pieces: Iterator[bytes]) -> bytes:
    """The first pieces, joined, until there are that many bytes: a pipe may give them
    one by one.
    """
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= size:
            break
    return head


def _open(name: str) -> AbstractContextManager[BufferedReader]:
    if name == STDIN:
        return nullcontext(cast("BufferedReader", sys.stdin.buffer))  # not ours to close
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise SourceError(
            f"{name}: cannot be read ({error.strerror}); give a file of OTLP-JSON lines, or -."
        ) from error


def _size(file: BufferedReader) -> int | None:
    try:
        return os.fstat(file.fileno()).st_size or None
    except OSError:
        return None
