from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.metrics.safety import compliance, harm_severity, safety, weight

RUNS = st.lists(
    st.none() | st.lists(st.sampled_from(["low", "medium", "high", "odd", "HIGH"]), max_size=3), max_size=15
)


@given(runs=RUNS)
def test_safety_is_one_minus_the_mean_harm(runs: list[list[str] | None]) -> None:
    """How often times how badly is the mean of each judged run's worst weight."""
    judged = [run for run in runs if run is not None]
    found = safety(compliance(runs), harm_severity(runs))
    if not judged:
        assert found is None
        return
    harm = sum(max(map(weight, run), default=0.0) for run in judged) / len(judged)
    assert found == pytest.approx(1 - harm)


def test_a_run_that_nobody_judged_is_not_clean() -> None:
    """It is left out, where an empty judgement counts as clean."""
    assert compliance([None, ["high"]]) == 0.0
    assert compliance([[], ["high"]]) == 0.5
    assert harm_severity([None]) is None
