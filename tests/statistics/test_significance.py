from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.statistics.significance import holm, two_sided


def test_two_sided_is_the_table() -> None:
    """The chances of the printed tables."""
    assert [round(two_sided(z), 4) for z in (0, 1.96, -1.96, 2.5758)] == [1, 0.05, 0.05, 0.01]


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_never_lessens_and_keeps_the_order(chances: list[float]) -> None:
    adjusted = holm(chances)
    assert all(
        p <= a <= min(1, p * len(chances)) + 1e-12 for p, a in zip(chances, adjusted, strict=True)
    )
    assert all(
        (a <= b)
        for (p, a), (q, b) in itertools.product(zip(chances, adjusted, strict=True), repeat=2)
        if p <= q
    )
