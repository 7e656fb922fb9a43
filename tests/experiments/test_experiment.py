"""Experiments, run as users run them."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from otel_reliability.experiments.journal import read_results
from otel_reliability.model.run import Outcome, Run
from otel_reliability.recording import Recording
from tests.cli.command_line import Done, call
from tests.experiments.agents import NODE_AGENT, PLAIN_AGENT, SDK_AGENT, written
from tests.real.waiting import until

TASKS = [
    {"id": "a", "input": "hello", "expect": "HELLO"},
    {"id": "b", "input": "bye", "expect": {"contains": "BYE"}},
]


class Bench:
    """A folder with tasks, an agent, and the recording of its experiment."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.out = folder / "out.jsonl"
        self.tasks = folder / "tasks.jsonl"
        self.tasks.write_text("\n".join(map(json.dumps, TASKS)))
        self.agent = written(folder, PLAIN_AGENT)
        self._capsys = capsys

    def run(self, *options: object, command: list[str] | None = None) -> Done:
        agent = self.agent if command is None else command
        return call(
            self._capsys, "experiment", self.tasks, "--out", self.out, *options, "--", *agent
        )

    def result(self, *options: object, command: list[str] | None = None) -> tuple[int, Any]:
        done = self.run("--format", "json", *options, command=command)
        return done.code, json.loads(done.out)

    @property
    def runs(self) -> list[Run]:
        found: list[Run] = []
        recording = Recording(final=found.extend)
        recording.read_all([self.out])
        recording.close()
        return found


