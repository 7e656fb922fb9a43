"""`@pytest.mark.reliability`, in suites of users."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.test_pytest_plugin import WITHOUT

SUITE = """
import itertools
import pytest
from otel_reliability.experiments.faults import faulty

number = itertools.count()

@faulty
def lookup(key):
    return key.upper()

@pytest.mark.reliability(ARGUMENTS)
def test_agent_AT(tmp_path, varied_input):
    n = next(number)
    BODY
"""


CASES = [
    ("require='success_rate>=0.8'", "assert tmp_path.exists()", "passed"),
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
        "passed",
    ),
    ("require='prompt_robustness>=0.9', vary='prompt'", "pass", "no input was varied"),
    ("require='success_rate>=0.9', vary='tone'", "pass", "'tone' is none of"),
]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What one run of pytest says of the test of each case, by its name: `passed`, or its failure.
    Each is in a file of its own.
    """
    folder = tmp_path_factory.mktemp("suites")
    for at, (arguments, body, _) in enumerate(CASES):
        suite = SUITE.replace("ARGUMENTS", arguments).replace("BODY", body)
        (folder / f"test_suite_{at}.py").write_text(suite.replace("_AT", f"_{at}"))
    results = folder / "results.xml"
    command = [sys.executable, "-m", "pytest", "-q", *WITHOUT, "--strict-markers"]
    subprocess.run(
        [*command, f"--junitxml={results}"], cwd=folder, capture_output=True, check=False
    )
    return {
        case.attrib["name"]: "".join(part.text or "" for part in case) if len(case) else "passed"
        for case in ET.parse(results).iter("testcase")
    }


@pytest.mark.parametrize("at", range(len(CASES)), ids=[" ".join(case[::2]) for case in CASES])
def test_marked_test_is_an_experiment(outputs: dict[str, str], at: int) -> None:
    assert CASES[at][2] in outputs[f"test_agent_{at}"]


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
        [
            *(sys.executable, "-m", "pytest", "-q", *WITHOUT),
            *("--otel-reliability-max-cost", "1.5", suite),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert expected in done.stdout, done.stdout
