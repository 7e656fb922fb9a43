"""`--outcomes`: a CSV file of outcomes that became known after the runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from otel_reliability.testing import span_id, trace_id, write_otlp
from tests.cli.command_line import call
from tests.report.build import run_spans

KEYED = ("--set", "mapping.outcome_key=ticket")


@pytest.fixture(name="spans")
def spans_of(tmp_path: Path) -> Path:
    """Six runs: three conversations of a run each, and one of three runs."""
    runs = [
        run_spans(n, "search reply", session=f"chat-{min(n, 4)}", notes={"ticket": f"T-{n}"})
        for n in range(1, 7)
    ]
    return write_otlp(tmp_path / "spans.jsonl", [one for run in runs for one in run])


def outcomes(folder: Path, *lines: str) -> Path:
    path = folder / "outcomes.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_lines_reach_runs_by_trace_run_session_and_key(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, spans: Path
) -> None:
    path = outcomes(
        tmp_path,
        "key,session_id,trace_id,run_id,success,remark",
        "T-1,,,,yes,",
        f",,{trace_id(2).hex()},,false,reopened",
        f",,,{trace_id(3).hex()}-{span_id(1).hex()},FAILED,",
        ",chat-4,,,true,",
    )
    done = call(capsys, "report", spans, "--outcomes", path, *KEYED, "--format", "json")
    [agent] = json.loads(done.out)["agents"]

    assert agent["success_rate"] == pytest.approx(4 / 6)
    assert agent["metrics"]["success_rate"]["runs"] == 6
    assert "no run here" not in done.err


def test_every_command_on_recordings_takes_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, spans: Path
) -> None:
    path = outcomes(tmp_path, "session_id,success", *(f"chat-{n},no" for n in range(1, 5)))
    done = call(capsys, "runs", spans, "--outcomes", path)
    runs = [json.loads(line) for line in done.out.splitlines()]
    assert {(run["outcome"], run["outcome_source"]) for run in runs} == {
        ("failure", "reliability.outcome")
    }
    gate = ("gate", spans, "--require", "success_rate>=0.5", "--min-runs", "5")
    assert call(capsys, *gate, "--outcomes", path).code == 1
    assert call(capsys, *gate).code == 3


def test_the_latest_line_counts_and_unknown_ones_are_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, spans: Path
) -> None:
    path = outcomes(
        tmp_path,
        "key,success,time",
        "T-1,yes,2024-01-02T00:00Z",
        "T-1,no,2024-01-01",
        "T-2,yes,",
        "T-2,no,",
        "T-99,no,",
    )
    done = call(capsys, "runs", spans, "--outcomes", path, *KEYED)
    found = [json.loads(line)["outcome"] for line in done.out.splitlines()]

    assert found[:3] == ["success", "failure", "completed"]
    assert "1 outcome names no run here." in done.err


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["ticket,result", "1,yes"], "has no outcomes"),
        (["key,success", "T-1,perhaps"], ":2: success is not true or false"),
        (["key,run_id,success", "T-1,r,yes"], ":2: give one of"),
    ],
)
def test_what_is_no_file_of_outcomes_is_bad_usage(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    spans: Path,
    lines: list[str],
    why: str,
) -> None:
    done = call(capsys, "report", spans, "--outcomes", outcomes(tmp_path, *lines))
    assert (done.code, why in done.err) == (2, True)
    assert call(capsys, "report", spans, "--outcomes", tmp_path / "none.csv").code == 2
