"""What the methodology's authors published of two agents, from the same inputs, to 1e-9."""

from __future__ import annotations

from typing import Any, cast

import pytest

from otel_reliability.config import MetricSettings, Settings
from otel_reliability.metrics.passes.series import PassSeries
from otel_reliability.model.row import Row
from otel_reliability.model.run import Outcome
from otel_reliability.testing import row
from tests.oracles.reading import close, load
from tests.windows.runs import window_over

FILE = "corpora/hal_reliability/taubench_airline_published.json"
AGENTS = ("taubench_toolcalling_claude_haiku_3_5", "taubench_toolcalling_claude_opus_4_5")
RUNS = 5


@pytest.fixture(params=AGENTS)
def agent(request: pytest.FixtureRequest) -> dict[str, Any]:
    return load(FILE)["agents"][request.param]


def _run(passed: bool, **fields: Any) -> Row:
    return row(outcome=Outcome.SUCCESS if passed else Outcome.FAILURE, **fields)


def _attempts(agent: dict[str, Any]) -> list[Row]:
    passes = {task: round(rate * RUNS) for task, rate in agent["task_success_rate"].items()}
    return [_run(at < passed, task=task) for task, passed in passes.items() for at in range(RUNS)]


def test_predictability_is_as_published(agent: dict[str, Any]) -> None:
    rows = [
        *(_run(True, confidence=confidence) for confidence in agent["correct_confidences"]),
        *(_run(False, confidence=confidence) for confidence in agent["incorrect_confidences"]),
    ]
    readings = window_over(rows).readings()
    published = agent["published"]

    assert close(readings["calibration"].value, published["predictability_calibration"])
    assert close(readings["discrimination"].value, published["predictability_roc_auc"])
    assert close(readings["brier_score"].value, published["predictability_brier_score"])


def test_outcome_consistency_is_as_published(agent: dict[str, Any]) -> None:
    rows = _attempts(agent)
    published = window_over(rows).readings()
    harness = window_over(rows, Settings(metrics=MetricSettings(profile="hal-harness"))).readings()
    later = agent["derived"]["outcome_consistency_head_formula_(2p-1)^2"]

    assert close(published["outcome_consistency"].value, agent["published"]["consistency_outcome"])
    assert close(harness["outcome_consistency"].value, later)
    assert close(published["outcome_agreement"].value, later)


@pytest.mark.parametrize("name", ["pass_hat_k", "pass_at_k"])
def test_passes_agree_with_the_derived(agent: dict[str, Any], name: str) -> None:
    found = cast("PassSeries", window_over(_attempts(agent)).metric(name)).by_k()

    assert list(found) == list(range(1, RUNS + 1))
    assert all(close(reading.value, agent["derived"][name][str(k)]) for k, reading in found.items())
