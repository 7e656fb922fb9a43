"""Claude Code's own spans: `claude_code.*`, documented, not captured.

Source: Claude Code monitoring documentation (CLAUDE_CODE_ENHANCED_TELEMETRY_BETA=1). Input tokens there exclude the cached part.
"""

from __future__ import annotations

from typing import ClassVar, Final

from otel_reliability.conventions import genai, values
from otel_reliability.conventions.base import NOTHING, Told
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.model.span import InvocationFacts, Kind, ModelFacts, RawSpan, Tokens, ToolFacts

PREFIX: Final = "claude_code."
INPUT_TOKENS: Final = ("input_tokens", "cache_read_tokens", "cache_creation_tokens")
"""What was new, what was read from the cache, what was written to it: together the input."""


class ClaudeCode:
    """Spans named `claude_code.interaction`, `.llm_request`, `.tool` and `.tool.execution`."""

    name: ClassVar[str] = "Claude Code"
    scopes: ClassVar[tuple[str, ...]] = ()
    keys: ClassVar[frozenset[str]] = frozenset(
        {
            "model", *INPUT_TOKENS, "output_tokens", "stop_reason", "tool_name", "tool_use_id", "tool_input", "success",
            "subagent_type",
        }
    )  # fmt: skip
    prefixes: ClassVar[tuple[str, ...]] = ()

    def read(self, span: RawSpan, hasher: Hasher) -> Told | None:
        """Read by span name."""
        if not span.name.startswith(PREFIX):
            return None
        kind = span.name[len(PREFIX) :]
        if kind == "interaction":
            named = values.name(span.attributes.get("subagent_type"))
            return Told(Kind.AGENT, InvocationFacts(name=named, fallback_name="claude_code"))
        if kind == "llm_request":
            return Told(Kind.MODEL, _model(span))
        if kind in {"tool", "tool.execution"}:
            return _tool(span, hasher)
        return NOTHING


def _model(span: RawSpan) -> ModelFacts:
    attributes = span.attributes
    new, *cached = (values.integer(attributes.get(key)) for key in INPUT_TOKENS)
    given = None if new is None else new + sum(part or 0 for part in cached)
    return ModelFacts(
        model=values.text(attributes.get("model")),
        tokens=Tokens(given, values.integer(attributes.get("output_tokens"))),
        asked_for_tools=genai.asks_for_tools(values.words(attributes.get("stop_reason"))),
    )


def _tool(span: RawSpan, hasher: Hasher) -> Told:
    """A tool; its `.execution` child tells the same call again, and whether it failed."""
    attributes = span.attributes
    name = values.text(attributes.get("tool_name"))
    if name is None:
        return NOTHING
    failed = genai.tool_failed(span) or values.truth(attributes.get("success")) is False
    call_id = values.identifier(attributes.get("tool_use_id"))
    call = hasher.call(name, call_id, attributes.get("tool_input"), failed=failed)
    return Told(Kind.TOOL, ToolFacts((call,)), failed=failed)
