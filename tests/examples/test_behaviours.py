"""Agents that misbehave in known ways, from the framework to the report and the gate."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import call
from tests.examples.environments import PROJECT, NotInstallable, python_for

SCRIPT = Path(__file__).with_name("behaviours.py")
LIMIT = ("--set", "context_limits=house*=128000")

framework = pytest.mark.parametrize(
    "framework",
    [
        pytest.param("by_hand", marks=pytest.mark.sdk),
        pytest.param("pydantic_ai", marks=pytest.mark.real),
    ],
)


def recorded(framework: str, behaviour: str, runs: int, folder: Path) -> Path:
    try:
        python = python_for(framework)
    except NotInstallable as reason:
        pytest.skip(f"{framework} cannot be installed here: {reason}")
    command = [str(python), str(SCRIPT), framework, behaviour, str(runs)]
    env = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    env |= {"PYTHONPATH": str(PROJECT), "OTEL_SERVICE_NAME": "shop"}
    subprocess.run(command, cwd=folder, env=env, check=True, timeout=120)
    return folder / "spans.jsonl"


def reported(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[Any, str]:
    """The agent in the JSON report, and the page of the terminal."""
    document = json.loads(
        call(capsys, "report", *arguments, "--format", "json", "--no-intervals").out
    )
    [agent] = document["agents"]
    return agent, " ".join(call(capsys, "report", *arguments, "--no-intervals").out.split())


@framework
@pytest.mark.parametrize("runs", [20, 60, 100])
def test_random_agent(
    framework: str, runs: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At most 66 points, never STABLE, and flagged in the report and in the gate."""
    spans = recorded(framework, "random", runs, tmp_path)
    agent, page = reported(capsys, spans)
    gate = call(
        capsys, "gate", spans, "--require", "step_predictability>=0.3", "--require", "flag<=0"
    )

    assert agent["runs"] == runs
    assert agent["score"] <= 66
    assert agent["tier"] != "STABLE"
    assert agent["metrics"]["step_predictability"]["value"] <= 0.1
    assert agent["flags"] == ["random_steps"]
    assert "chooses its tools as if at random" in page
    # of branches, too, where the framework tells what was asked: equal requests are compared
    assert re.search("from (60|80) of 100 points assessed", page)
    assert gate.code == 1
    assert "worker: step_predictability is " in gate.out
    assert "required >= 0.3" in gate.out
    assert "2 failed" in gate.out
    assert "as if at random" in gate.out


@framework
def test_steady_agent(framework: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At least 95 points; nothing is flagged, and the gate holds."""
    spans = recorded(framework, "steady", 25, tmp_path)
    agent, page = reported(capsys, spans)
    gate = call(
        capsys, "gate", spans, "--require", "step_predictability>=0.95", "--require", "score>=95"
    )

    assert (agent["score"], agent["tier"], agent["flags"]) == (100.0, "STABLE", [])
    assert agent["metrics"]["step_predictability"]["value"] >= 0.95
    assert "at random" not in page
    assert (gate.code, "⚠" in gate.out) == (0, False)


@framework
def test_growing_chat(framework: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """20,000 to 110,000 tokens of 128,000 in seven turns: full at turn 9. Without the limit the
    model is named.
    """
    spans = recorded(framework, "chat", 7, tmp_path)
    agent, page = reported(capsys, spans, *LIMIT)
    unknown, _ = reported(capsys, spans)
    [gap] = [gap for gap in unknown["missing"] if gap["missing"] == "context limits"]

    assert "context_growth" in agent["flags"]
    assert "full at turn 9" in page
    assert "full at turn 9" in " ".join(
        call(capsys, "gate", spans, *LIMIT, "--require", "window.runs>=1").out.split()
    )
    assert unknown["flags"] == []
    assert "house-model-1" in gap["remedy"]


@framework
def test_agent_that_begins_to_crash(
    framework: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From run 81 on the model raises: found within 20 runs, by the errors."""
    agent, _ = reported(capsys, recorded(framework, "crash", 100, tmp_path))
    change = agent["change"]

    assert change["verdict"] == "changed"
    assert [80 < alarm["observation"] <= 100 for alarm in change["alarms"]] == [True]
    assert "runs that ended in an error 0 → 1" in change["sentence"]
