"""The paths and retries of a benchmark's runs, from its spans, against what its own records say."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from otel_reliability.metrics.stability.notable_runs import explosions
from otel_reliability.metrics.stability.tables import TaskRow, task_table
from otel_reliability.windows.window import AgentWindow
from tests.oracles.reading import close, load
from tests.oracles.test_taubench import DATASET, window_of

FAULTS = "grok-3_retail_1trial_faults"


@pytest.fixture(scope="module")
def window() -> AgentWindow:
    """The window over all conversations."""
    return window_of(f"{DATASET}.otlp.jsonl.gz")


def test_each_task_has_the_entropy_and_similarity_of_its_records(window: AgentWindow) -> None:
    """Per task, to 1e-9: entropy of whole sequences in bits, distinct ones, mean pairwise similarity."""
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
    """All tasks have four trials, so the agent's entropy and similarity are their plain means."""
    truth: dict[str, Any] = load("corpora/taubench/truth.json")["datasets"][DATASET]["per_task"]

    for name, told in (("path_entropy_bits", "path_entropy_bits"), ("path_similarity", "lev_sim_all")):
        reading = window.reading(name)
        assert close(reading.value, sum(task[told] for task in truth.values()) / len(truth))
        assert reading.runs == 200


def test_retries_are_chains_of_failures(window: AgentWindow) -> None:
    """Of 200 runs one explodes, 17 calls are retries; streaks of one tool without an error are none."""
    retries = [row.retries for row in window.rows() if row.retries is not None]

    assert Counter(one.longest_chain for one in retries) == {0: 189, 1: 7, 2: 3, 3: 1}
    assert sum(one.number for one in retries) == 17
    assert sum(row.failed_calls or 0 for row in window.rows()) == 73
    assert sum(row.tool_calls or 0 for row in window.rows()) == 1164
    assert len(explosions(window.rows())) == 1
    assert window.reading("retry_explosion").value == 1.0
    assert close(window.reading("retry_explosion_share").value, 1 / 200)
    assert close(window.reading("retries_per_run").value, 17 / 200)


def test_injected_faults_show_as_retries() -> None:
    """A recording with service errors injected: most runs retry, two of them three times the same call."""
    rows = window_of(f"{FAULTS}.otlp.jsonl.gz").rows()
    retries = [row.retries for row in rows if row.retries is not None]

    assert Counter(one.longest_chain for one in retries) == {0: 47, 1: 53, 2: 13, 3: 2}
    assert sum(one.number for one in retries) == 115
    assert len(explosions(rows)) == 2
