"""The report of real runs, against what their truth file says."""

from __future__ import annotations

import gzip
import json as standard_json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from otel_reliability.recording import Recording
from otel_reliability.report import json
from otel_reliability.report.build import report_of
from tests.report.build import loaded
from tests.report.schema import faults
from tests.shared import shared

AIRLINE = "gpt-4o_airline_4trials"
RETAIL = "grok-3_retail_1trial_faults"


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


@pytest.mark.parametrize("name", [AIRLINE, f"{AIRLINE}.turns", RETAIL])
def test_the_document_is_what_the_schema_says(name: str) -> None:
    assert list(faults(reported(name))) == []


def test_one_attempt_a_task_gives_no_score() -> None:
    """Every run stands in its own task, so nothing can be compared; what would tell
    more is said.
    """
    agent = agent_of(RETAIL)

    assert (agent["score"], agent["tier"], agent["badge"]) == (None, None, None)
    assert "second attempts at a task" in [gap["missing"] for gap in agent["missing"]]


@pytest.mark.parametrize(("name", "exploding"), [(AIRLINE, 8), (RETAIL, 6)])
def test_without_arguments_the_report_says_that_they_were_unknown(
    tmp_path: Path, name: str, exploding: int
) -> None:
    """Calls are then matched by tool alone, which finds more retries; readings and gaps say so."""
    path = tmp_path / "spans.jsonl"
    with gzip.open(
        shared(f"corpora/taubench/{name}.otlp.jsonl.gz"), "rt", encoding="utf-8"
    ) as file:
        path.write_text("".join(_without_arguments(line) for line in file), encoding="utf-8")
    [agent] = document(path)["agents"]

    assert len(agent["findings"]["exploding_runs"]) == exploding
    assert any("arguments unknown" in caveat for caveat in agent["caveats"])
    assert "arguments unknown" in agent["metrics"]["retry_explosion"]["note"]
    assert "arguments_unknown" in [one["kind"] for one in agent["data_quality"]]


def _without_arguments(line: str) -> str:
    request = standard_json.loads(line)
    for resource in request["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                span["attributes"] = [
                    each for each in span["attributes"] if "arguments" not in each["key"]
                ]
    return standard_json.dumps(request) + "\n"
