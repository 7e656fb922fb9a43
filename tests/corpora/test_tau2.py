"""tau2-bench: single trials with real times, tokens and parallel calls, in lines that are not in
time order.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tests.corpora.recordings import rebuilt, recording
from tests.shared import SHARED, shared

DATA_SETS = sorted(
    file.name.removesuffix(".otlp.jsonl.gz") for file in (SHARED / "corpora/tau2").glob("*.gz")
)
NONE_HERE = pytest.param("", marks=pytest.mark.skip(reason="../shared/corpora/tau2 is not here"))


@pytest.mark.parametrize("name", DATA_SETS or [NONE_HERE])
def test_every_run_is_what_the_benchmark_says(name: str) -> None:
    """Task, success, calls, failed calls and tokens, run by run; paths as the sequences, but for
    parallel calls.
    """
    told: dict[str, Any] = json.loads(
        shared("corpora/tau2/truth.json").read_text(encoding="utf-8")
    )["datasets"][name]
    spans = recording(f"tau2/{name}.otlp.jsonl.gz").spans
    found = rebuilt(spans)
    runs = {(run.task_id, run.trial): run for run in found.runs}

    assert len(found.runs) == len(runs) == told["summary"]["runs"]
    assert found.accounts == {("received", ""): len(spans), ("used", ""): len(spans)}
    for true in told["runs"]:
        run = runs[true["task"], true["trial"]]
        failed = sum(not call.ok for call in run.tool_calls or ())
        assert (run.success, len(run.tool_calls or ()), failed) == (
            true["success"],
            true["n_calls"],
            true["errors"],
        )
        assert (run.input_tokens, run.output_tokens) == (
            true["input_tokens"],
            true["output_tokens"],
        )
        assert Counter(run.path or ()) == Counter(
            told["per_task"][true["task"]]["sequences"][true["trial"]]
        )


@pytest.mark.parametrize("name", DATA_SETS or [NONE_HERE])
def test_as_started_the_path_is_the_sequence(name: str) -> None:
    """By the clock alone, every path is the order in which the benchmark made the calls."""
    told: dict[str, Any] = json.loads(
        shared("corpora/tau2/truth.json").read_text(encoding="utf-8")
    )["datasets"][name]
    found = rebuilt(
        recording(f"tau2/{name}.otlp.jsonl.gz").spans, assembly={"parallel": "as_started"}
    )

    for run in found.runs:
        assert list(run.path or ()) == told["per_task"][run.task_id]["sequences"][run.trial or 0]
