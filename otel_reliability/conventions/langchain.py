"""OTel GenAI instrumentation of LangChain and LangGraph: a root graph is the agent (Q1).

Source: opentelemetry-instrumentation-genai-langchain 1.3b0 with langgraph 1.2.
"""

from __future__ import annotations

from typing import ClassVar

from otel_reliability.conventions import genai, openinference
from otel_reliability.conventions.base import Told
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.model.span import Kind, RawSpan


class GenAILangChain:
    """Workflows of this scope are graphs."""

    name: ClassVar[str] = "OTel GenAI LangChain"
    scopes: ClassVar[tuple[str, ...]] = ("opentelemetry.instrumentation.genai.langchain",)
    keys: ClassVar[frozenset[str]] = frozenset()
    prefixes: ClassVar[tuple[str, ...]] = ()
    eager: ClassVar[bool] = False

    def read(self, span: RawSpan, hasher: Hasher) -> Told | None:
        """A workflow that somebody named is the agent where nothing stands above it; the rest is OTel GenAI."""
        if span.attributes.get(genai.OPERATION) != "invoke_workflow":
            return None
        facts = genai.workflow_facts(span)
        named = facts.name is not None and facts.name not in openinference.GENERIC_GRAPHS
        return Told(Kind.WORKFLOW, facts._replace(agent_if_root=named, name=facts.name if named else None))
