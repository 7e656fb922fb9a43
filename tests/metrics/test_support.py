from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.metrics._support.latest_pairs import LatestPairs, edit_units, path_code
from otel_reliability.metrics._support.sums import Counts, ExactSum, FixedSum
from otel_reliability.model.row import Row
from otel_reliability.testing import row

FLOATS = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)


@given(st.lists(FLOATS, max_size=20))
def test_the_value_is_the_true_sum_rounded_once(values: list[float]) -> None:
    total = ExactSum()
    for value in values:
        total.add(value)
    assert total.value == float(sum(map(Fraction, values), Fraction()))
    assert total.mean(3) == float(sum(map(Fraction, values), Fraction()) / 3)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_cannot_be_summed(value: float) -> None:
    """Entry points refuse such values; a sum with one could never be right again."""
    with pytest.raises((ValueError, OverflowError)):
        ExactSum().add(value)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 1000)), min_size=1, max_size=20))
def test_fixed_sums_are_the_mean_to_the_last_digits_and_undo(
    values: list[tuple[float, int]],
) -> None:
    total = FixedSum()
    alone = FixedSum()
    for value, times in values:
        total.add(value, times)
    weight = sum(times for _, times in values)
    true = sum((Fraction(value) * times for value, times in values), Fraction()) / weight
    assert abs(total.mean(weight) - true) < 1e-15
    for value, times in values[1:]:
        total.add(value, -times)
    alone.add(*values[0])
    assert total.value == alone.value


@pytest.mark.parametrize("number", [1, 2, 3, 10, 1_000])
def test_evenness_is_exact_where_all_or_no_values_are_equal(number: int) -> None:
    equal = Counts[int]()
    different = Counts[int]()
    for value in range(number):
        equal.count(7)
        different.count(value)
    assert equal.bits() == equal.evenness() == 0.0
    assert different.evenness() == (1.0 if number > 1 else 0.0)


def latest(rows: list[Row], limit: int) -> list[Row]:
    """The longest end of the rows with at most so many distinct paths."""
    inside: list[Row] = []
    for one in sorted(rows, key=lambda row: (row.end_ns, row.run_id), reverse=True):
        if len({other.path for other in (*inside, one)}) > limit:
            break
        inside.append(one)
    return inside


@given(
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from("abcd"), st.booleans()), max_size=40),
    st.integers(1, 3),
)
def test_the_latest_paths_count_at_every_step(
    steps: list[tuple[int, str, bool]], limit: int
) -> None:
    pairs = LatestPairs(limit, edit_units, path_code)
    there = list[Row]()
    for at, (end, path, leave) in enumerate(steps):
        if leave and there:
            pairs.count(there.pop(end % len(there)), -1)
        else:
            there.append(row(path, end_ns=end, run_id=f"{at:02}"))
            pairs.count(there[-1], 1)
        inside = latest(there, limit)
        assert (len(pairs), pairs.left_out) == (len(inside), len(there) - len(inside))
        distances = [float(one.path != other.path) for one, other in combinations(inside, 2)]
        assert pairs.mean() == (
            pytest.approx(sum(distances) / len(distances)) if distances else None
        )
