"""The published pass^k of a benchmark, its paths and its retries, from its spans, against what its
own records say.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from otel_reliability.config import Settings, WindowSettings
from otel_reliability.engine import Engine
from otel_reliability.metrics.passes.series import PassSeries
from otel_reliability.metrics.stability.tables import TaskRow, task_table
from otel_reliability.model.run import CloseReason
from otel_reliability.report.findings import exploding_runs
from otel_reliability.sources.otlp_json import read_file
from otel_reliability.windows.window import AgentWindow
from tests.oracles.reading import close, load
from tests.shared import shared

PUBLISHED = {1: 0.420, 2: 0.273, 3: 0.220, 4: 0.200}
DATASET = "gpt-4o_airline_4trials"
FAULTS = "grok-3_retail_1trial_faults"


def window_of(file: str) -> AgentWindow:
    engine = Engine(
        Settings(windows=(WindowSettings("all", last=100_000),)), clock=lambda: 0.0, wall=None
    )
    for batch in read_file(str(shared(f"corpora/taubench/{file}"))):
        engine.receive(batch.spans)
    engine.flush(CloseReason.END_OF_INPUT)
    [key] = engine.agents.keys()
    state = engine.agents.agent(key)
    assert state is not None
    return state.windows["all"]


def by_k(window: AgentWindow, name: str) -> dict[int, float | None]:
    metric = window.metric(name)
    assert isinstance(metric, PassSeries)
    return {k: reading.value for k, reading in metric.by_k().items()}


@pytest.mark.parametrize("form", ["", ".turns"])
def test_published_passes_come_out_of_spans(form: str) -> None:
    """Whether a run is a conversation, or a turn whose last tells the outcome: pass^k as published,
    pass@k as in the truth.
    """
    window = window_of(f"{DATASET}{form}.otlp.jsonl.gz")
    truth: dict[str, Any] = load("corpora/taubench/truth.json")["datasets"][DATASET]["summary"]
    hat = by_k(window, "pass_hat_k")
    at = by_k(window, "pass_at_k")

    assert {k: round(value or 0, 3) for k, value in hat.items()} == PUBLISHED
    assert all(close(hat[int(k)], value) for k, value in truth["pass_hat_k"].items())
    assert all(close(at[int(k)], value) for k, value in truth["pass_at_k"].items())
    assert window.reading("pass_hat_k").runs == truth["runs"]


@pytest.fixture(scope="module")
def window() -> AgentWindow:
    return window_of(f"{DATASET}.otlp.jsonl.gz")


def test_each_task_has_the_entropy_and_similarity_of_its_records(window: AgentWindow) -> None:
    truth: dict[str, Any] = load("corpora/taubench/truth.json")["datasets"][DATASET]["per_task"]
    found: dict[str | None, TaskRow] = {line.task_id: line for line in task_table(window.rows())}

    assert set(found) == set(truth)
    for task, told in truth.items():
        line = found[task]
        assert line.runs == told["n"]
        assert line.distinct_paths == told["distinct_paths"]
        assert close(line.path_entropy_bits, told["path_entropy_bits"])
        assert close(line.path_entropy, told["path_entropy_bits"] / 2)
        assert close(line.path_similarity, told["lev_sim_all"])


def test_the_agent_is_the_mean_of_its_tasks(window: AgentWindow) -> None:
    truth: dict[str, Any] = load("corpora/taubench/truth.json")["datasets"][DATASET]["per_task"]

    for name, told in (
        ("path_entropy_bits", "path_entropy_bits"),
        ("path_similarity", "lev_sim_all"),
    ):
        reading = window.reading(name)
        assert close(reading.value, sum(task[told] for task in truth.values()) / len(truth))
        assert reading.runs == 200


def test_retries_are_chains_of_failures(window: AgentWindow) -> None:
    """Of 200 runs one explodes, 17 calls are retries; streaks of one tool without an error are
    none.
    """
    retries = [row.retries for row in window.rows() if row.retries is not None]

    assert Counter(one.longest_chain for one in retries) == {0: 189, 1: 7, 2: 3, 3: 1}
    assert sum(one.number for one in retries) == 17
    assert sum(row.failed_calls or 0 for row in window.rows()) == 73
    assert sum(row.tool_calls or 0 for row in window.rows()) == 1164
    assert len(exploding_runs(window.rows(), 3)) == 1
    assert window.reading("retry_explosion").value == 1.0
    assert close(window.reading("retry_explosion_share").value, 1 / 200)
    assert close(window.reading("retries_per_run").value, 17 / 200)


def test_injected_faults_show_as_retries() -> None:
    rows = window_of(f"{FAULTS}.otlp.jsonl.gz").rows()
    retries = [row.retries for row in rows if row.retries is not None]

    assert Counter(one.longest_chain for one in retries) == {0: 47, 1: 53, 2: 13, 3: 2}
    assert sum(one.number for one in retries) == 115
    assert len(exploding_runs(rows, 3)) == 2
