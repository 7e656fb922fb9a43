"""Marks of ids, beside a plain list of them."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.windows.marks import Marks


@given(st.lists(st.binary(max_size=3)), st.lists(st.binary(max_size=3)), st.randoms(use_true_random=False))
def test_no_id_that_is_there_is_missed(known: list[bytes], more: list[bytes], dice: Random) -> None:
    """However often it came, until it has gone as often."""
    marks, there = Marks(known), list(known)
    for one in more:
        marks.add(one)
        there.append(one)
    while there:
        assert all(marks.may_have(one) for one in there)
        marks.discard(there.pop(dice.randrange(len(there))))
    assert not any(marks.may_have(one) for one in [*known, *more])


def test_ids_that_are_not_there_are_told_apart() -> None:
    """Nearly always, however many there are; and there is a time to divide them anew."""
    ids = [number.to_bytes(24, "big") for number in range(20_000)]
    marks = Marks(ids[:10_000])
    assert sum(marks.may_have(one) for one in ids) < 10_003
    assert 10_000 < marks.most < 40_000
