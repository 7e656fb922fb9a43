from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.config import LimitSettings, Settings
from otel_reliability.metrics._support.latest_pairs import ONE
from otel_reliability.metrics.base import Metric, Profile
from otel_reliability.metrics.consistency.trajectories import (
    TrajectoryDistribution,
    TrajectorySequence,
)
from otel_reliability.model.run import Outcome
from otel_reliability.testing import rows_of

CODES = st.text("abcdef", min_size=1, max_size=12)
BOTH = pytest.mark.parametrize("cls", [TrajectoryDistribution, TrajectorySequence])


@pytest.mark.parametrize("profile", ["published", "hal-harness"])
@given(codes=st.tuples(CODES, CODES, CODES))
def test_distances_are_a_distance(profile: Profile, codes: tuple[str, str, str]) -> None:
    one, other, third = codes
    distances = TrajectoryDistribution(Settings.load(metrics={"profile": profile})).distances
    [there], [back] = distances(one, [other]), distances(other, [one])
    [onward], [around] = distances(other, [third]), distances(one, [third])

    assert there == back
    assert distances(one, [one * 3, one[::-1]]) == [0, 0]
    assert 0 <= there <= ONE
    assert profile == "hal-harness" or around <= there + onward + 10


@BOTH
def test_beyond_the_limit_the_latest_paths_are_compared(cls: type[Metric]) -> None:
    rows = rows_of("a", "b", "c", "c", task="t", outcome=Outcome.SUCCESS)
    for order in permutations(rows):
        metric = cls(Settings(limits=LimitSettings(paths=1)))
        for row in order:
            metric.add(row)

        assert (metric.value().value, metric.value().runs) == (1.0, 2)
        assert metric.value().note == "2 runs beyond the limit of distinct paths left out"
