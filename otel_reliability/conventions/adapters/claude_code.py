"""Claude Code's own spans: `claude_code.*`, documented, not captured.

Source: Claude Code monitoring documentation (CLAUDE_CODE_ENHANCED_TELEMETRY_BETA=1). Input tokens there exclude the cached part.
"""

from __future__ import annotations

from typing import ClassVar, Final

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai
from otel_reliability.conventions.base import (
    NOTHING,
    Answer,
    Convention,
    SpanView,
    own,
    own_of_all,
    own_value,
    reported_call,
)
from otel_reliability.model.span import InvocationFacts, Kind, ModelFacts, Tokens, ToolFacts

PREFIX: Final = "claude_code."
INPUT_TOKENS: Final = ("input_tokens", "cache_read_tokens", "cache_creation_tokens")
"""What was new, what was read from the cache, what was written to it: together the input."""


class ClaudeCode(Convention):
    """Spans named `claude_code.interaction`, `.llm_request`, `.tool` and `.tool.execution`."""

    name: ClassVar[str] = "Claude Code"
    names: ClassVar[str] = r"claude_code\."
    keys: ClassVar[frozenset[str]] = frozenset(
        {
            "model", *INPUT_TOKENS, "output_tokens", "stop_reason", "tool_name", "tool_use_id", "tool_input", "success",
            "subagent_type",
        }
    )  # fmt: skip

    def read(self, span: SpanView) -> Answer | None:
        """Read by span name."""
        if not span.name.startswith(PREFIX):
            return None
        kind = span.name[len(PREFIX) :]
        if kind == "interaction":
            named = values.name(span.get("subagent_type"))
            return Answer(Kind.AGENT, InvocationFacts(name=named, fallback_name="claude_code"))
        if kind == "llm_request":
            return Answer(Kind.MODEL, _model(span))
        if kind in {"tool", "tool.execution"}:
            return _tool(span)
        return NOTHING


def _model(span: SpanView) -> ModelFacts:
    return ModelFacts(
        model=values.text(span.get("model")),
        tokens=Tokens(own_of_all(_input, *INPUT_TOKENS), own(values.integer, "output_tokens")),
        asked_for_tools=genai.asks_for_tools(values.words(span.get("stop_reason"))),
    )


def _input(*parts: object) -> int | None:
    new, *cached = map(values.integer, parts)
    return None if new is None else new + sum(part or 0 for part in cached)


def _tool(span: SpanView) -> Answer:
    """A tool; its `.execution` child reports the same call again, and whether it failed."""
    name = values.text(span.get("tool_name"))
    if name is None:
        return NOTHING
    failed = genai.tool_failed(span) or values.truth(span.get("success")) is False
    call = reported_call(name, own(values.identifier, "tool_use_id"), own_value("tool_input"), failed=failed)
    return Answer(Kind.TOOL, ToolFacts((call,)), failed=failed)
