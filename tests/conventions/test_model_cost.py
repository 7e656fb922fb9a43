"""What the cost of a model call is read from: who serves the model, and which tokens were cached."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_reliability.testing import span
from tests.conventions.reading import model, rebuilt
from tests.conventions.test_coding_agents import codex

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"}
OPENINFERENCE = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-4o"}
VERCEL = {"ai.operationId": "ai.generateText.doGenerate", "ai.model.id": "gpt-4o"}
LANGFUSE = {"langfuse.observation.type": "generation"}


@pytest.mark.parametrize(
    ("attributes", "cached", "written", "provider"),
    [
        (
            {**CHAT, "gen_ai.usage.cache_read.input_tokens": 7, "gen_ai.provider.name": "openai"},
            7,
            None,
            "openai",
        ),
        (
            {**CHAT, "gen_ai.usage.cache_creation.input_tokens": "5", "gen_ai.system": "azure"},
            None,
            5,
            "azure",
        ),
        ({**CHAT, "gen_ai.usage.cache_read_input_tokens": 7}, 7, None, None),
        ({**CHAT, "gen_ai.usage.details.cached_tokens": 7}, 7, None, None),
        (
            {
                **OPENINFERENCE,
                "llm.token_count.prompt_details.cache_read": 7,
                "llm.token_count.prompt_details.cache_write": 5,
                "llm.provider": "openai",
            },
            7,
            5,
            "openai",
        ),
        (
            {**VERCEL, "ai.usage.cachedInputTokens": 7, "ai.model.provider": "openai.chat"},
            7,
            None,
            "openai.chat",
        ),
        (
            {
                **LANGFUSE,
                "langfuse.observation.usage_details": json.dumps(
                    {"input": 9, "output": 1, "input_cache_read": 7, "input_cache_creation": 5}
                ),
            },
            7,
            5,
            None,
        ),
        (CHAT, None, None, None),
    ],
)
def test_a_model_call_has_its_cached_tokens_and_its_provider(
    attributes: dict[str, Any], cached: int | None, written: int | None, provider: str | None
) -> None:
    scope = "langfuse-sdk" if attributes.keys() >= LANGFUSE.keys() else ""
    facts = model(span(attributes=attributes, scope=scope))

    assert (facts.cached, facts.cache_written, facts.provider) == (cached, written, provider)


def test_a_reported_cost_of_litellm_is_read() -> None:
    assert model(span(attributes={**CHAT, "gen_ai.cost.total_cost": 0.25})).cost == 0.25


def test_cached_tokens_of_a_coding_agent_are_priced_as_such() -> None:
    pytest.importorskip("genai_prices", reason="the prices extra is not installed")
    usage = {
        "event__kind": "response.completed",
        "model": "gpt-5",
        "input_token_count": 1_000_000,
        "output_token_count": 100_000,
        "cached_token_count": 800_000,
    }

    (run,) = rebuilt(codex("user_prompt", 0), codex("sse_event", 2, **usage))

    assert run.cost == pytest.approx(0.2 * 1.25 + 0.8 * 0.125 + 0.1 * 10.0)
