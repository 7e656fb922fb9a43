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
def test_agent(tmp_path, varied_input):
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
        (
            "require='prompt_robustness>=0.9', vary='prompt'",
            "assert varied_input('Refund order 7') == 'Refund order 7'",
            "prompt_robustness>=0.9: FAIL",
        ),
        (
            "require='prompt_robustness>=0.7', vary='prompt'",
            "assert 'order' in varied_input('Refund order 7').lower()",
            "1 passed",
        ),
        ("require='prompt_robustness>=0.9', vary='prompt'", "pass", "no input was varied"),
        ("require='success_rate>=0.9', vary='tone'", "pass", "'tone' is none of"),
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


PRICED = """
import pytest
from opentelemetry import trace

@pytest.mark.reliability(require="success_rate>=0.9")
def test_agent():
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a", COST}
    with trace.get_tracer("agent").start_as_current_span("invoke_agent", attributes=attributes):
        pass
"""


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        ('"reliability.run.cost": 0.4', "1.2 of 1.5 US dollars are spent"),
        ("", "does not say what it cost"),
    ],
)
def test_costs_of_a_marked_test_are_bounded(tmp_path: Path, cost: str, expected: str) -> None:
    suite = tmp_path / "test_suite.py"
    suite.write_text(PRICED.replace("COST", cost))

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--otel-reliability-max-cost", "1.5", suite],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert expected in done.stdout, done.stdout
