"""Spring AI: kinds in `spring.ai.kind`, tools and conversations under keys of its own.

Source: Spring AI 1.1 and 2.0 through Micrometer. An agent has no name; advisors are spans, too. In
Spring AI Alibaba it is a node of a graph, which has a name.
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
from otel_reliability.model.span import InvocationFacts, Kind

KIND: Final = "spring.ai.kind"
GRAPH_KIND: Final = "spring.ai.alibaba.kind"
GRAPH_NAME: Final = "spring.ai.alibaba.graph.name"
SESSION: Final = "spring.ai.chat.client.conversation.id"
TOOL_NAMES: Final = ("spring.ai.tool.definition.name", genai.TOOL_NAME)
CALL_IDS: Final = ("spring.ai.tool.call.id", genai.CALL_ID)
ARGUMENTS: Final = ("spring.ai.tool.call.arguments", genai.ARGUMENTS)
RESULTS: Final = ("spring.ai.tool.call.result", genai.RESULT)


class SpringAI(Convention):
    """Chat clients and tools of Spring AI; its model calls are OTel GenAI."""

    name = "Spring AI"
    plain = (SESSION, GRAPH_NAME, *TOOL_NAMES, *CALL_IDS)
    content = (*ARGUMENTS, *RESULTS)
    needs = (KIND, GRAPH_KIND)

    def read(self, span: SpanView) -> Answer | None:
        """Read by kind; a kind that is no step is nothing, unless it names an operation."""
        if span.get(GRAPH_KIND) == "graph":
            named = values.name(span.get(GRAPH_NAME))
            return Answer(Kind.WORKFLOW, InvocationFacts(name=named, agent_if_root=True))
        kind = span.get(KIND)
        if kind == "chat_client":
            session = own(values.identifier, SESSION)
            return Answer(Kind.AGENT, InvocationFacts(), session=session)
        if kind == "tool_call":
            return genai.tool_answer(
                span,
                values.first(span, TOOL_NAMES, values.text),
                own(values.identifier, *CALL_IDS),
                own_value(*ARGUMENTS),
                own_value(*RESULTS),
            )
        if kind == "vector_store":
            return Answer(Kind.RETRIEVAL)
        return NOTHING if kind == "advisor" else None
