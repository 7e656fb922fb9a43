from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from otel_reliability.cli.output import PLAIN
from otel_reliability.testing import write_otlp
from tests.cli.command_line import call
from tests.report.build import attempts

FIVE = attempts("refund", True, True, False, True, True)

SCRIPT = """
set -eu
gate() {{ "{python}" -m otel_reliability.cli gate spans.jsonl "$@"; }}
gate --require 'score>=80' && echo "held"
gate --require 'pass_hat_k.1>=0.95' || echo "failed $?"
"""


@pytest.fixture(name="path")
def path_of(tmp_path: Path) -> Path:
    return write_otlp(tmp_path / "spans.jsonl", FIVE)


def test_exit_codes_in_a_shell(path: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", SCRIPT.format(python=sys.executable)],
        cwd=path.parent,
        capture_output=True,
        text=True,
        check=True,
    )

    assert [line for line in done.stdout.splitlines() if line.startswith(("held", "failed"))] == [
        "held",
        "failed 1",
    ]


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (
            ("--require", "score>=80"),
            0,
            "✓ support: score is 100, required >= 80 (5 runs; from 80 of 100 points assessed)",
        ),
        (
            ("--require", "score>=80", "--require", "pass_hat_k.1>=0.95"),
            1,
            "✗ support: pass_hat_k.1 is 0.8, required >= 0.95 (5 runs)",
        ),
        (
            ("--require", "pass_hat_k.1>=0.95"),
            1,
            "5 runs cannot distinguish 0.8 from 0.95: 4 of 5 is 38 % to 96 %",
        ),
        (
            ("--require", "score>=80", "--require", "calibration>=0.5"),
            3,
            "? support: calibration >= 0.5 is not checked: not enough data: it needs 1 run",
        ),
        (
            ("--require", "path_entropy<=1", "--min-runs", "6"),
            3,
            "5 runs, fewer than --min-runs 6",
        ),
        (("--require", "scor>=80"), 2, "'scor' names no metric. Did you mean score?"),
        ((), 2, "nothing is required"),
    ],
)
def test_each_exit_code_has_its_reason(
    path: Path,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    done = call(capsys, "gate", path, *options)

    assert done.code == code
    assert said in (done.err if code == 2 else done.out)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437"])
def test_marks_differ_where_a_terminal_lacks_them(encoding: str) -> None:
    assert len({mark.encode(encoding, PLAIN) for mark in "✓✗?"}) == 3


def test_bad_usage_weighs_more_than_a_failed_target(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = call(
        capsys, "gate", path, "--require", "score>100", "--require", 'agents["suport"].score>=1'
    )

    assert done.code == 2
    assert "the nearest is support" in done.err


def test_programs_read_json_and_junit(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    targets = ("--require", "tier>=STABLE", "--require", "pass_hat_k.1>=0.95")
    as_json, as_junit = (
        call(capsys, "gate", path, *targets, "--format", form) for form in ("json", "junit")
    )
    document = json.loads(as_json.out)
    [suite] = fromstring(as_junit.out.partition("\n")[2])

    assert as_json.code == as_junit.code == document["exit_code"] == 1
    assert [(each["target"], each["state"]) for each in document["verdicts"]] == [
        ("tier>=STABLE", "held"),
        ("pass_hat_k.1>=0.95", "failed"),
    ]
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")


def test_many_tasks_are_summed_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spans = [each for task in range(12) for each in attempts(f"t{task}", task > 2, first=task + 1)]
    path = write_otlp(tmp_path / "spans.jsonl", spans)
    done = call(capsys, "gate", path, "--require", "reliability.pass_at_k>=100", "--min-runs", "1")

    assert done.out.count("✗") == 3
    assert "and 7 more numbers of reliability.pass_at_k>=100: 7 held" in done.out
    assert "3 failed, 9 held" in done.out
