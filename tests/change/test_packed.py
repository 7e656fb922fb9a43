"""Units as bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.change.packed import Packer
from otel_reliability.change.units import Unit

NUMBERS = st.none() | st.integers()
UNITS = st.builds(
    Unit,
    st.text(st.characters()),
    st.integers(),
    st.integers(),
    st.none() | st.lists(st.text(max_size=3), max_size=3).map(tuple),
    *[NUMBERS] * 5,
    st.integers(),
    st.integers(),
    st.none() | st.text(st.characters()),
)


@given(st.lists(UNITS))
def test_what_was_packed_is_read_back(units: list[Unit]) -> None:
    """Whatever they are: numbers of any size, texts of any characters, lone surrogates too."""
    packer = Packer()
    packed = [packer.pack(unit) for unit in units]
    assert [packer.unpack(data) for data in packed] == units


def test_a_unit_takes_little_room_beside_its_path() -> None:
    """A path is kept once."""
    path = ("search",) * 1_000
    packer = Packer()
    sizes = [len(packer.pack(Unit(f"{at:032}", at, at + 9, path, 9, 1, 800, 400, 0))) for at in range(100)]
    assert max(sizes) < 150