@pytest.fixture
def bench(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Bench:
    return Bench(tmp_path, capsys)


def test_agent_that_always_succeeds_passes_early(bench: Bench) -> None:
    code, found = bench.result("--require", "success_rate>=0.7", "--jobs", 2)

    assert (code, found["verdict"]) == (0, "pass")
    assert found["attempts"] < 30 < found["fixed_design_attempts"]
    runs = bench.runs
    assert len(runs) == found["attempts"]
    assert {run.task_id for run in runs} == {"a", "b"}
    assert sorted(run.trial or 0 for run in runs if run.task_id == "a")[:3] == [0, 1, 2]
    assert {run.outcome for run in runs} == {Outcome.SUCCESS}
    assert {run.key.environment for run in runs} == {"experiment"}


def test_agent_that_is_wrong_fails_early(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEHAVIOUR", "wrong")

    code, found = bench.result("--require", "success_rate>=0.7")

    assert (code, found["verdict"]) == (1, "fail")
    assert found["attempts"] < 12
    assert {run.outcome for run in bench.runs} == {Outcome.FAILURE}


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_agent_with_the_sdk_needs_no_change(bench: Bench, protocol: str) -> None:
    agent = written(bench.folder, SDK_AGENT)

    done = bench.run("--repeat", 1, "--protocol", protocol, command=agent)

    assert done.code == 0, done.err
    runs = bench.runs
    assert sorted((run.task_id, run.trial, run.path) for run in runs) == [
        ("a", 0, ("search",)),
        ("b", 0, ("search",)),
    ]
    assert {run.outcome_source for run in runs} == {"reliability.run.success"}


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_agent_in_javascript_continues_the_trace(bench: Bench) -> None:
    program = bench.folder / "agent.js"
    program.write_text(NODE_AGENT)

    done = bench.run("--repeat", 1, command=["node", str(program), "{input}"])

    assert done.code == 0, done.err
    found = sorted(bench.runs, key=lambda run: run.task_id or "")
    assert [(run.task_id, run.outcome, run.key.agent) for run in found] == [
        ("a", Outcome.SUCCESS, "node"),
        ("b", Outcome.SUCCESS, "node"),
    ]


def test_attempt_that_crashes_before_its_first_span_is_a_failed_run(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEHAVIOUR", "crash second")
    monkeypatch.setenv("COUNT_FILE", str(bench.folder / "count"))

    done = bench.run("--repeat", 2, "--require", "pass_hat_k>=0.9")

    assert "1 attempt of 4 sent no agent run" in done.out
    assert "The first error: no key" in done.out
    runs = bench.runs
    assert [run.outcome for run in runs].count(Outcome.FAILURE) == 1
    assert {run.key.agent for run in runs} == {"support"}


def test_attempt_beyond_the_time_limit_failed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEHAVIOUR", "sleep")

    bench.run("--repeat", 1, "--timeout", 1, "--jobs", 2)

    assert {(one.success, one.source) for one in read_results(bench.out)} == {(False, "timeout")}


def test_check_decides_with_the_output(bench: Bench) -> None:
    check = bench.folder / "check.py"
    check.write_text(
        "import json, sys\ngiven = json.load(sys.stdin)\n"
        "sys.exit(given['output'].strip() != given['input'].upper() or given['id'] == 'b')\n"
    )
    bench.tasks.write_text('{"id": "a", "input": "x"}\n{"id": "b", "input": "y"}\n')

    bench.run("--repeat", 1, "--check", f"{sys.executable} {check}")

    found = {one.task_id: (one.success, one.source) for one in read_results(bench.out)}
    assert found == {"a": (True, "check"), "b": (False, "check")}


def test_without_any_rule_only_errors_count_and_the_page_says_so(bench: Bench) -> None:
    bench.tasks.write_text('{"input": "x"}\n')

    done = bench.run("--repeat", 2)

    assert "Only errors count" in done.out


def test_resumed_experiment_counts_earlier_attempts(bench: Bench) -> None:
    bench.run("--repeat", 1)
    refused = bench.run("--repeat", 1)
    code, found = bench.result("--repeat", 2, "--resume")

    assert refused.code == 2
    assert "--resume" in refused.err
    assert (code, found["attempts"]) == (0, 4)
    trials = sorted((run.task_id, run.trial) for run in bench.runs)
    assert trials == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]


def test_experiment_that_was_killed_goes_on_as_if_it_never_was(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after some attempts, within the line of the next: the same attempts, outcomes, verdict
    and report as in one go.
    """
    monkeypatch.setenv("BEHAVIOUR", "fickle")
    options = (
        "--require",
        "success_rate>=0.6",
        "--require",
        "success_rate>=0.2",
        "--max-runs",
        "14",
    )
    in_one_go = bench.result(*options)
    expected = outcomes_of(bench)
    bench.out.rename(bench.folder / "whole.jsonl")
    command = [sys.executable, "-m", "otel_reliability.cli", "experiment", str(bench.tasks)]
    command += ["--out", str(bench.out), *options, "--", *bench.agent]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        until(lambda: bench.out.exists() and len(read_results(bench.out)) >= 3, "attempts")
        process.kill()
    killed = len(read_results(bench.out))
    begun = bench.out.read_bytes().splitlines(keepends=True)[0]
    with bench.out.open("ab") as file:
        file.write(begun + begun[: len(begun) // 2])  # of an attempt that did not end

    resumed = bench.result(*options, "--resume")

    assert 3 <= killed < len(expected)
    assert outcomes_of(bench) == expected
    assert resumed[0] == in_one_go[0]
    for key in ("verdict", "attempts", "targets"):
        assert resumed[1][key] == in_one_go[1][key]
    assert sorted((run.task_id, run.trial) for run in bench.runs) == sorted(
        (task, trial) for task, trial, _, _ in expected
    )


def outcomes_of(bench: Bench) -> list[tuple[str, int, str, bool]]:
    results = read_results(bench.out)
    return sorted((one.task_id, one.trial, one.condition, one.success) for one in results)


def test_max_cost_stops_before_it_is_exceeded(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEHAVIOUR", "priced")

    code, found = bench.result("--require", "success_rate>=0.9", "--max-cost", 1.3)

    assert (code, found["verdict"], found["attempts"]) == (3, "undecided", 3)
    assert found["cost_usd"] == pytest.approx(1.2)


def test_unknown_cost_stops_where_cost_is_limited(bench: Bench) -> None:
    code, found = bench.result("--require", "success_rate>=0.9", "--max-cost", 1)

    assert (code, found["attempts"]) == (3, 1)
    assert "does not say what it cost" in found["notes"][0]


def test_interrupt_keeps_what_was_recorded(bench: Bench) -> None:
    command = [sys.executable, "-m", "otel_reliability.cli", "experiment", str(bench.tasks)]
    options = ["--out", str(bench.out), "--require", "success_rate>=0.99"]
    process = subprocess.Popen(
        [*command, *options, "--", *bench.agent], stdout=subprocess.PIPE, text=True
    )
    until(lambda: bench.out.exists() and len(read_results(bench.out)) >= 2, "attempts")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)

    assert process.returncode == 3, out
    assert "it was interrupted" in out
    assert len(read_results(bench.out)) >= 2


def test_command_that_is_no_program_is_bad_usage(bench: Bench) -> None:
    done = bench.run(command=["no-such-program"])

    assert done.code == 2
    assert "no-such-program" in done.err
    assert not bench.out.exists()
