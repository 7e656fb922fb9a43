"""`@pytest.mark.reliability`, in suites of users."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SUITE = """
import itertools
import pytest
from otel_reliability.experiments.faults import faulty

number = itertools.count()

@faulty
def lookup(key):
    return key.upper()

@pytest.mark.reliability(ARGUMENTS)
def test_agent(tmp_path):
    n = next(number)
    BODY
"""


@pytest.mark.parametrize(
    ("arguments", "body", "expected"),
    [
        ("require='success_rate>=0.8'", "assert tmp_path.exists()", "1 passed"),
        ("require='success_rate>=0.8'", "assert n % 2", "success_rate>=0.8: FAIL"),
        ("require='success_rate>=0.8', repeat=3", "pass", "success_rate>=0.8: UNDECIDED"),
        ("require='score>=80'", "pass", "is no rate of attempts"),
        (
            "require='fault_robustness>=0.9', faults=0.5",
            "assert lookup('a') == 'A'",
            "fault_robustness>=0.9: FAIL",
        ),
        ("require='fault_robustness>=0.9', faults=0.5", "pass", "no tool call could fail"),
    ],
)
def test_marked_test_is_an_experiment(
    tmp_path: Path, arguments: str, body: str, expected: str
) -> None:
    suite = tmp_path / "test_suite.py"
    suite.write_text(SUITE.replace("ARGUMENTS", arguments).replace("BODY", body))

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "--strict-markers", suite],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert expected in done.stdout, done.stdout
