"""Traces as others published them: sixteen frameworks, orphans, missing operations, three tool
spans a call.
"""

from __future__ import annotations

import functools
import json
import re
from typing import Any

import pytest

from otel_reliability.model.run import Tools
from tests.corpora.recordings import Rebuilt, rebuilt, recording
from tests.shared import SHARED, shared

FILES = {"any-agent": "any-agent.otlp.jsonl.gz", "langfuse": "langfuse-frameworks.otlp.jsonl.gz"}
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TOLD_THRICE = re.compile(r"\.(finish|success)-\d+$|\.start-\d+$")
"""BeeAI tells one call by three spans: start, finish, success."""
MODEL_CALLS_ALONE = {
    "google-gemini-2025-08-01",
    "llamaindex-2025-06-05",
    "pydantic-ai-with-gemini-2025-12-24",
    "vertex-ai-2025-08-01",
}
"""Traces of one model call and no agent."""
AGENTS = {
    "agno-2025-06-11": {"Agent"},
    "beeai-2025-08-01": {"beeai-framework-main"},
    "claude-agent-2025-12-22": {"claude.conversation"},
    "google-adk-2025-08-28": {"hello_agent"},
    "koog-2025-08-26": {"ai.koog"},
    "pydantic-ai-tools-2025-12-04": {"joke_agent", "evaluator_agent"},
}
"""Agents that the truth's own keys do not show: told by span names, or by the service."""


def told() -> list[tuple[str, dict[str, Any]]]:
    file = SHARED / "corpora/otel_real/truth.json"
    data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return [(source, trace) for source, found in data.items() for trace in found["traces"]]


every_trace = pytest.mark.parametrize(
    ("source", "trace"),
    [pytest.param(source, trace, id=trace["label"]) for source, trace in told()]
    or [
        pytest.param(
            "", {}, marks=pytest.mark.skip(reason="../shared/corpora/otel_real is not here")
        )
    ],
)


@functools.cache
def rebuilt_file(source: str) -> Rebuilt:
    return rebuilt(recording(f"otel_real/{FILES[source]}").spans)


@pytest.mark.parametrize("source", FILES)
def test_everything_is_read(source: str) -> None:
    shared("corpora/otel_real")
    accounts = rebuilt_file(source).accounts

    assert set(accounts) <= {
        ("received", ""),
        ("used", ""),
        ("other", "no_convention"),
        ("other", "no_agent"),
    }
    assert sum(accounts.values()) == 2 * accounts["received", ""]
    assert accounts["received", ""] == sum(
        trace["spans"] for name, trace in told() if name == source
    )


@every_trace
def test_the_runs_of_a_trace_call_its_tools(source: str, trace: dict[str, Any]) -> None:
    runs = [run for run in rebuilt_file(source).runs if run.trace_id.hex() == trace["traceId"]]
    made = [
        TOLD_THRICE.sub("", name)
        for name in trace["tool_sequence"]
        if not re.search(r"\.(finish|success)-", name)
    ]

    assert bool(runs) is (trace["label"] not in MODEL_CALLS_ALONE)
    assert sorted(name for run in runs for name in run.path or ()) == sorted(made)
    assert all(run.tools is Tools.OBSERVED for run in runs)


@every_trace
def test_the_runs_of_a_trace_bear_its_agents(source: str, trace: dict[str, Any]) -> None:
    agents = {
        run.key.agent for run in rebuilt_file(source).runs if run.trace_id.hex() == trace["traceId"]
    }

    assert {name for name in trace["agents"] if not UUID.fullmatch(name)} <= agents
    assert not any(UUID.fullmatch(name) for name in agents)
    assert agents == AGENTS.get(trace["label"], agents)
