"""Run ids in 24 bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.windows.ids import SIZE, Ids, packed_id

HEX = st.text("0123456789abcdef", min_size=49, max_size=49).map(lambda text: f"{text[:32]}-{text[33:]}")
ODD = st.one_of(st.text(max_size=60), HEX.map(str.upper), HEX.map(lambda text: text.replace("-", "0")))


@given(st.lists(st.one_of(HEX, ODD), max_size=20))
def test_ids_come_back_whatever_they_are(run_ids: list[str]) -> None:
    """Every id takes as many bytes, different ids different ones, and each is told again as it was."""
    ids = Ids()
    packed = {run_id: ids.pack(run_id) for run_id in run_ids}
    assert all(len(one) == SIZE and ids.known_as(run_id) == one for run_id, one in packed.items())
    assert len(set(packed.values())) == len(packed)
    assert {ids.unpack(one) for one in packed.values()} == set(run_ids)


@given(HEX, st.integers(0, 48))
def test_only_what_reads_back_is_spelt(run_id: str, at: int) -> None:
    """Capitals, blanks and a dash elsewhere make another id, though they may stand for the same bytes."""
    assert packed_id(run_id) == bytes.fromhex(run_id.replace("-", ""))
    for other in (f"{run_id[:at]} {run_id[at + 1 :]}", run_id.upper().replace("-", "_")):
        assert packed_id(other) is None


def test_odd_ids_are_remembered_no_longer_than_kept() -> None:
    """One that was let go of is unknown: its digest is read as if it were an id."""
    ids = Ids()
    packed = ids.pack("run-1")
    assert ids.unpack(packed) == "run-1"
    ids.release(packed)
    assert packed_id(ids.unpack(packed)) == packed
