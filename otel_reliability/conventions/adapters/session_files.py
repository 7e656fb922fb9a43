"""Session files of coding agents, as `sources.sessions` reads them.

Spans of the GenAI conventions, with what these lack: a call that was refused, and a compaction.
"""

from __future__ import annotations

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai
from otel_reliability.conventions.base import Answer, Convention, SpanView
from otel_reliability.model.session_attributes import (
    COMPACTION,
    PROMPT,
    REJECTED,
    SCOPE,
    TOKENS_AFTER,
    TOKENS_BEFORE,
    TRIGGER,
)
from otel_reliability.model.span import CompressionFacts, Kind, RejectionFacts


class SessionFiles(Convention):
    """Spans in the scope of the reader of session files."""

    name = "Session files"
    scopes = (SCOPE,)
    request = (PROMPT,)
    plain = (*genai.GenAI.plain, *genai.GenAI.needs, REJECTED, TOKENS_BEFORE, TOKENS_AFTER, TRIGGER)
    content = genai.GenAI.content
    tool_content = genai.GenAI.tool_content
    tool_mark = genai.GenAI.tool_mark
    messages = genai.GenAI.messages
    needs = (genai.OPERATION,)

    def read(self, span: SpanView) -> Answer | None:
        operation = values.text(span.get(genai.OPERATION))
        if operation is None:
            return None
        if operation == COMPACTION:
            facts = CompressionFacts(
                values.integer(span.get(TOKENS_BEFORE)),
                values.integer(span.get(TOKENS_AFTER)),
                values.text(span.get(TRIGGER)),
            )
            return Answer(Kind.COMPRESSION, facts)
        if span.get(REJECTED) is True:
            return Answer(Kind.TOOL, RejectionFacts(), failed=False)
        return genai.by_operation(operation, span)
