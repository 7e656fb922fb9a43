"""The multi-run reporting document's numbers, from an independent script: integers exactly, widths
to 1e-9.
"""

from __future__ import annotations

from typing import Any

import pytest

from otel_reliability.metrics.passes.run_counts import confidence_band, recommend_runs
from otel_reliability.metrics.passes.summary import TARGET_PREFIX, TARGETS, summaries
from otel_reliability.model.run import Outcome
from otel_reliability.testing import row
from tests.oracles.reading import close, each

FILE = "oracles/seed4.json"


@pytest.mark.parametrize("case", each(FILE, "cases"))
def test_summaries_are_the_oracles(case: dict[str, Any]) -> None:
    rows = [
        row(outcome=Outcome.SUCCESS if passed else Outcome.FAILURE) for passed in case["outcomes"]
    ]
    summary = summaries(rows).get(None)
    expected = case["expected"]

    if expected is None:
        assert summary is None
        return
    assert summary is not None
    assert expected["runs"] == summary.runs
    assert expected["pass_at_k"] == summary.pass_at_k
    assert expected["passhat_k"] == summary.passhat_k
    assert tuple(expected["decay_curve"]) == summary.decay_curve
    assert expected["variance_amplification"] == summary.variance_amplification
    assert expected["graceful_degradation"] == summary.graceful_degradation
    assert expected["targets"] == {
        path: getattr(summary, path.removeprefix(TARGET_PREFIX)) for path in TARGETS
    }


@pytest.mark.parametrize("case", each(FILE, "recommend_runs"))
def test_recommended_runs_are_exact(case: dict[str, Any]) -> None:
    assert case["runs_exact"] == recommend_runs(case["half_width"], case["level"])
    assert case["runs_exact"] == recommend_runs(float(case["half_width"]), case["level"])


@pytest.mark.parametrize("case", each(FILE, "confidence_band"))
def test_bands_are_the_oracles(case: dict[str, Any]) -> None:
    assert close(confidence_band(case["runs"], case["level"]), case["half_width"])
