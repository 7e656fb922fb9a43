"""A run as one JSON object: what `otel-reliability runs` prints, one a line."""

from __future__ import annotations

import json
from typing import Any

from otel_reliability.model.run import Compression, Run, ToolCall
from otel_reliability.report.json import key_object
from otel_reliability.report.text import instant


def line(run: Run) -> str:
    """The run on one line.

    >>> from otel_reliability.testing import run
    >>> print(line(run(["search"])))
    {"run_id": "run-1", "trace_id": "00000000000000000000000000000001", "root_span_id": "0000000000000001", ...}
    """
    return json.dumps(record(run), ensure_ascii=False)


def record(run: Run) -> dict[str, Any]:
    """The run as an object: hexadecimal ids, RFC 3339 times in UTC, null for what is not known. No argument, no text."""
    return {
        "run_id": run.run_id,
        "trace_id": run.trace_id.hex(),
        "root_span_id": None if run.root_span_id is None else run.root_span_id.hex(),
        **key_object(run.key),
        "fingerprints": _fingerprints(run),
        "session_id": run.session_id,
        "task_id": run.task_id,
        "trial": run.trial,
        "condition": run.condition,
        "nested": run.nested,
        "implicit": run.implicit,
        "incomplete": run.incomplete,
        "start": instant(run.start_ns),
        "duration_s": run.duration_s,
        "path": None if run.path is None else list(run.path),
        "tools": run.tools.value,
        "tool_calls": None if run.tool_calls is None else [_call(call) for call in run.tool_calls],
        "compressions": [_compression(one) for one in run.compressions],
        "model_calls": len(run.model_calls),
        "tokens": {"input": run.input_tokens, "output": run.output_tokens},
        "token_pressure": run.token_pressure,
        "retries": run.retries,
        "longest_retry_chain": run.longest_retry_chain,
        "outcome": run.outcome.value,
        "outcome_source": run.outcome_source,
        "closed_by": run.closed_by.value,
    }


def _fingerprints(run: Run) -> dict[str, list[str]]:
    """Return what the telemetry shows of how the agent is made: values by kind."""
    found: dict[str, list[str]] = {}
    for kind, value in run.fingerprints:
        found.setdefault(kind, []).append(value)
    return found


def _call(call: ToolCall) -> dict[str, Any]:
    return {"name": call.name, "ok": call.ok, "retry": call.retry, "repeat": call.repeat, "agent": call.agent}


def _compression(one: Compression) -> dict[str, Any]:
    return {
        "time": instant(one.end_ns),
        "ok": one.ok,
        "tokens_before": one.tokens_before,
        "tokens_after": one.tokens_after,
        "trigger": one.trigger,
        "agent": one.agent,
    }
