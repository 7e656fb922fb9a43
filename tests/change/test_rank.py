"""Ranks among the latest values."""

from __future__ import annotations

import pytest

from otel_reliability.change.rank import Ranks
from tests.change.build import u_of


def test_split_gives_the_latest_values_apart() -> None:
    """The values are told in the order in which they came; more than there are is all of them."""
    ranks = Ranks()
    for value in (3, 1, 2):
        ranks.rank(value, b"")
    assert ranks.split(1) == ([3, 1], [2])
    assert ranks.split(9) == ([], [3, 1, 2])


def test_ties_are_broken_evenly_and_by_nothing_but_names() -> None:
    """Over units, signals and ordinals alike the tie breaker is spread over [0, 1)."""
    tenths = [0] * 10
    for n in range(4_000):
        tenths[int(10 * u_of(f"run-{n % 100}", "calls", n))] += 1
    assert min(tenths) > 320
    assert len({u_of("a", "calls", 1), u_of("b", "calls", 1), u_of("a", "path", 1)}) == 3


@pytest.mark.parametrize("unit_id", ["", "\ud800", "ü" * 1_000])
def test_any_id_breaks_ties(unit_id: str) -> None:
    """Ids that are empty, long or no valid text do as well as others."""
    assert 0 <= u_of(unit_id, "path", 0) < 1
