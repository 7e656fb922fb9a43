"""Session files of coding agents, as `sources.sessions` reads them.

Spans of the GenAI conventions, with what these lack: a call that was refused, a compaction, and
what a file may not hold.
"""

from __future__ import annotations

from msgspec.structs import replace

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai
from otel_reliability.conventions.base import Answer, Convention, SpanView
from otel_reliability.model.session_attributes import (
    COMPACTION,
    LACKS_MODELS,
    LACKS_OUTPUT,
    LACKS_TOOLS,
    PROMPT,
    REJECTED,
    SCOPE,
    TOKENS_AFTER,
    TOKENS_BEFORE,
    TRIGGER,
)
from otel_reliability.model.span import CompressionFacts, InvocationFacts, Kind, RejectionFacts


class SessionFiles(Convention):
    """Spans in the scope of the reader of session files."""

    name = "Session files"
    scopes = (SCOPE,)
    request = (PROMPT,)
    plain = (
        *genai.GenAI.plain,
        *genai.GenAI.needs,
        REJECTED,
        LACKS_TOOLS,
        LACKS_MODELS,
        LACKS_OUTPUT,
        TOKENS_BEFORE,
        TOKENS_AFTER,
        TRIGGER,
    )
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
        answer = genai.by_operation(operation, span)
        if not isinstance(answer.facts, InvocationFacts):
            return answer
        lacks_tools = span.get(LACKS_TOOLS) is True
        lacks_models = span.get(LACKS_MODELS) is True
        lacks_output = span.get(LACKS_OUTPUT) is True
        if not (lacks_tools or lacks_models or lacks_output):
            return answer
        facts = replace(
            answer.facts,
            lacks_tools=lacks_tools,
            lacks_models=lacks_models,
            lacks_output=lacks_output,
        )
        return replace(answer, facts=facts)
