from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.errors import ConfigurationError
from otel_reliability.metrics.passes import confidence_band, recommend_runs

LEVELS = st.sampled_from([90, 95, 99])


@given(half_width=st.floats(0.001, 1.0), confidence=LEVELS)
def test_the_recommended_runs_are_enough_and_one_less_is_not(half_width: float, confidence: int) -> None:
    """The band of the recommended number fits into the half-width, and the band of one run less does not."""
    runs = recommend_runs(half_width, confidence)

    assert confidence_band(runs, confidence) <= half_width * (1 + 1e-9)
    assert runs == 1 or confidence_band(runs - 1, confidence) > half_width * (1 - 1e-9)


def test_five_runs_tell_nearly_nothing() -> None:
    """The worst case of seed and gate: five runs, plus or minus 44 points."""
    assert round(100 * confidence_band(5)) == 44


@pytest.mark.parametrize("half_width", [0, -0.05, 5, "wide", float("nan"), "1/0", True])
def test_a_half_width_that_is_no_share_is_told_apart(half_width: Any) -> None:
    """The message names the field, the value, what is allowed and what to do."""
    with pytest.raises(
        ConfigurationError, match=r"half_width: .* is not a share above 0 and up to 1; write 5 points as 0\.05"
    ):
        recommend_runs(half_width)


@pytest.mark.parametrize("confidence", [0, 80, 0.95, 100])
def test_other_levels_have_no_critical_value(confidence: Any) -> None:
    """Only the source's three levels are known."""
    with pytest.raises(ConfigurationError, match="is not one of 90, 95 and 99"):
        recommend_runs(0.05, confidence)


@pytest.mark.parametrize("runs", [0, -1, True])
def test_no_runs_have_no_band(runs: int) -> None:
    """Nothing is known without a run."""
    with pytest.raises(ConfigurationError, match="is not a whole number from 1"):
        confidence_band(runs)
