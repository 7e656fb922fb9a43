"""Disturbed attempts: other forms of the input, and tool calls that fail."""

from __future__ import annotations

import asyncio
import inspect
import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from otel_reliability.errors import ConfigurationError
from otel_reliability.experiments.faults import VARIABLE, Faults, ToolFault, faulty
from otel_reliability.experiments.journal import read_results
from otel_reliability.experiments.rewriters import REWRITERS, variants_of
from tests.cli.command_line import Done, call
from tests.experiments.agents import written

AGENT = """
import sys
from otel_reliability.experiments.faults import faulty

@faulty
def lookup(key):
    return key.upper()

text = sys.stdin.read()
BODY
"""
RETRIES = """
for attempt in range(8):
    try:
        found = lookup(text)
    except Exception:
        continue
    if found == text.upper():
        break
print(found)
"""
FRAGILE = "print(lookup(text))"
CASE = "print('OK' if text.startswith('Refund') else 'what?')"


def run(
    folder: Path, capsys: pytest.CaptureFixture[str], body: str, task: dict[str, Any], *options: str
) -> tuple[Done, Counter[tuple[str, bool]]]:
    tasks = folder / "tasks.jsonl"
    tasks.write_text(json.dumps(task))
    out = folder / "out.jsonl"
    agent = written(folder, AGENT.replace("BODY", body))
    name = ["--name", "support", "--jobs", "2"]
    done = call(capsys, "experiment", tasks, "--out", out, *name, *options, "--", *agent)
    found = Counter((one.condition, one.success) for one in read_results(out))
    return done, found


def robustness(folder: Path, capsys: pytest.CaptureFixture[str], name: str) -> float:
    """The number of that name in a report of the recording."""
    done = call(capsys, "report", folder / "out.jsonl", "--format", "json", "--no-intervals")
    [agent] = json.loads(done.out)["agents"]
    return agent["metrics"][name]["value"]


LOOKUP = {"id": "a", "input": "hello", "expect": "HELLO"}
FAULTS = ("--fault", "tools:0.5", "--repeat", "12")


def test_agent_that_retries_keeps_its_accuracy_under_faults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, found = run(tmp_path, capsys, RETRIES, LOOKUP, *FAULTS)

    assert found == {("baseline", True): 12, ("fault", True): 12}
    assert robustness(tmp_path, capsys, "fault_robustness") >= 0.95


def test_agent_that_does_not_retry_loses_about_the_fault_rate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done, found = run(
        tmp_path, capsys, FRAGILE, LOOKUP, *FAULTS, "--require", "fault_robustness>=0.9"
    )

    assert found["baseline", False] == 0
    assert 3 <= found["fault", False] <= 9
    assert done.code == 1, done.out
    assert "fault_robustness>=0.9: FAIL" in done.out
    assert 0.25 <= robustness(tmp_path, capsys, "fault_robustness") <= 0.75


