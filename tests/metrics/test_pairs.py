from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.metrics._support.groups import LatestPairs, edit_units, path_code
from otel_reliability.metrics.examples import row
from otel_reliability.model.row import Row


def latest(rows: list[Row], limit: int) -> list[Row]:
    """The longest end of the rows with at most so many distinct paths."""
    inside: list[Row] = []
    for one in sorted(rows, reverse=True):
        if len({other.path for other in (*inside, one)}) > limit:
            break
        inside.append(one)
    return inside


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from("abcd"), st.booleans()), max_size=40), st.integers(1, 3))
def test_the_latest_paths_count_at_every_step(steps: list[tuple[int, str, bool]], limit: int) -> None:
    pairs, there = LatestPairs(limit, edit_units, path_code), list[Row]()
    for at, (end, path, leave) in enumerate(steps):
        if leave and there:
            pairs.count(there.pop(end % len(there)), -1)
        else:
            there.append(row(path, end_ns=end, run_id=f"{at:02}"))
            pairs.count(there[-1], 1)
        inside = latest(there, limit)
        assert (len(pairs), pairs.left_out) == (len(inside), len(there) - len(inside))
        distances = [float(one.path != other.path) for one, other in combinations(inside, 2)]
        assert pairs.mean() == (pytest.approx(sum(distances) / len(distances)) if distances else None)
