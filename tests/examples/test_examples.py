from __future__ import annotations

import ast
import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.examples.environments import EXAMPLES, PROJECT, NotInstallable, python_for

WATCH = Path(__file__).with_name("watch.py")
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/agent.py"))
FRAMEWORKS = sorted(path.parent.name for path in EXAMPLES.glob("*/requirements.in"))
PATIENCE = 300

USUAL = ["lookup_order", "check_policy", "issue_refund"]
PATHS = [
    *[USUAL] * 3,
    ["check_policy", "lookup_order", "issue_refund"],
    *[USUAL] * 2,
    [*USUAL, "issue_refund"],
    USUAL,
    [*USUAL, *["issue_refund"] * 3],
    USUAL,
]
"""What every example's script does, ticket by ticket."""


class Truth(NamedTuple):
    """What the telemetry of an example holds beside paths, failures and retries.

    - `end`: how its runs end but for ticket 9, which fails everywhere.
    - `tokens`: of ticket 1, in and out; `arguments`: whether they are recorded by default.
    - `tasks`, `sessions`: how many there are.
    """

    end: str
    tokens: tuple[int, int]
    arguments: bool
    tasks: int
    sessions: int


TRUTHS: Mapping[str, Truth] = {
    "by_hand": Truth("success", (5_700, 240), arguments=True, tasks=2, sessions=0),
    "google_adk": Truth("completed", (4_800, 160), arguments=False, tasks=0, sessions=10),
    "langgraph": Truth("completed", (4_800, 160), arguments=False, tasks=0, sessions=0),
    "openai_agents": Truth("completed", (4_800, 160), arguments=True, tasks=0, sessions=0),
    "openai_client": Truth("success", (4_800, 160), arguments=True, tasks=2, sessions=0),
    "pydantic_ai": Truth("completed", (238, 50), arguments=True, tasks=0, sessions=10),
}


class Performance(NamedTuple):
    """What a run of an example printed, and what both doors made of it."""

    printed: str
    live: Mapping[str, Any]
    recorded: Mapping[str, Any]

    @property
    def runs(self) -> Sequence[Mapping[str, Any]]:
        """The runs of the recording, by when they began."""
        return self.recorded["runs"]

    @property
    def score(self) -> float:
        """The score of the agent, by file."""
        return self.recorded["readings"][0]["score"]


@pytest.mark.parametrize(
    "name",
    # One of them runs with the SDK of this environment; the others need a framework, in an
    # environment with its own SDK.
    [
        pytest.param(name, marks=pytest.mark.real if name in FRAMEWORKS else pytest.mark.sdk)
        for name in NAMES
    ],
)
def test_an_example_shows_what_it_promises(name: str, tmp_path: Path) -> None:
    performed = perform(name, tmp_path)

    assert_runs_as_scripted(performed.runs, TRUTHS[name])
    assert_told(performed.runs, TRUTHS[name])
    assert_scorecard(performed)
    assert len(performed.live["runs"]) == 10
    assert performed.live == performed.recorded


def perform(name: str, folder: Path) -> Performance:
    try:
        python = python_for(name)
    except NotInstallable as reason:
        pytest.skip(f"{name} cannot be installed here: {reason}")
    ended = subprocess.run(
        [str(python), "-P", str(WATCH), str(EXAMPLES / name / "agent.py"), "runs.json"],
        cwd=folder,
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert ended.returncode == 0, ended.stderr[-3_000:]
    return Performance(
        ended.stdout, **json.loads((folder / "runs.json").read_text(encoding="utf-8"))
    )


def _environment() -> dict[str, str]:
    """As at a terminal, without the keys and settings that one may have; hashes can be compared
    across engines.
    """
    foreign = ("OTEL_", "OPENAI_", "GOOGLE_", "LANGSMITH_", "LANGCHAIN_", "LOGFIRE_", "COVERAGE_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    ours = {"OTEL_RELIABILITY_LOUD": "1", "OTEL_RELIABILITY_HASH_KEY": "00" * 16}
    return kept | ours | {"PYTHONPATH": str(PROJECT), "COLUMNS": "100", "PYTHONWARNINGS": "default"}


def assert_runs_as_scripted(runs: Sequence[Mapping[str, Any]], truth: Truth) -> None:
    """Ten runs of one agent: their paths, retries, outcomes and tokens are those of the script."""
    assert [run["key"][:4] for run in runs] == [["", "shop", "", "refunds"]] * 10
    assert [run["path"] for run in runs] == PATHS
    assert [run["retries"] for run in runs] == [0] * 6 + [1, 0, 3, 0]
    assert [run["outcome"] for run in runs] == [truth.end] * 8 + ["failure", truth.end]
    assert (runs[0]["input_tokens"], runs[0]["output_tokens"]) == truth.tokens
    assert all(run["input_tokens"] and run["output_tokens"] for run in runs)


def assert_told(runs: Sequence[Mapping[str, Any]], truth: Truth) -> None:
    """Arguments, tasks and sessions are there where the instrumentation or the application tells
    them, and nowhere else.
    """
    assert {run["arguments_known"] for run in runs} == {truth.arguments}
    assert len({run["task_id"] for run in runs} - {None}) == truth.tasks
    assert len({run["session_id"] for run in runs} - {None}) == truth.sessions
    assert not any(run["nested"] or run["implicit"] or run["incomplete"] for run in runs)


def assert_scorecard(performed: Performance) -> None:
    """The score of the live metrics is printed, and the scorecard of the recorded spans with the
    same score.
    """
    live = re.search(r"^live: a score of ([\d.]+)$", performed.printed, re.MULTILINE)
    card = re.search(r"^refunds ─+ shop$.*?(\d+)/100", performed.printed, re.MULTILINE | re.DOTALL)
    assert live
    assert card
    assert live[1] == f"{performed.score:.1f}"
    assert card[1] == f"{performed.score:.0f}"


def test_every_example_is_described_and_known() -> None:
    assert sorted(TRUTHS) == NAMES
    for name in NAMES:
        told = (
            ast.get_docstring(ast.parse((EXAMPLES / name / "agent.py").read_text(encoding="utf-8")))
            or ""
        )
        assert f"python examples/{name}/agent.py" in told
        assert (f"examples/{name}/requirements.txt" in told) == (name in FRAMEWORKS)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_requirements_hold_hashes_and_no_addresses(name: str) -> None:
    text = (EXAMPLES / name / "requirements.txt").read_text(encoding="utf-8")
    asked = re.findall(
        r"^[\w-]+", (EXAMPLES / name / "requirements.in").read_text(encoding="utf-8"), re.MULTILINE
    )
    entries = re.split(r"\n(?=[A-Za-z])", text)

    assert "://" not in text
    assert all("--hash=sha256:" in entry for entry in entries)
    assert {*asked, "opentelemetry-sdk", "rich"} <= {entry.partition("==")[0] for entry in entries}
