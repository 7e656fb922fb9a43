"""Spans that passed a Collector's `gen_ai_normalizer` give the runs that they gave before.

The tables are those of the processor (open-telemetry/opentelemetry-collector-contrib), with
`remove_originals: true`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pytest
from msgspec.structs import replace

from otel_reliability.model.span import RawSpan
from tests.corpora.recordings import CAPTURES, captured, rebuilt

OPENINFERENCE: Final = {
    "llm.token_count.prompt": "gen_ai.usage.input_tokens",
    "llm.token_count.completion": "gen_ai.usage.output_tokens",
    "llm.model_name": "gen_ai.request.model",
    "llm.provider": "gen_ai.provider.name",
    "tool.name": "gen_ai.tool.name",
    "tool.description": "gen_ai.tool.description",
    "tool_call.function.arguments": "gen_ai.tool.call.arguments",
    "tool_call.id": "gen_ai.tool.call.id",
    "agent.name": "gen_ai.agent.name",
    "session.id": "gen_ai.conversation.id",
    "openinference.span.kind": "gen_ai.operation.name",
}
OPENLLMETRY: Final = {
    "llm.request.type": "gen_ai.operation.name",
    "traceloop.span.kind": "gen_ai.operation.name",
    "traceloop.entity.name": "gen_ai.agent.name",
    "traceloop.entity.input": "gen_ai.input.messages",
    "traceloop.entity.output": "gen_ai.output.messages",
}
OPERATIONS: Final = {
    "llm": "chat",
    "embedding": "embeddings",
    "chain": "invoke_agent",
    "retriever": "retrieval",
    "reranker": "retrieval",
    "tool": "execute_tool",
    "agent": "invoke_agent",
    "task": "invoke_agent",
    "workflow": "invoke_workflow",
    "completion": "text_completion",
    "chat": "chat",
}
MESSAGE: Final = re.compile(r"llm\.(input|output)_messages\.(\d+)\.message\.(.*)")
CALL: Final = re.compile(r"tool_calls\.(\d+)\.tool_call\.(.*)")


def normalized(span: RawSpan, table: Mapping[str, str]) -> RawSpan:
    found: dict[str, Any] = {}
    messages: dict[str, dict[int, dict[str, Any]]] = {}
    given = dict(span.attributes)
    for key, value in given.items():
        target = table.get(key)
        message = MESSAGE.fullmatch(key) if table is OPENINFERENCE else None
        if message is not None:
            parts = messages.setdefault(message[1], {}).setdefault(int(message[2]), {})
            parts[message[3]] = value
        elif target is None:
            found[key] = value
        elif target not in given and target not in found:
            is_kind = target == "gen_ai.operation.name"
            found[target] = OPERATIONS.get(str(value).lower(), value) if is_kind else value
    for side, by_number in messages.items():
        told = [_message(by_number[number]) for number in sorted(by_number)]
        found.setdefault(f"gen_ai.{side}.messages", json.dumps(told))
    return replace(span, attributes=found)


def _message(parts: Mapping[str, Any]) -> dict[str, Any]:
    calls: dict[int, dict[str, Any]] = {}
    for key, value in parts.items():
        match = CALL.fullmatch(key)
        if match is not None:
            calls.setdefault(int(match[1]), {})[match[2]] = value
    if calls:
        told = [
            {
                "type": "tool_call",
                "id": call.get("id", ""),
                "name": call.get("function.name", ""),
                "arguments": json.loads(call.get("function.arguments") or "{}"),
            }
            for _, call in sorted(calls.items())
        ]
    else:
        told = [{"type": "text", "content": parts.get("content", "")}]
    return {"role": parts.get("role", ""), "parts": told}


def summaries(spans: Iterable[RawSpan]) -> list[tuple[Any, ...]]:
    return sorted(
        (run.run_id, run.key.agent, run.path or (), run.nested, run.input_tokens or 0)
        for run in rebuilt(spans).runs
    )


CASES: Final = [
    (name, table)
    for words, table in (
        (("autogen", "claude_agent_sdk", "dspy", "langgraph", "smolagents"), OPENINFERENCE),
        (("crewai", "langgraph04"), OPENLLMETRY),
    )
    for word in words
    for name in (f"{word}-{'openinference' if table is OPENINFERENCE else 'openllmetry'}",)
]


@pytest.mark.skipif(not CAPTURES, reason="needs ../shared/corpora/captured")
@pytest.mark.parametrize(("name", "table"), CASES, ids=[name for name, _ in CASES])
def test_normalized_spans_give_the_same_runs(name: str, table: Mapping[str, str]) -> None:
    spans = captured(name)

    assert summaries(normalized(span, table) for span in spans) == summaries(spans)
