"""MCP client and server spans: one call is reported up to four times.

Source: mcp 2.3 and fastmcp 4.1; the convention says `execute_tool`, the built-in spans name no
operation.
"""

from __future__ import annotations

from typing import Final

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai
from otel_reliability.conventions.base import NOTHING, Answer, Convention, SpanView

CALL: Final = "tools/call"


class Mcp(Convention):
    """Spans that name an MCP method. Of the methods only `tools/call` is a step."""

    name = "MCP"
    needs = (genai.MCP_METHOD,)

    def read(self, span: SpanView) -> Answer | None:
        """A `tools/call` that can name its tool is a tool call; any other method is nothing."""
        method = span.get(genai.MCP_METHOD)
        if not isinstance(method, str):
            return None
        if method != CALL:
            return NOTHING
        _, found, named = span.name.partition(CALL + " ")
        name = values.text(span.get(genai.TOOL_NAME)) or (values.text(named) if found else None)
        if name is None:
            return NOTHING
        return genai.tool_answer(span, name)
