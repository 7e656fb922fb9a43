"""LangChain4j in Quarkus: agents only in the names of spans, failures only as exception events.

Source: quarkus-langchain4j 1.10, scope `io.quarkus.opentelemetry`.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai
from otel_reliability.conventions.base import Answer, Convention, SpanView, has_exception
from otel_reliability.model.span import InvocationFacts, Kind

AI_SERVICE: Final = "langchain4j.aiservices."
TOOL: Final = "langchain4j.tools."
COMPLETION: Final = "completion "


class LangChain4j(Convention):
    """AI services, tools and completions, by name."""

    name = "LangChain4j"
    scopes = ("io.quarkus",)
    names = (AI_SERVICE, TOOL, COMPLETION)

    def read(self, span: SpanView) -> Answer | None:
        """An AI service is an agent, named by its interface; status is never ERROR."""
        failed = True if span.found_in_events(has_exception) else None
        if span.name.startswith(AI_SERVICE):
            interface = span.name.removeprefix(AI_SERVICE).rpartition(".")[0]
            facts = InvocationFacts(name=values.name(interface.rpartition(".")[2]))
            return Answer(Kind.AGENT, facts, failed)
        if span.name.startswith(TOOL):
            return genai.tool(span, failed=bool(failed))
        if span.name.startswith(COMPLETION):
            return replace(genai.model(span), failed=failed)
        return None
