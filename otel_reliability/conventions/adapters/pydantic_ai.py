"""pydantic-ai: GenAI operations, and output tools, which are no tools.

Source: pydantic-ai 2.68, and traces of 2025 without operations. An agent with an output type asks
its model to call an output tool; nothing is executed, so no tool span follows, though the finish
reason is `tool_call`. Tools proper always have a span. From format 5 on, one that waits for a
person, or for the application, ends without an error.
"""

from __future__ import annotations

from typing import Final

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai
from otel_reliability.conventions.base import Answer, Convention, SpanView, own
from otel_reliability.model.span import PAUSED, Kind, RejectionFacts

DEFERRAL: Final = "pydantic_ai.tool.deferral.name"
RESULT: Final = "final_result"
DEFERRED: Final = frozenset({"calls", "approvals"})
"""Keys of the result of a run that waits for calls of tools."""


class PydanticAI(Convention):
    """Model calls of pydantic-ai, and what waits. The rest is OTel GenAI."""

    name = "pydantic-ai"
    scopes = ("pydantic-ai",)
    request = ("pydantic_ai.all_messages", "all_messages_events")
    plain = (DEFERRAL,)
    messages = (RESULT,)
    needs = (genai.OPERATION,)

    def read(self, span: SpanView) -> Answer | None:
        """Return what a model asked for says nothing of tools here: a run without a tool span
        called none.
        """
        operation = span.get(genai.OPERATION)
        if operation == "chat":
            return genai.model(span, asked_for_tools=False, calls=())
        if operation == "execute_tool" and DEFERRAL in span:
            pending = RejectionFacts(own(values.identifier, genai.CALL_ID), pending=True)
            return Answer(Kind.TOOL, pending)
        if operation == "invoke_agent" and span.found_in(RESULT, _stopped):
            return genai.agent(span, stopped=PAUSED)
        return None


def _stopped(result: object) -> str | None:
    return PAUSED if values.mapping(result).keys() >= DEFERRED else None
