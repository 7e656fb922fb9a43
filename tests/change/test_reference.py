from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.change.reference import SIZE, Reference
from otel_reliability.model.observation import Steps
from tests.change.build import TOOLS
from tests.metrics.reference import similarity

PATHS = st.lists(st.sampled_from(TOOLS), max_size=8).map(tuple)


def naive(reference: list[Steps | None], path: Steps) -> float | None:
    distances = sorted(1 - similarity(path, other) for other in reference if other is not None)
    return sum(distances[:5]) / 5 if len(distances) >= 5 else None


@given(
    st.lists(st.one_of(st.none(), PATHS), max_size=SIZE), st.lists(PATHS, min_size=1, max_size=5)
)
def test_the_distance_is_the_formula(paths: list[Steps | None], asked: list[Steps]) -> None:
    reference = Reference(paths)
    for path in asked * 2:
        expected = naive(paths, path)
        assert reference.distance(path) == (
            None if expected is None else pytest.approx(expected, abs=1e-12)
        )


def test_a_distance_is_not_remembered_across_learning() -> None:
    reference = Reference([("a",)] * 5)
    assert reference.distance(("b",)) == 1
    for _ in range(5):
        reference.add(("b",))
    assert reference.distance(("b",)) == 0


def test_memory_is_bounded_whatever_paths_come() -> None:
    reference = Reference([("a",)] * 5)
    for n in range(2_000):
        reference.distance((str(n),))
    assert len(reference._distances) <= 128
