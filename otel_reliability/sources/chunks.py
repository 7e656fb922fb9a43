"""A file, a pipe or standard input → its bytes, unpacked, piece by piece. What it is packed with is read from its first
bytes, never from its name.

Damage raises nothing: reading ends there, `Chunks.damage` says how, and what came before is kept.
"""

from __future__ import annotations

import importlib
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from io import BufferedReader
from pathlib import Path
from typing import Any, Final, cast

from otel_reliability.errors import SourceError
from otel_reliability.sources.batch import Malformed, Reason
from otel_reliability.sources.packing import unpack, unpack_messages

Progress = Callable[[int, int | None], None]
"""Called with the bytes read so far, as they lie on disk, and all there are (None for a pipe)."""

STDIN: Final = "-"
CHUNK: Final = 256 * 1024

_HEAD_BYTES: Final = 8
_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_WINDOW: Final = 31
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
_KEPT: Final = "what came before it was read"


class Chunks:
    """The unpacked bytes of one input, to be iterated once. `damage` is set where they ended before they should. With a `size`
    it ends after so many bytes, as they lie on disk: what is added to a file while it is read is left for the next time.

    Raises `SourceError` where there is nothing to read, or nothing here that could unpack it.
    """

    def __init__(self, path: str | os.PathLike[str], progress: Progress | None = None, size: int | None = None) -> None:
        self.name = os.fspath(path)
        self._size = size
        self.damage: Malformed | None = None
        self._progress = progress

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._unpacked(_pieces(self.name, self._progress, self._size))
        except OSError as error:
            self._end(Reason.TRUNCATED, f"reading failed here ({error.strerror}); {_KEPT}")

    def _unpacked(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        head = _at_least(_HEAD_BYTES, pieces)
        pieces = _with(head, pieces)
        if head.startswith(_GZIP_MAGIC):
            return self._packed("gzip", unpack(pieces, lambda: zlib.decompressobj(_GZIP_WINDOW)), zlib.error)
        if _ZSTD_MAGIC in (head[:4], head[4:8]):
            zstandard = self._zstandard()
            read = unpack if head.startswith(_ZSTD_MAGIC) else unpack_messages
            frames = read(pieces, zstandard.ZstdDecompressor().decompressobj)
            return self._packed("zstd", frames, zstandard.ZstdError)
        if head.startswith(_UTF16_MARKS):
            self._end(Reason.ENCODING, "the file is UTF-16; write it as UTF-8")
            return iter(())
        return pieces

    def _packed(self, packing: str, unpacked: Iterator[bytes], broken: type[Exception]) -> Iterator[bytes]:
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


def _at_least(size: int, pieces: Iterator[bytes]) -> bytes:
    """The first pieces, joined, until there are that many bytes: a pipe may give them one by one."""
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= size:
            break
    return head


def _with(head: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield head
    yield from pieces


def _pieces(name: str, progress: Progress | None, size: int | None) -> Iterator[bytes]:
    """The bytes as they lie on disk; `progress` is called with each piece."""
    read = 0
    with _open(name) as file:
        total = _size(file) if size is None else size
        while piece := file.read1(CHUNK if size is None else min(CHUNK, size - read)):
            read += len(piece)
            if progress:
                progress(read, total)
            yield piece


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
