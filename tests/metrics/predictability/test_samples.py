from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.metrics.predictability import brier_score, calibration, discrimination
from otel_reliability.metrics.predictability.calibration import BINS, EDGES, bin_of


def test_each_attempt_needs_an_outcome() -> None:
    """Sequences of different lengths are a mistake of the caller, and loud."""
    with pytest.raises(ValueError, match="shorter"):
        brier_score([0.5, 0.5], [1])


def test_no_samples_give_no_value() -> None:
    """Neither 0 nor 1."""
    assert brier_score([None], [1]) is None
    assert calibration([], []) is None
    assert discrimination([0.5, None], [1, 0]) is None


@given(confidence=st.floats(0, 1))
def test_every_confidence_has_its_bin(confidence: float) -> None:
    """[lo, hi), the last one closed, by the same floats as numpy's edges."""
    index = bin_of(confidence)
    assert index is not None
    assert EDGES[index] <= confidence <= EDGES[index + 1]
    assert confidence < EDGES[index + 1] or index == BINS - 1


@given(found=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), min_size=1, max_size=40))
def test_turning_every_confidence_round_turns_discrimination_round(found: list[tuple[float, int]]) -> None:
    """What was surer of successes is as much surer of failures."""
    confidences, outcomes = [1000 * c for c, _ in found], [y for _, y in found]
    forth = discrimination(confidences, outcomes)
    back = discrimination([-c for c in confidences], outcomes)

    assert (forth is None) == (back is None) == (len(set(outcomes)) < 2)
    assert forth is None or back is None or forth + back == pytest.approx(1.0)
