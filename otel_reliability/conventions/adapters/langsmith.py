"""LangSmith's OTel export: `langsmith.span.kind`, spans made after the fact, parents exported
before their children.

Source: langsmith 0.14.17 over LangChain 1.4 and LangGraph 1.2.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai, langchain
from otel_reliability.conventions.base import (
    NOTHING,
    Answer,
    Convention,
    SpanView,
    has_exception,
    own,
    own_value,
    reported_call,
)
from otel_reliability.model.span import STATUS_ERROR, Kind, ToolFacts

SPAN_KIND: Final = "langsmith.span.kind"
METADATA: Final = "langsmith.metadata."
SESSIONS: Final = tuple(METADATA + key for key in ("thread_id", "session_id", "conversation_id"))
AGENT_NAME: Final = METADATA + langchain.AGENT_NAME
PROMPT: Final = "gen_ai.prompt"
COMPLETION: Final = "gen_ai.completion"


class LangSmith(Convention):
    """Spans of LangSmith's exporter, by kind."""

    name = "LangSmith"
    scopes = ("langsmith",)
    plain = (AGENT_NAME, *SESSIONS)
    tool_content = (PROMPT, COMPLETION)
    tool_mark = (SPAN_KIND, "tool")
    needs = (SPAN_KIND,)

    def read(self, span: SpanView) -> Answer | None:
        kind = span.get(SPAN_KIND)
        session = own(values.identifier, *SESSIONS)
        failed = True if _failed(span) else None
        if kind == "chain":
            return Answer(*langchain.chain(span.name, span.get(AGENT_NAME)), failed, session)
        if kind == "llm":
            told = genai.model(span)
            return replace(told, failed=failed or told.failed, session=session)
        if kind == "tool":
            name = values.text(span.get(genai.TOOL_NAME))
            call_id = own(values.identifier, genai.CALL_ID)
            given = own_value(genai.ARGUMENTS, PROMPT)
            result = own_value(genai.RESULT, COMPLETION)
            call = reported_call(
                name or values.text(span.name), call_id, given, result, failed=failed is True
            )
            return Answer(Kind.TOOL, ToolFacts((call,)), failed, session)
        if kind == "retriever":
            return Answer(Kind.RETRIEVAL, None, failed, session)
        return NOTHING if isinstance(kind, str) else None


def _failed(span: SpanView) -> bool:
    """Q5: a span may end OK with an exception event."""
    return span.status == STATUS_ERROR or span.found_in_events(has_exception)
