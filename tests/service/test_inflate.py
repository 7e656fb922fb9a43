from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.service.answers import Problem, Refused
from otel_reliability.service.intake import MAX_MEMBERS, inflate

MEGABYTE = 1024 * 1024


def problem_of(packed: bytes, limit: int = MEGABYTE) -> Problem:
    with pytest.raises(Refused) as raised:
        inflate(packed, limit)
    return raised.value.problem


@given(st.lists(st.tuples(st.binary(max_size=200), st.integers(1, 2_000)), max_size=4))
def test_what_was_packed_comes_out(parts: list[tuple[bytes, int]]) -> None:
    members = [part * times for part, times in parts]
    grown: list[int] = []
    packed = b"".join(map(gzip.compress, members))

    assert inflate(packed, 4 * MEGABYTE, grown.append) == b"".join(members)
    assert sum(grown) == len(b"".join(members))


@pytest.mark.parametrize("size", [MEGABYTE - 1, MEGABYTE, MEGABYTE + 1])
def test_the_limit_is_exact(size: int) -> None:
    packed = gzip.compress(bytes(size))
    if size <= MEGABYTE:
        assert len(inflate(packed, MEGABYTE)) == size
    else:
        assert problem_of(packed) is Problem.TOO_LARGE


def test_a_bomb_takes_no_more_than_the_limit() -> None:
    bomb = gzip.compress(bytes(100 * MEGABYTE))
    tracemalloc.start()
    try:
        problem = problem_of(bomb, 2 * MEGABYTE)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert problem is Problem.TOO_LARGE
    assert peak < 8 * MEGABYTE


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

    assert inflate(member * MAX_MEMBERS, 10) == b""
    assert problem_of(member * (MAX_MEMBERS + 1)) is Problem.UNDECODABLE


@given(st.binary(max_size=300))
def test_anything_else_is_refused_or_unpacked(packed: bytes) -> None:
    found = None
    try:
        inflate(b"\x1f\x8b\x08" + packed, 1_000)
    except Refused as refusal:
        found = refusal.problem

    assert found in {None, Problem.UNDECODABLE, Problem.TOO_LARGE}
