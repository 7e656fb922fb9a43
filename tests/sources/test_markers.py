from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.sources.markers import HEAD, Markers

MARKERS = (
    b"gen_ai.",
    b"ai.operationId",
    b"session.id",
    b"evaluation.",
    b"annotation.",
    b".x",
    b"nodot",
    b"a.",
    b"mcp.method.name",
)
PIECES = st.sampled_from(
    [*MARKERS, b"i.", b".", b"tion.", b"_ai.", b"ai.o", b"http.route", b"sion.", b"\n", b"", b"nodo"]
)


@pytest.mark.parametrize("padding", [b"", b"." * HEAD, b"x" * HEAD, b"station.com " * HEAD])
@given(st.lists(PIECES, max_size=4).map(b"".join), st.booleans())
def test_the_short_way_finds_what_the_long_one_finds(padding: bytes, piece: bytes, first: bool) -> None:
    """Wherever it stands in a body, at its edges too, and however many dots there are beside it."""
    body = piece + padding if first else padding + piece

    for one in (MARKERS, *((marker,) for marker in MARKERS)):
        assert Markers(one).stand_in(body) == any(marker in body for marker in one)


@pytest.mark.parametrize("marker", MARKERS)
def test_each_is_found_alone_in_a_large_body(marker: bytes) -> None:
    """At the beginning, in the middle and at the end."""
    filler = b"http.route" * HEAD

    assert all(
        Markers([marker]).stand_in(body) for body in (marker + filler, filler + marker, filler + marker + filler)
    )
    assert not Markers([marker]).stand_in(filler)
