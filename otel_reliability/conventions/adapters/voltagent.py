"""VoltAgent: kinds in `span.type`, names in `entity.name`, token totals on the agent's span.

Source: @voltagent/core 2.10. One `llm:` span covers all model calls of a generation and holds the
usage of the last one only, so its tokens are unknown.
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
from otel_reliability.model.span import PAUSED, InvocationFacts, Kind, ModelFacts

TYPE: Final = "span.type"
ENTITY_TYPE: Final = "entity.type"
NAMES: Final = ("subagent.name", "entity.name")
TOOL_NAME: Final = "tool.name"
CALL_ID: Final = "tool.call.id"
INPUT: Final = "input"
OUTPUT: Final = "output"
MODEL: Final = "llm.model"
STATE: Final = "agent.state"
FINISH_REASON: Final = "ai.response.finish_reason"
AT_LIMIT: Final = "voltagent.stopped_by_max_steps"
SESSIONS: Final = ("conversation.id", "voltagent.conversation_id")
INPUT_TOKENS: Final = ("usage.prompt_tokens",)
OUTPUT_TOKENS: Final = ("usage.completion_tokens",)


class VoltAgent(Convention):
    """Spans of VoltAgent's agents, workflows, tools and model calls."""

    name = "VoltAgent"
    scopes = ("@voltagent/",)
    request = ("agent.messages", "llm.messages", INPUT)
    plain = (
        TYPE,
        ENTITY_TYPE,
        *NAMES,
        TOOL_NAME,
        CALL_ID,
        MODEL,
        STATE,
        FINISH_REASON,
        AT_LIMIT,
        *SESSIONS,
        *INPUT_TOKENS,
        *OUTPUT_TOKENS,
    )
    tool_content = (INPUT, OUTPUT)
    tool_mark = (TYPE, "tool")

    def read(self, span: SpanView) -> Answer | None:
        """Read by the span's type; without one it is the entity itself."""
        kind = span.get(TYPE) or span.get(ENTITY_TYPE)
        session = own(values.identifier, *SESSIONS)
        if kind == "agent":
            return Answer(Kind.AGENT, _agent(span), session=session)
        if kind == "workflow":
            name = values.first(span, NAMES, values.name)
            return Answer(Kind.WORKFLOW, InvocationFacts(name=name), session=session)
        if kind == "llm":
            return Answer(Kind.MODEL, ModelFacts(request_model=values.text(span.get(MODEL))))
        if kind == "tool":
            name, call_id = values.text(span.get(TOOL_NAME)), own(values.identifier, CALL_ID)
            return genai.tool_answer(span, name, call_id, own_value(INPUT), own_value(OUTPUT))
        if kind == "retriever":
            return Answer(Kind.RETRIEVAL)
        return None if kind is None else NOTHING


def _agent(span: SpanView) -> InvocationFacts:
    """A subagent's span has the name of its caller besides its own. An answer that asks for tools
    ends the run only where it waits for their approval, or at a limit.
    """
    waits = genai.asks_for_tools(values.words(span.get(FINISH_REASON))) and AT_LIMIT not in span
    return InvocationFacts(
        name=values.first(span, NAMES, values.name),
        tokens=genai.usage(INPUT_TOKENS, OUTPUT_TOKENS),
        stopped=PAUSED if waits else genai.stopped_by(values.words(span.get(STATE))),
    )
