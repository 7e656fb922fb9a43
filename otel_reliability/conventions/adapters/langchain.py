"""LangChain and LangGraph: what a graph is, for every dialect that goes through LangChain's
callbacks.

Sources: opentelemetry-instrumentation-genai-langchain 1.3b0, whose scope is read here;
OpenInference, LangSmith, Langfuse and MLflow over LangChain 1.4 and LangGraph 1.2, which use
`chain`.
"""

from __future__ import annotations

from typing import Final

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai
from otel_reliability.conventions.base import Answer, Convention, SpanView
from otel_reliability.model.span import InvocationFacts, Kind

AGENT_NAME: Final = "lc_agent_name"
"""The key of LangChain's metadata that names the agent a callback belongs to."""
THREAD: Final = "thread_id"
GENERIC_GRAPHS: Final = frozenset({"LangGraph", "RunnableSequence"})
"""Names that LangChain gives to graphs without one."""


class GenAILangChain(Convention):
    """Workflows of this scope: they are graphs, and a graph at the root is the agent."""

    name = "OTel GenAI LangChain"
    scopes = ("opentelemetry.instrumentation.genai.langchain",)
    plain = (genai.WORKFLOW_NAME,)
    needs = (genai.OPERATION,)

    def read(self, span: SpanView) -> Answer | None:
        """A workflow with a name of its own is the agent where nothing stands above it (Q1); the
        rest is OTel GenAI.
        """
        if span.get(genai.OPERATION) != "invoke_workflow":
            return None
        named = graph_name(span.get(genai.WORKFLOW_NAME))
        return Answer(Kind.WORKFLOW, InvocationFacts(name=named, agent_if_root=named is not None))


def agent_of(metadata: object) -> str | None:
    """The agent that LangChain's metadata, an object or its JSON, names."""
    found = _named(AGENT_NAME, metadata)
    return found if isinstance(found, str) else None


def thread_of(metadata: object) -> str | None:
    """The thread that LangChain's metadata, an object or its JSON, names."""
    return values.identifier(_named(THREAD, metadata))


def _named(key: str, metadata: object) -> object:
    return (
        None
        if isinstance(metadata, str) and key not in metadata
        else values.mapping(metadata).get(key)
    )


def call_id_of(value: object) -> str | None:
    """The id of a tool call, which exporters of LangChain's metadata write as JSON."""
    return values.identifier(values.parsed(value))


def graph_name(value: object) -> str | None:
    """The name of a graph, None where it has none of its own."""
    found = values.name(value)
    return None if found in GENERIC_GRAPHS else found


def chain(name: str, agent_name: object) -> tuple[Kind, InvocationFacts]:
    """A chain named as its `lc_agent_name` is an agent (Q4, Q19); any other is one if nothing
    stands above it (Q1, Q20).
    """
    named = graph_name(name)
    if named is not None and agent_name == name:
        return Kind.AGENT, InvocationFacts(name=named)
    return Kind.CHAIN, InvocationFacts(name=named, agent_if_root=True)
