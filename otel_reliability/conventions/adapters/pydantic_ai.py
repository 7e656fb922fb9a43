"""pydantic-ai: GenAI operations, and output tools, which are no tools.

Source: pydantic-ai 2.68, and traces of 2025 without operations. An agent with an output type asks
its model to call an output tool; nothing is executed, so no tool span follows, though the finish
reason is `tool_call`. Tools proper always have a span.
"""

from __future__ import annotations

from otel_reliability.conventions.adapters import genai
from otel_reliability.conventions.base import Answer, Convention, SpanView


class PydanticAI(Convention):
    """Model calls of pydantic-ai. The rest is OTel GenAI."""

    name = "pydantic-ai"
    scopes = ("pydantic-ai",)
    request = ("pydantic_ai.all_messages", "all_messages_events")
    needs = (genai.OPERATION,)

    def read(self, span: SpanView) -> Answer | None:
        """Return what a model asked for says nothing of tools here: a run without a tool span
        called none.
        """
        if span.get(genai.OPERATION) != "chat":
            return None
        return genai.model(span, asked_for_tools=False, calls=())
