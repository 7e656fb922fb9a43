"""Runs in an environment of its own: agentcop's report over a thousand runs, timed whenever a line asks for it.

The first line holds the runs, as JSON; each further line asks for one report after one new run. Answers are CPU seconds.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

peer: Any = importlib.import_module("agentcop.reliability.metrics")
models: Any = importlib.import_module("agentcop.reliability.models")

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def run_of(number: int, told: dict[str, Any]) -> Any:
    """One of its runs."""
    calls = [
        models.ToolCall(tool_name=name, args_hash=str(at), result_hash="", duration_ms=100, success=True, retry_count=0)
        for at, name in enumerate(told["path"])
    ]
    return models.AgentRun(
        run_id=str(number), agent_id="agent", timestamp=BEGIN + timedelta(seconds=number), input_hash="i",
        tool_calls=calls, execution_path=told["path"], duration_ms=1000, success=True, retry_count=0, output_hash="o",
        input_tokens=told["tokens"], output_tokens=10, total_tokens=told["tokens"] + 10, estimated_cost_usd=0.01,
    )  # fmt: skip


def main() -> None:
    """Answer until nobody asks."""
    told = json.loads(sys.stdin.readline())
    runs = [run_of(number, one) for number, one in enumerate(told)]
    engine = peer.ReliabilityEngine()
    engine.compute_report("agent", runs)
    print("ready", flush=True)
    for number, _ in enumerate(sys.stdin, len(runs)):
        new = run_of(number, told[number % len(told)])
        began = time.process_time()
        runs.pop(0)
        runs.append(new)
        engine.compute_report("agent", runs)
        print(time.process_time() - began, flush=True)


main()
