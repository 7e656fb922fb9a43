"""AgentOps: kinds in `agentops.span.kind`, agents and tools under keys of its own.

Source: agentops 0.4 and its instrumentations of AG2, CrewAI, OpenAI Agents, agno, Google ADK and
LangGraph. A session is a whole program, so it contains nothing.
"""

from __future__ import annotations

from typing import Final

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai
from otel_reliability.conventions.base import NOTHING, Answer, Convention, SpanView, own, own_value
from otel_reliability.model.span import HandoffFacts, InvocationFacts, Kind

SPAN_KIND: Final = "agentops.span.kind"
OPERATION: Final = "operation.name"
FROM_AGENT: Final = "from_agent"
TO_AGENT: Final = "to_agent"
AGENTS: Final = ("agent.name", "agent.role", OPERATION, TO_AGENT)
"""The last is whom a chat of AG2 is with."""
TOOL_NAME: Final = "tool.name"
CALLED: Final = "gen_ai.completion.0.tool_calls.0.name"
CALLED_WITH: Final = "gen_ai.completion.0.tool_calls.0.arguments"
"""Of AG2, whose tools are all named `function`."""
CALL_IDS: Final = ("tool.id", genai.CALL_ID)
ARGUMENTS: Final = (CALLED_WITH, "tool.parameters", "agentops.tool.input")
RESULTS: Final = ("tool.result", "agentops.tool.output")
RECEIVED: Final = ("ag2.agent.", "receive")
"""Beginning and end of the name of a span of AG2 in which an agent only gets a message."""


class AgentOps(Convention):
    """Spans that say their kind in AgentOps' words."""

    name = "AgentOps"
    request = ("agentops.entity.input",)
    needs = (SPAN_KIND, FROM_AGENT)
    plain = (*AGENTS, TOOL_NAME, CALLED, *CALL_IDS)
    content = (*ARGUMENTS, *RESULTS)

    def read(self, span: SpanView) -> Answer | None:
        """Read by kind; tasks, operations and sessions are nothing."""
        kind = span.get(SPAN_KIND)
        if kind == "agent":
            start, end = RECEIVED
            if span.name.startswith(start) and span.name.endswith(end):
                return NOTHING
            return Answer(Kind.AGENT, InvocationFacts(name=_agent(span)))
        if kind == "workflow":
            return Answer(Kind.WORKFLOW, InvocationFacts(name=values.name(span.get(OPERATION))))
        if kind == "llm":
            return genai.model(span)
        if kind == "tool":
            return genai.tool_answer(
                span,
                values.first(span, (CALLED, TOOL_NAME, OPERATION), values.text),
                own(values.identifier, *CALL_IDS),
                own_value(*ARGUMENTS),
                own_value(*RESULTS),
            )
        if kind is None and TO_AGENT in span:
            return Answer(Kind.HANDOFF, HandoffFacts(values.name(span.get(TO_AGENT))))
        return None if kind is None else NOTHING


def _agent(span: SpanView) -> str | None:
    named = values.first(span, AGENTS, values.name)
    return named or values.name(span.name.removesuffix(".agent"))