def test_agent_without_tools_that_can_fail_is_not_called_robust(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = ("--require", "fault_robustness>=0.5")
    done, _ = run(tmp_path, capsys, "print(text.upper())", LOOKUP, "--fault", "tools:0.5", *target)

    assert done.code == 3, done.out
    assert "no tool call could fail" in " ".join(done.out.split())


def test_agent_that_depends_on_letter_case_loses_robustness_to_prompts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = {"id": "a", "input": "Refund order A7", "expect": "OK"}

    done, found = run(tmp_path, capsys, CASE, task, "--vary", "prompt", "--repeat", "4")

    assert found["baseline", True] == 4
    assert found["prompt", False] >= 2
    assert robustness(tmp_path, capsys, "prompt_robustness") <= 0.5
    assert "prompt of task a: refund order A7" in done.err


def test_own_variants_of_a_task_come_before_rewriters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = {"id": "a", "input": "Refund A7", "expect": "OK", "variants": ["Refund: A7"]}

    _, found = run(tmp_path, capsys, CASE, task, "--vary", "prompt", "--repeat", "2")

    assert found == {("baseline", True): 2, ("prompt", True): 2}


def test_variants_keep_identifiers_and_differ_from_the_input() -> None:
    text = "Please refund order ORD-7 of ann@example.com. Today is 2026-01-31."
    found = variants_of("prompt", "a", text)

    assert text not in found
    assert len(set(found)) == len(found) == len(REWRITERS["prompt"])
    assert all("ORD-7" in each and "ann@example.com" in each for each in found)


def test_structure_keeps_the_values() -> None:
    found = variants_of("structure", "a", '{"order_id": 7, "lines": [{"unit_price": 1.5}]}')

    assert [json.loads(each) for each in found] == [
        {"order_id": 7, "lines": [{"unit_price": 1.5}]},
        {"orderId": 7, "lines": [{"unitPrice": 1.5}]},
        {"order_id": 7, "lines": [{"unit_price": 1.5}]},
        {"data": {"order_id": 7, "lines": [{"unit_price": 1.5}]}},
    ]
    with pytest.raises(ConfigurationError, match="JSON"):
        variants_of("structure", "a", "no JSON")


def test_decorator_does_nothing_outside_of_an_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert [faulty(str.upper)("a") for _ in range(20)] == ["A"] * 20


async def _double(value: int) -> int:
    return 2 * value


@pytest.mark.parametrize("tool", [_double, abs])
def test_every_call_fails_at_rate_one(
    tool: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = tmp_path / "counts"
    monkeypatch.setenv(VARIABLE, Faults(1.0, "1", ("error",), str(counts)).encoded())

    def called() -> Any:
        found = faulty(tool)(2)
        return asyncio.run(found) if inspect.iscoroutine(found) else found

    for _ in range(3):
        with pytest.raises(ToolFault):
            called()
    assert counts.read_text() == ".x" * 3


SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    result = {"content": [{"type": "text", "text": "fine"}]} if message["method"] == "tools/call" else {}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@pytest.mark.parametrize(("kind", "expected"), [("error", True), (None, False)])
def test_proxy_fails_calls_of_tools_only(tmp_path: Path, kind: str | None, expected: bool) -> None:
    server = tmp_path / "server.py"
    server.write_text(SERVER)
    faults = Faults(1.0, "1", (kind or "",), str(tmp_path / "counts")).encoded()
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "x"}},
    ]

    done = subprocess.run(
        [sys.executable, "-m", "otel_reliability.cli", "fault-proxy", "--", sys.executable, server],
        input="".join(json.dumps(message) + "\n" for message in messages),
        env={VARIABLE: faults} if kind else {},
        capture_output=True,
        text=True,
        check=True,
    )

    answers = {one["id"]: one["result"] for one in map(json.loads, done.stdout.splitlines())}
    assert answers[1] == {}
    assert answers[2].get("isError", False) is expected


NODE_CLIENT = """
const { spawnSync } = require("node:child_process");
const [, , python, server, tries] = process.argv;
const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "lookup" } };
for (let number = 0; number < Number(tries); number += 1) {
  const proxy = ["-m", "otel_reliability.cli", "fault-proxy", "--", python, server];
  const answer = spawnSync(python, proxy, { input: JSON.stringify(call) + "\\n" });
  const found = JSON.parse(answer.stdout.toString()).result;
  if (!found.isError) {
    console.log(found.content[0].text);
    break;
  }
}
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.parametrize(("tries", "low", "high"), [(1, 0.1, 0.9), (9, 1.0, 1.0)])
def test_agent_in_javascript_with_an_mcp_server_behind_the_proxy(
    tries: int, low: float, high: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that retries keeps its accuracy; one that does not loses about the rate of faults."""
    server, client, tasks = (tmp_path / name for name in ("server.py", "client.js", "tasks.jsonl"))
    server.write_text(SERVER)
    client.write_text(NODE_CLIENT)
    tasks.write_text(json.dumps({"id": "a", "input": "x", "expect": "fine"}))
    out = ("--out", tmp_path / "out.jsonl", "--name", "client", "--jobs", "2")
    faults = ("--fault", "tools:0.5", "--fault-kind", "error", "--repeat", "3")
    agent = ("node", client, sys.executable, server, tries)

    done = call(capsys, "experiment", tasks, *out, *faults, "--", *map(str, agent))

    assert done.code == 0, done.err
    assert low <= robustness(tmp_path, capsys, "fault_robustness") <= high


def test_agent_that_lost_success_fails_against_the_earlier_experiment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path, capsys, FRAGILE, LOOKUP, "--repeat", "12")
    earlier = (tmp_path / "out.jsonl").rename(tmp_path / "earlier.jsonl")

    lost, _ = run(tmp_path, capsys, "print('sorry')", LOOKUP, "--against", str(earlier))

    assert lost.code == 1, lost.out
    assert "success rate >= that of earlier.jsonl − 0.05: FAIL" in " ".join(lost.out.split())
