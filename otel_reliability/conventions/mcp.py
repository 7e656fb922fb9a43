"""MCP client and server spans: one call is told up to four times.

Source: mcp 2.3 and fastmcp 4.1; the convention says `execute_tool`, the built-in spans name no operation.
"""

from __future__ import annotations

from typing import ClassVar, Final

from otel_reliability.conventions import genai, values
from otel_reliability.conventions.base import NOTHING, Told
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.model.span import Kind, RawSpan, ToolFacts

CALL: Final = "tools/call"


class Mcp:
    """Spans that name an MCP method. Of the methods only `tools/call` is a step."""

    name: ClassVar[str] = "MCP"
    scopes: ClassVar[tuple[str, ...]] = ()
    keys: ClassVar[frozenset[str]] = frozenset({genai.MCP_METHOD})
    prefixes: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[frozenset[str]] = frozenset({genai.MCP_METHOD})

    def read(self, span: RawSpan, hasher: Hasher) -> Told | None:
        """A `tools/call` that can name its tool is a tool call; any other method is nothing."""
        method = span.attributes.get(genai.MCP_METHOD)
        if not isinstance(method, str):
            return None
        if method != CALL:
            return NOTHING
        _, found, named = span.name.partition(CALL + " ")
        name = values.text(span.attributes.get(genai.TOOL_NAME)) or (values.text(named) if found else None)
        if name is None:
            return NOTHING
        call = genai.tool_call(span, name, hasher)
        return Told(Kind.TOOL, ToolFacts((call,)), failed=call.failed)
