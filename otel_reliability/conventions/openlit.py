"""openlit: GenAI operations with quirks of their own.

Source: openlit 1.35 (CrewAI 0.177) and 1.45 (LangGraph 1.2).
"""

from __future__ import annotations

from typing import ClassVar, Final

from otel_reliability.conventions import genai, values
from otel_reliability.conventions.base import NOTHING, Told
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.model.span import InvocationFacts, Kind, RawSpan

AGENT_SPAN: Final = "invoke_agent "
LANGGRAPH: Final = "openlit.instrumentation.langgraph"


class OpenLit:
    """Agents and workflows of openlit, whose operations do not say which is which."""

    name: ClassVar[str] = "openlit"
    scopes: ClassVar[tuple[str, ...]] = ("openlit",)
    keys: ClassVar[frozenset[str]] = frozenset()
    prefixes: ClassVar[tuple[str, ...]] = ()

    def read(self, span: RawSpan, hasher: Hasher) -> Told | None:
        """Agents and workflows by the quirks below, everything else by its GenAI operation."""
        operation = span.attributes.get(genai.OPERATION)
        if span.scope.startswith(LANGGRAPH):
            return _langgraph(span, operation)
        if operation == "invoke_agent":
            return _agent(span)
        if operation is None and span.name.startswith(AGENT_SPAN):
            return _bare_agent(span)
        if _is_crewai(span) and values.text(operation) in genai.MODEL_OPERATIONS:
            facts, failed = genai.model_facts(span, hasher)
            return Told(Kind.MODEL, facts._replace(emits_no_tools=True), failed)
        return None


def _is_crewai(span: RawSpan) -> bool:
    return span.attributes.get(genai.SYSTEM) == "crewai"


def _langgraph(span: RawSpan, operation: object) -> Told | None:
    """Q23: here `invoke_agent` is a graph node, nothing more; the workflow's usage is its last call's, never a total."""
    if operation == "invoke_agent" or (operation is None and span.name.startswith(AGENT_SPAN)):
        return NOTHING
    if operation == "invoke_workflow":
        named = values.name(span.attributes.get(genai.WORKFLOW_NAME))
        return Told(Kind.WORKFLOW, InvocationFacts(name=named, agent_if_root=True))
    return None


def _agent(span: RawSpan) -> Told:
    """Q24: crew and task say `invoke_agent` too, without an agent's name; CrewAI's tools are never told here."""
    silent = _is_crewai(span)
    named = values.name(span.attributes.get(genai.AGENT_NAME))
    if named is None:
        return Told(Kind.WORKFLOW, InvocationFacts(emits_no_tools=silent))
    facts = genai.agent_facts(span)
    return Told(Kind.AGENT, facts._replace(emits_no_tools=silent))


def _bare_agent(span: RawSpan) -> Told:
    """Q25: a failed span lost its attributes, the framework's name with them; CrewAI's tools are never told, so none are."""
    named = values.name(span.name.removeprefix(AGENT_SPAN))
    return Told(Kind.AGENT, InvocationFacts(name=named, weak=True, emits_no_tools=True))
