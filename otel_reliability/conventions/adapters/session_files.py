"""Session files of coding agents, as `sources.sessions` reads them.

Spans of the GenAI conventions, with what these lack: a call that was refused, and a compaction.
"""

from __future__ import annotations

from typing import Final

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai
from otel_reliability.conventions.base import Answer, Convention, SpanView
from otel_reliability.model.span import CompressionFacts, Kind, RejectionFacts

REJECTED: Final = "session_file.rejected"
COMPACTION: Final = "compact"
COMPACTION_KEYS: Final = (
    "session_file.tokens_before",
    "session_file.tokens_after",
    "session_file.trigger",
)


class SessionFiles(Convention):
    """Spans in the scope of the reader of session files."""

    name = "Session files"
    scopes = ("otel_reliability.sessions",)
    plain = (*genai.GenAI.plain, *genai.GenAI.needs, REJECTED, *COMPACTION_KEYS)
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
            before, after, trigger = map(span.get, COMPACTION_KEYS)
            facts = CompressionFacts(
                values.integer(before), values.integer(after), values.text(trigger)
            )
            return Answer(Kind.COMPRESSION, facts)
        if span.get(REJECTED) is True:
            return Answer(Kind.TOOL, RejectionFacts(), failed=False)
        return genai.by_operation(operation, span)
