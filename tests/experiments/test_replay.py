"""tau-bench's recorded attempts, replayed as an experiment: its published pass^k comes out."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from otel_reliability.model.run import Run
from otel_reliability.recording import REPORT_SETTINGS, Recording
from otel_reliability.windows.window import measure
from tests.cli.command_line import call
from tests.shared import shared

REPLAY: Final = """
import json, os, sys, urllib.parse, urllib.request

pairs = (each.split("=", 1) for each in os.environ["OTEL_RESOURCE_ATTRIBUTES"].split(","))
given = {key: urllib.parse.unquote(value) for key, value in pairs}
name = given["reliability.task.id"] + "-" + given["reliability.trial"]
with open(os.path.join(os.path.dirname(__file__), name + ".json"), "rb") as file:
    body = file.read()
urllib.request.urlopen(urllib.request.Request(
    os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces",
    body, {"Content-Type": "application/json"},
)).read()
"""
"""An agent that sends the spans of the recorded attempt."""
TRIALS: Final = 4


def attempt_of(request: dict[str, Any]) -> tuple[str, str]:
    """Return the task and the trial that a recorded request names."""
    found = {
        pair["key"]: pair["value"].get("stringValue") or pair["value"].get("intValue")
        for group in request["resourceSpans"]
        for scope in group["scopeSpans"]
        for span in scope["spans"]
        for pair in span["attributes"]
        if pair["key"] in {"reliability.task.id", "reliability.trial"}
    }
    return str(found["reliability.task.id"]), str(found["reliability.trial"])


@pytest.mark.real
def test_recorded_attempts_give_their_published_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = shared("corpora/taubench/gpt-4o_airline_4trials.otlp.jsonl.gz")
    truth = json.loads(shared("corpora/taubench/truth.json").read_text())
    summary = truth["datasets"]["gpt-4o_airline_4trials"]["summary"]
    ids: set[str] = set()
    with gzip.open(recording, "rt") as lines:
        for line in lines:
            task_id, trial = attempt_of(json.loads(line))
            ids.add(task_id)
            (tmp_path / f"{task_id}-{trial}.json").write_text(line)
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text("\n".join(json.dumps({"id": id_, "input": "as recorded"}) for id_ in ids))
    agent = tmp_path / "replay.py"
    agent.write_text(REPLAY)

    out = tmp_path / "out.jsonl"
    options = ["--repeat", TRIALS, "--jobs", 2, "--out", out]
    done = call(
        capsys, "experiment", tasks, *options, "--format", "json", "--", sys.executable, agent
    )
    runs: list[Run] = []
    recorded = Recording(final=runs.extend)
    recorded.read_all([out])
    recorded.close()

    assert json.loads(done.out)["attempts"] == len(ids) * TRIALS == len(runs)
    series = measure(runs, REPORT_SETTINGS).series()
    for name in ("pass_hat_k", "pass_at_k"):
        found = {
            str(dict(attributes)["k"]): reading.value
            for spec, attributes, reading in series
            if spec.name == name
        }
        assert str(TRIALS) in found
        assert found == pytest.approx({k: summary[name][k] for k in found})
    assert summary["published"]["pass_hat_k"] == pytest.approx(summary["pass_hat_k"], abs=5e-4)
