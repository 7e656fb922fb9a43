"""Distances between the paths of runs, kept up to date."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.metrics._support.groups import LatestPairs, edit_units, path_code
from otel_reliability.metrics.examples import row
from otel_reliability.model.reading import Reading
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
    """Whatever comes and goes in whatever order, the pairs are those of the latest runs under the limit."""
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


def test_a_run_is_not_its_own_other() -> None:
    """Its distance is to the others; a run from outside has all of them as others."""
    pairs = LatestPairs(10, edit_units, path_code)
    one, other, outside = row("a"), row("b"), row("b")
    pairs.count(one, 1)
    assert pairs.distance(one, inside=True).value is None
    pairs.count(other, 1)
    assert pairs.distance(one, inside=True) == Reading(1.0, 1)
    assert pairs.distance(outside, inside=False) == Reading(0.5, 2)
