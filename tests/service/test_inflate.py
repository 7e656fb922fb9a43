from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.service.answers import Problem, Refused
from otel_reliability.service.compression import (
    DEFLATE,
    GZIP,
    MAX_MEMBERS,
    ZSTD,
    ContentCoding,
    inflate,
)

MEGABYTE = 1024 * 1024
ZSTD_MARK = b"\x28\xb5\x2f\xfd"


def bare_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


every_compression = pytest.mark.parametrize(
    ("compression", "compress"),
    [
        pytest.param(GZIP, gzip.compress, id="gzip"),
        pytest.param(DEFLATE, zlib.compress, id="zlib"),
        pytest.param(DEFLATE, bare_deflate, id="bare deflate"),
        pytest.param(ZSTD, zstandard.compress, id="zstd"),
        pytest.param(ZSTD, zstandard.ZstdCompressor(level=20).compress, id="zstd, best"),
    ],
)


def problem_of(packed: bytes, limit: int = MEGABYTE, compression: ContentCoding = GZIP) -> Problem:
    with pytest.raises(Refused) as raised:
        inflate(packed, compression, limit)
    return raised.value.problem


@given(st.lists(st.tuples(st.binary(max_size=200), st.integers(1, 2_000)), max_size=4))
def test_what_was_packed_comes_out(parts: list[tuple[bytes, int]]) -> None:
    members = [part * times for part, times in parts]
    grown: list[int] = []
    packed = b"".join(map(gzip.compress, members))

    assert inflate(packed, GZIP, 4 * MEGABYTE, grown.append) == b"".join(members)
    assert sum(grown) == len(b"".join(members))


@every_compression
@pytest.mark.parametrize("size", [MEGABYTE - 1, MEGABYTE, MEGABYTE + 1])
def test_the_limit_is_exact(
    compression: ContentCoding, compress: Callable[[bytes], bytes], size: int
) -> None:
    packed = compress(bytes(size))
    if size <= MEGABYTE:
        assert inflate(packed, compression, MEGABYTE) == bytes(size)
    else:
        assert problem_of(packed, MEGABYTE, compression) is Problem.TOO_LARGE


@every_compression
def test_a_bomb_takes_little_more_than_the_limit(
    compression: ContentCoding, compress: Callable[[bytes], bytes]
) -> None:
    bomb = compress(bytes(100 * MEGABYTE))
    tracemalloc.start()
    try:
        problem = problem_of(bomb, 2 * MEGABYTE, compression)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert problem is Problem.TOO_LARGE
    assert peak < 20 * MEGABYTE


@every_compression
def test_a_body_that_is_cut_off_or_damaged_cannot_be_read(
    compression: ContentCoding, compress: Callable[[bytes], bytes]
) -> None:
    packed = compress(b"text of some length, " * 99)

    for damaged in (packed[:-1], packed[: len(packed) // 2], packed[:1], b"plain text"):
        assert problem_of(damaged, MEGABYTE, compression) is Problem.UNDECODABLE


def test_a_zstd_body_cannot_ask_for_a_window_of_any_size() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=27)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    packed = packer.compress(b"text") + packer.flush()

    assert problem_of(packed, MEGABYTE, ZSTD) is Problem.UNDECODABLE


@pytest.mark.parametrize(
    "packed",
    [
        b"plain",
        gzip.compress(b"text")[:-1],
        gzip.compress(b"text" * 99)[:-9],
        gzip.compress(b"text")[:5],
        b"\x1f\x8b",
        gzip.compress(b"text") + b"rest",
        gzip.compress(b"text")[:-8] + b"\0" * 8,
        zlib.compress(b"text"),
    ],
    ids=["plain", "no end", "cut", "a header", "a mark", "something after", "a wrong sum", "zlib"],
)
def test_what_is_no_gzip_cannot_be_read(packed: bytes) -> None:
    assert problem_of(packed) is Problem.UNDECODABLE


def test_a_million_empty_members_are_not_walked() -> None:
    """They would cost time, and hold nothing."""
    member = gzip.compress(b"")

    assert inflate(member * MAX_MEMBERS, GZIP, 10) == b""
    assert problem_of(member * (MAX_MEMBERS + 1)) is Problem.UNDECODABLE


@pytest.mark.parametrize(
    ("compression", "mark"),
    [(GZIP, b"\x1f\x8b\x08"), (DEFLATE, b"\x78\x9c"), (DEFLATE, b""), (ZSTD, ZSTD_MARK)],
)
@given(packed=st.binary(max_size=300))
def test_anything_else_is_refused_or_unpacked(
    compression: ContentCoding, mark: bytes, packed: bytes
) -> None:
    found = None
    try:
        inflate(mark + packed, compression, 1_000)
    except Refused as refusal:
        found = refusal.problem

    assert found in {None, Problem.UNDECODABLE, Problem.TOO_LARGE}
