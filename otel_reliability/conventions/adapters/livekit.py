"""LiveKit Agents: `agent_session` > `agent_turn` > `llm_node`, `function_tool`.

Source: livekit-agents 1.8 for Python (GenAI operations besides), traces of releases before it, and
@livekit/agents for Node, which names no operation. A user who speaks while the agent does
interrupts a turn; only what a program stopped is cancelled.
"""

from __future__ import annotations

from typing import Final

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai
from otel_reliability.conventions.base import (
    NOTHING,
    Answer,
    Convention,
    SpanView,
    own,
    own_value,
)
from otel_reliability.model.span import CANCELLED, InvocationFacts, Kind

AGENTS: Final = (genai.AGENT_NAME, "lk.agent_label", "lk.agent_name")
TOOL_NAMES: Final = (genai.TOOL_NAME, "lk.function_tool.name")
CALL_IDS: Final = (genai.CALL_ID, "lk.function_tool.id")
ARGUMENTS: Final = (
    genai.ARGUMENTS,
    "lk.function_tool.arguments",
    "lk.pii.function_tool.arguments",
)
RESULTS: Final = (genai.RESULT, "lk.function_tool.output", "lk.pii.function_tool.output")
IS_ERROR: Final = "lk.function_tool.is_error"
INTERRUPTED_BY: Final = "lk.interruption.source"
PROGRAM: Final = "programmatic"


class LiveKit(Convention):
    """Sessions, turns and tools by name, the rest by operation."""

    name = "LiveKit"
    scopes = ("livekit-agents",)
    request = ("lk.user_input", "lk.pii.user_input")
    plain = (*AGENTS, *TOOL_NAMES, *CALL_IDS, IS_ERROR, INTERRUPTED_BY)
    content = (*ARGUMENTS, *RESULTS)

    def read(self, span: SpanView) -> Answer | None:
        """A session contains its turns; what hears and speaks is nothing."""
        if span.name == "agent_session":
            name = values.first(span, AGENTS, values.name)
            return Answer(Kind.WORKFLOW, InvocationFacts(name=name))
        if span.name == "agent_turn":
            stopped = CANCELLED if span.get(INTERRUPTED_BY) == PROGRAM else None
            return genai.agent(span, stopped=stopped)
        if span.name == "function_tool":
            return genai.tool_answer(
                span,
                values.first(span, TOOL_NAMES, values.text),
                own(values.identifier, *CALL_IDS),
                own_value(*ARGUMENTS),
                own_value(*RESULTS),
                failed=values.truth(span.get(IS_ERROR)) is True,
            )
        if genai.OPERATION in span:
            return None
        return genai.model(span) if span.name == "llm_request" else NOTHING
