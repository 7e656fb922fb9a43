"""What the methodology's authors published of two agents, from the same inputs, to 1e-9."""

from __future__ import annotations

from typing import Any

import pytest

from otel_reliability.metrics.consistency.outcome_consistency import outcome_agreement, outcome_consistency
from otel_reliability.metrics.passes.series import pass_at_k, pass_hat_k
from otel_reliability.metrics.predictability.brier_score import brier_score
from otel_reliability.metrics.predictability.calibration import calibration
from otel_reliability.metrics.predictability.discrimination import discrimination
from tests.oracles.reading import close, load

FILE = "corpora/hal_reliability/taubench_airline_published.json"
AGENTS = ("taubench_toolcalling_claude_haiku_3_5", "taubench_toolcalling_claude_opus_4_5")
RUNS = 5


@pytest.fixture(params=AGENTS)
def agent(request: pytest.FixtureRequest) -> dict[str, Any]:
    return load(FILE)["agents"][request.param]


def _attempts(agent: dict[str, Any]) -> list[list[float]]:
    passed = [round(rate * RUNS) for rate in agent["task_success_rate"].values()]
    return [[1.0] * count + [0.0] * (RUNS - count) for count in passed]


def test_predictability_is_as_published(agent: dict[str, Any]) -> None:
    correct, incorrect = agent["correct_confidences"], agent["incorrect_confidences"]
    confidences, outcomes = correct + incorrect, [1] * len(correct) + [0] * len(incorrect)
    published = agent["published"]

    assert close(calibration(confidences, outcomes), published["predictability_calibration"])
    assert close(discrimination(confidences, outcomes), published["predictability_roc_auc"])
    assert close(brier_score(confidences, outcomes), published["predictability_brier_score"])


def test_outcome_consistency_is_as_published(agent: dict[str, Any]) -> None:
    attempts = _attempts(agent)
    later = agent["derived"]["outcome_consistency_head_formula_(2p-1)^2"]

    assert close(outcome_consistency(attempts), agent["published"]["consistency_outcome"])
    assert close(outcome_consistency(attempts, "hal-harness"), later)
    assert close(outcome_agreement(attempts), later)


def test_passes_agree_with_the_derived(agent: dict[str, Any]) -> None:
    attempts, derived = _attempts(agent), agent["derived"]

    for k in range(1, RUNS + 1):
        assert close(pass_hat_k(attempts, k), derived["pass_hat_k"][str(k)])
        assert close(pass_at_k(attempts, k), derived["pass_at_k"][str(k)])
