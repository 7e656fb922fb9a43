"""The report of real runs, against what their truth file says."""

from __future__ import annotations

import gzip
import json as standard_json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from otel_reliability.report import json
from otel_reliability.report.build import report_of
from otel_reliability.report.recording import Recording
from tests.report.build import loaded
from tests.report.schema import faults
from tests.shared import shared

AIRLINE, RETAIL = "gpt-4o_airline_4trials", "grok-3_retail_1trial_faults"


@cache
def reported(name: str) -> Any:
    return document(shared(f"corpora/taubench/{name}.otlp.jsonl.gz"))


def document(path: Path) -> Any:
    recording = Recording()
    recording.read(path)
    return loaded(json.render(report_of(recording.close())))


def agent_of(name: str) -> Any:
    [agent] = reported(name)["agents"]
    return agent


def truth(name: str) -> Any:
    return standard_json.loads(shared("corpora/taubench/truth.json").read_text("utf-8"))["datasets"][name]


@pytest.mark.parametrize("name", [AIRLINE, f"{AIRLINE}.turns", RETAIL])
def test_the_document_is_what_the_schema_says(name: str) -> None:
    assert list(faults(reported(name))) == []


@pytest.mark.parametrize("name", [AIRLINE, f"{AIRLINE}.turns"])
def test_published_pass_rates_come_out_of_spans(name: str) -> None:
    """Whether a run is a conversation, or one turn of it, of which the last tells the outcome."""
    passes, known = agent_of(name)["passes"], truth(AIRLINE)["summary"]

    assert passes["pass_hat_k"] == pytest.approx(known["pass_hat_k"], abs=1e-9)
    assert [round(value, 3) for value in passes["pass_hat_k"].values()] == [0.42, 0.273, 0.22, 0.2]
    assert {k: passes["pass_at_k"][k] for k in known["pass_at_k"]} == pytest.approx(known["pass_at_k"], abs=1e-9)


def test_each_task_is_as_the_truth_says() -> None:
    tasks = {task["task_id"]: task for task in agent_of(AIRLINE)["tasks"]}
    known = truth(AIRLINE)["per_task"]

    assert tasks.keys() == known.keys()
    for name, task in tasks.items():
        assert task["runs"] == known[name]["n"]
        assert task["path_entropy_bits"] == pytest.approx(known[name]["path_entropy_bits"], abs=1e-9)
        assert task["distinct_paths"] == known[name]["distinct_paths"]
        assert task["path_similarity"] == pytest.approx(known[name]["lev_sim_all"], abs=1e-9)
    assert len(agent_of(AIRLINE)["findings"]["exploding_runs"]) == 1


def test_one_attempt_a_task_gives_no_score() -> None:
    """Every run stands in its own task, so nothing can be compared; what would tell more is said."""
    agent = agent_of(RETAIL)

    assert (agent["score"], agent["tier"], agent["badge"]) == (None, None, None)
    assert "second attempts at a task" in [gap["missing"] for gap in agent["missing"]]


@pytest.mark.parametrize(("name", "exploding"), [(AIRLINE, 8), (RETAIL, 6)])
def test_without_arguments_the_report_says_that_they_were_unknown(tmp_path: Path, name: str, exploding: int) -> None:
    """Calls are then matched by tool alone, which finds more retries; readings and gaps say so."""
    path = tmp_path / "spans.jsonl"
    with gzip.open(shared(f"corpora/taubench/{name}.otlp.jsonl.gz"), "rt", encoding="utf-8") as file:
        path.write_text("".join(_without_arguments(line) for line in file), encoding="utf-8")
    [agent] = document(path)["agents"]

    assert len(agent["findings"]["exploding_runs"]) == exploding
    assert any("arguments unknown" in caveat for caveat in agent["caveats"])
    assert "arguments unknown" in agent["metrics"]["retry_explosion"]["note"]
    assert "arguments of tool calls" in [gap["missing"] for gap in agent["missing"]]


def _without_arguments(line: str) -> str:
    request = standard_json.loads(line)
    for resource in request["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                span["attributes"] = [each for each in span["attributes"] if "arguments" not in each["key"]]
    return standard_json.dumps(request) + "\n"
