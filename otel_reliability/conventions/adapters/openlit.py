"""openlit: GenAI operations with quirks of their own.

Source: openlit 1.35 (CrewAI 0.177) and 1.45 (LangGraph 1.2; pydantic-ai, smolagents).
"""

from __future__ import annotations

from typing import Final

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai
from otel_reliability.conventions.base import NOTHING, Answer, Convention, SpanView, own
from otel_reliability.model.span import Call, InvocationFacts, Kind, ToolFacts

AGENT_SPAN: Final = "invoke_agent "
LANGGRAPH: Final = "openlit.instrumentation.langgraph"
PYDANTIC_AI: Final = "openlit.instrumentation.pydantic_ai"
SMOLAGENTS: Final = "openlit.instrumentation.smolagents"
NO_ID: Final = own(values.identifier)
"""No key has the id of a call."""


class OpenLit(Convention):
    """Agents and workflows of openlit, whose operations do not say which is which."""

    name = "openlit"
    scopes = ("openlit",)
    request = ("gen_ai.task.description",)

    def read(self, span: SpanView) -> Answer | None:
        """Agents and workflows by the quirks below, everything else by its GenAI operation."""
        operation = span.get(genai.OPERATION)
        if span.scope.startswith(LANGGRAPH):
            return _langgraph(span, operation)
        if span.scope.startswith(PYDANTIC_AI):
            return _pydantic_ai(span, operation)
        if span.scope.startswith(SMOLAGENTS) and operation == "execute_tool":
            return genai.tool(span, NO_ID)  # it invents one for each of the two spans of a call
        if operation == "invoke_agent":
            return _agent(span)
        if operation is None and span.name.startswith(AGENT_SPAN):
            return _bare_agent(span)
        if _is_crewai(span) and values.text(operation) in genai.MODEL_OPERATIONS:
            return genai.model(span, emits_no_tools=True)
        return None


def _is_crewai(span: SpanView) -> bool:
    return span.get(genai.SYSTEM) == "crewai"


def _langgraph(span: SpanView, operation: object) -> Answer | None:
    """Q23: here `invoke_agent` is a graph node, nothing more; the workflow's usage is its last
    call's, never a total.
    """
    if operation == "invoke_agent" or (operation is None and span.name.startswith(AGENT_SPAN)):
        return NOTHING
    if operation == "invoke_workflow":
        named = values.name(span.get(genai.WORKFLOW_NAME))
        return Answer(Kind.WORKFLOW, InvocationFacts(name=named, agent_if_root=True))
    return None


def _pydantic_ai(span: SpanView, operation: object) -> Answer | None:
    """The run of an agent is a task here; the graph below it is the same run. A node of the graph
    makes all the calls of a turn, and names none.
    """
    if operation == "execute_task":
        return genai.agent(span, tokens=genai.usage())
    if operation == "invoke_workflow":
        return NOTHING
    if operation == "execute_tool" and genai.TOOL_NAME not in span:
        return Answer(Kind.TOOL, ToolFacts((Call(None),)))
    return None


def _agent(span: SpanView) -> Answer:
    """Q24: crew and task say `invoke_agent` too, without an agent's name; CrewAI's tools are never
    reported here.
    """
    silent = _is_crewai(span)
    if values.name(span.get(genai.AGENT_NAME)) is None:
        return Answer(Kind.WORKFLOW, InvocationFacts(emits_no_tools=silent))
    return genai.agent(span, emits_no_tools=silent)


def _bare_agent(span: SpanView) -> Answer:
    """Q25: a failed span lost its attributes, the framework's name with them; CrewAI's tools are
    never reported.
    """
    named = values.name(span.name.removeprefix(AGENT_SPAN))
    return Answer(Kind.AGENT, InvocationFacts(name=named, weak=True, emits_no_tools=True))
