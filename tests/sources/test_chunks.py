from __future__ import annotations

import gzip
import io
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from otel_reliability.errors import SourceError
from otel_reliability.sources.batch import Reason
from otel_reliability.sources.chunks import Chunks

PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda data: data,
    "gzip": gzip.compress,
    "zstd": zstandard.compress,
    "zstd of unknown size": lambda data: zstandard.ZstdCompressor(
        write_content_size=False
    ).compress(data),
    "two gzip members": lambda data: gzip.compress(data[:7]) + gzip.compress(data[7:]),
    "two zstd frames": lambda data: zstandard.compress(data[:7]) + zstandard.compress(data[7:]),
    "padded gzip": lambda data: gzip.compress(data) + bytes(600),
}
DATA = os.urandom(300_000) + b"the end"


def recording(folder: Path, data: bytes) -> Path:
    path = folder / "recording"
    path.write_bytes(data)
    return path


def read(path: Path | str) -> tuple[bytes, Reason | None]:
    chunks = Chunks(path)
    data = b"".join(chunks)
    return data, chunks.damage.reason if chunks.damage else None


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("size", [0, 1, 3, len(DATA)])
def test_packings(tmp_path: Path, packing: str, size: int) -> None:
    path = recording(tmp_path, PACKINGS[packing](DATA[-size:] if size else b""))

    assert read(path) == (DATA[-size:] if size else b"", None)


def messages(*texts: bytes) -> bytes:
    """Messages as the Collector's file exporter packs them: each by itself, behind its size."""
    packed = [zstandard.compress(text) for text in texts]
    return b"".join(len(message).to_bytes(4) + message for message in packed)


def test_messages_of_the_collector(tmp_path: Path) -> None:
    assert read(recording(tmp_path, messages(b"{}", DATA, b"", b"last"))) == (
        b"{}\n" + DATA + b"\n\nlast\n",
        None,
    )


@pytest.mark.parametrize("cut", [1, 3, 4, 5, -1])
def test_messages_cut_off(tmp_path: Path, cut: int) -> None:
    data, reason = read(recording(tmp_path, messages(b"one") + messages(b"two")[:cut]))

    assert data.startswith(b"one\n")
    assert data.count(b"\n") == 1
    assert reason is Reason.TRUNCATED


@pytest.mark.parametrize("packing", ["gzip", "zstd", "two gzip members", "two zstd frames"])
@pytest.mark.parametrize("kept", [0.3, 0.9, 0.9999])
def test_truncated(tmp_path: Path, packing: str, kept: float) -> None:
    packed = PACKINGS[packing](DATA)
    data, reason = read(recording(tmp_path, packed[: int(len(packed) * kept)]))

    assert reason is Reason.TRUNCATED
    assert DATA.startswith(data)
    assert len(data) > len(DATA) * kept * 0.5 - 140_000


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_garbage_after_the_packed_data(tmp_path: Path, packing: str) -> None:
    assert read(recording(tmp_path, PACKINGS[packing](DATA) + b"garbage")) == (
        DATA,
        Reason.COMPRESSION,
    )


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
@pytest.mark.parametrize("data", [DATA, b"short"])
def test_wrong_checksum(tmp_path: Path, packing: str, data: bytes) -> None:
    """A checksum that does not fit is named; it costs none of the data, however little there is."""
    pack = (
        PACKINGS[packing]
        if packing == "gzip"
        else zstandard.ZstdCompressor(write_checksum=True).compress
    )
    packed = bytearray(pack(data))
    packed[-1 if packing == "zstd" else -6] ^= 1

    assert read(recording(tmp_path, bytes(packed))) == (data, Reason.COMPRESSION)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-8-sig"])
def test_marks_of_encodings_are_read(tmp_path: Path, encoding: str) -> None:
    """A shell of Windows writes them."""
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    said = '{"é": "🙂"}\n' * 50_000

    assert read(recording(tmp_path, (mark + said).encode(encoding))) == (said.encode(), None)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    source = io.BytesIO(gzip.compress(b"from a pipe"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(source))

    assert read("-") == (b"from a pipe", None)
    assert not source.closed


def test_pipe_that_comes_byte_by_byte(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def write() -> None:
        with path.open("wb", buffering=0) as pipe:
            for byte in gzip.compress(b"slowly"):
                pipe.write(bytes([byte]))

    writer = threading.Thread(target=write)
    writer.start()
    told: list[tuple[int, int | None]] = []
    chunks = Chunks(path, lambda read, total: told.append((read, total)))

    assert b"".join(chunks) == b"slowly"
    assert {total for _, total in told} == {None}
    writer.join()


def test_progress_is_of_the_packed_file(tmp_path: Path) -> None:
    path = recording(tmp_path, gzip.compress(DATA * 2))
    told: list[tuple[int, int | None]] = []
    for _ in Chunks(path, lambda read, total: told.append((read, total))):
        pass
    size = path.stat().st_size

    assert told == sorted(told)
    assert told[-1] == (size, size)
    assert len(told) > 1


def test_absent_file(tmp_path: Path) -> None:
    with pytest.raises(
        SourceError, match=r"absent: cannot be read \(No such file or directory\); give a file"
    ):
        list(Chunks(tmp_path / "absent"))
    with pytest.raises(SourceError, match="Is a directory"):
        list(Chunks(tmp_path))


def test_read_error_ends_the_file(tmp_path: Path) -> None:
    def fail(read: int, _total: int | None) -> None:
        if read == len(DATA):
            raise OSError(5, "Input/output error")

    chunks = Chunks(recording(tmp_path, DATA), fail)

    assert DATA.startswith(b"".join(chunks))
    assert chunks.damage is not None
    assert (
        chunks.damage.detail
        == "reading failed here (Input/output error); what came before it was read"
    )


def test_zstd_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = recording(tmp_path, zstandard.compress(b"data"))
    monkeypatch.setitem(sys.modules, "zstandard", None)

    with pytest.raises(
        SourceError, match=r"install otel-reliability\[zstd\], or unpack the file first"
    ):
        list(Chunks(path))
