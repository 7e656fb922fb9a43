"""Sums over groups that cost only what changed."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.metrics._support.exact import FixedSum
from otel_reliability.metrics._support.groups import RunGroup, Groups, Share
from otel_reliability.metrics.examples import row
from otel_reliability.model.row import Row


class Asked(RunGroup):
    """A group that counts how often it was asked."""

    asked = 0

    def add(self, row: Row) -> None:
        """Nothing but the number of runs matters."""

    def evict(self, row: Row) -> None:
        """As `add`."""

    def share(self) -> Share | None:
        Asked.asked += 1
        return Share((1 / self.runs,), self.runs, self.runs, 1) if self.runs >= 2 else None


def test_an_answer_costs_the_groups_that_changed() -> None:
    """Of a hundred groups the one that changed is asked, and none if none did; an empty one is forgotten."""
    groups: Groups[Asked] = Groups(Asked)
    for key in range(100):
        for _ in range(2):
            groups.add(key, row())
    groups.update()
    Asked.asked = 0
    groups.update()
    assert Asked.asked == 0
    groups.add(7, row())
    groups.update()
    assert Asked.asked == 1
    assert (groups.weight, groups.runs, groups.left_out) == (201, 201, 100)
    for _ in range(3):
        groups.evict(7, row())
    groups.update()
    assert groups.get(7) is None
    assert (groups.weight, groups.runs, groups.left_out) == (198, 198, 99)
    assert groups.sums[0].mean(groups.weight) == 0.5


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 1000)), min_size=1, max_size=20))
def test_fixed_sums_are_the_mean_to_the_last_digits_and_undo(values: list[tuple[float, int]]) -> None:
    """A weighted mean is right to 1e-15, and what leaves leaves nothing behind."""
    total, alone = FixedSum(), FixedSum()
    for value, times in values:
        total.add(value, times)
    weight = sum(times for _, times in values)
    true = sum((Fraction(value) * times for value, times in values), Fraction()) / weight
    assert abs(total.mean(weight) - true) < 1e-15
    for value, times in values[1:]:
        total.remove(value, times)
    alone.add(*values[0])
    assert total.value == alone.value
