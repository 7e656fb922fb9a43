from __future__ import annotations

import math
from itertools import permutations
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.metrics._support.profiles import Profile
from otel_reliability.metrics.predictability import risk_coverage
from otel_reliability.metrics.predictability.risk_coverage import _risks
from otel_reliability.metrics.predictability.samples import blocks

SAMPLES = st.lists(st.tuples(st.sampled_from([0.1, 0.5, 0.9]), st.booleans()), min_size=1, max_size=5)


@given(found=SAMPLES)
def test_ties_count_with_their_expected_risk(found: list[tuple[float, bool]]) -> None:
    """The risk among the i surest is the mean over every order that the confidences allow."""
    orders = [
        order for order in permutations(found) if [c for c, _ in order] == sorted((c for c, _ in found), reverse=True)
    ]
    expected = [
        fmean(sum(not passed for _, passed in order[:taken]) / taken for order in orders)
        for taken in range(1, len(found) + 1)
    ]
    assert _risks(blocks(found)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("profile", ["published", "hal-harness"])
@given(found=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), min_size=2, max_size=30))
def test_the_order_of_the_samples_is_nothing(profile: Profile, found: list[tuple[float, int]]) -> None:
    """Equal confidences too may come in any order: the reference's values depend on it, ours do not."""
    forth, back = ([*zip(*order, strict=True)] for order in (found, found[::-1]))
    assert risk_coverage(forth[0], forth[1], profile) == risk_coverage(back[0], back[1], profile)


def test_one_class_gives_no_evidence_as_published() -> None:
    """The authors' code calls even an agent that is always wrong perfect."""
    assert risk_coverage([0.9, 0.1], [0, 0]) is None
    assert risk_coverage([0.9, 0.1], [0, 0], "hal-harness") == 1.0
    assert risk_coverage([], [], "hal-harness") is None


def test_a_misleading_confidence_is_cut_to_zero() -> None:
    """Worse than chance is no better than chance."""
    assert risk_coverage([0.9, 0.1], [0, 1]) == 0.0


def test_what_is_not_a_number_is_left_out() -> None:
    """NaN and None are no confidence."""
    assert risk_coverage([0.9, math.nan, None, 0.1], [1, 0, 0, 0]) == 1.0
