"""LangSmith's OTel export: `langsmith.span.kind`, spans made after the fact, parents exported before their children.

Source: langsmith 0.14.17 over LangChain 1.4 and LangGraph 1.2.
"""

from __future__ import annotations

from typing import ClassVar, Final

from otel_reliability.conventions import genai, langchain, values
from otel_reliability.conventions.base import NOTHING, Told
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.model.span import STATUS_ERROR, Call, Kind, RawSpan, ToolFacts

SPAN_KIND: Final = "langsmith.span.kind"
METADATA: Final = "langsmith.metadata."
SESSIONS: Final = tuple(METADATA + key for key in ("thread_id", "session_id", "conversation_id"))
AGENT_NAME: Final = METADATA + langchain.AGENT_NAME
PROMPT: Final = "gen_ai.prompt"
COMPLETION: Final = "gen_ai.completion"


class LangSmith:
    """Spans of LangSmith's exporter, by kind."""

    name: ClassVar[str] = "LangSmith"
    scopes: ClassVar[tuple[str, ...]] = ("langsmith",)
    keys: ClassVar[frozenset[str]] = frozenset({SPAN_KIND, AGENT_NAME, PROMPT, COMPLETION, *SESSIONS})
    prefixes: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[frozenset[str]] = frozenset({SPAN_KIND})

    def read(self, span: RawSpan, hasher: Hasher) -> Told | None:
        """Read by kind, else by operation."""
        attributes = span.attributes
        kind = attributes.get(SPAN_KIND)
        session = values.first(attributes, SESSIONS, values.identifier)
        failed = True if _failed(span) else None
        if kind == "chain":
            metadata = {langchain.AGENT_NAME: attributes.get(AGENT_NAME)}
            return Told(*langchain.chain(span.name, metadata), failed, session)
        if kind == "llm":
            told = genai.model(span, hasher)
            return told._replace(failed=failed or told.failed, session=session)
        if kind == "tool":
            return Told(Kind.TOOL, ToolFacts((_call(span, hasher, failed is True),)), failed, session)
        if kind == "retriever":
            return Told(Kind.RETRIEVAL, None, failed, session)
        return NOTHING if isinstance(kind, str) else None


def _failed(span: RawSpan) -> bool:
    """Q5: a span may end OK with an exception event."""
    return span.status == STATUS_ERROR or any(event.name == "exception" for event in span.events)


def _call(span: RawSpan, hasher: Hasher, failed: bool) -> Call:
    attributes = span.attributes
    return hasher.call(
        values.text(attributes.get(genai.TOOL_NAME)) or values.text(span.name),
        values.identifier(attributes.get(genai.CALL_ID)),
        values.raw(attributes, (genai.ARGUMENTS, PROMPT)),
        values.raw(attributes, (genai.RESULT, COMPLETION)),
        failed=failed,
    )
