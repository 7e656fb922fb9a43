"""Spans that failed and lost every attribute, recognized by `<operation> <name>` (Q25).

Source: openlit 1.35 and 1.45, google-adk 1.x: the calls and runs that failed, the very ones that
matter.
"""

from __future__ import annotations

from typing import Final

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai
from otel_reliability.conventions.base import NOTHING, Answer, Convention, SpanView
from otel_reliability.model.span import (
    KIND_CLIENT,
    STATUS_ERROR,
    Call,
    InvocationFacts,
    Kind,
    ModelFacts,
    ToolFacts,
)

_MODELS: Final = frozenset({"chat", "generate_content", "text_completion"})


class ByName(Convention):
    """Spans without any operation whose name begins with one. An agent's name read this way is
    weak.
    """

    name = "span name"
    names = (
        "execute_tool ",
        "invoke_agent ",
        "invoke_workflow ",
        "chat ",
        "generate_content ",
        "text_completion ",
    )

    def read(self, span: SpanView) -> Answer | None:
        """Model kinds only on CLIENT spans: `chat with support` is a plausible name for anything
        else.
        """
        operation, blank, rest = span.name.partition(" ")
        if not blank or not rest or genai.OPERATION in span:
            return None
        if operation == "execute_tool":
            if rest in genai.MERGED_TOOLS:
                return NOTHING
            call = Call(values.text(rest), failed=span.status == STATUS_ERROR)
            return Answer(Kind.TOOL, ToolFacts((call,)))
        if operation == "invoke_agent":
            return Answer(Kind.AGENT, InvocationFacts(name=values.name(rest), weak=True))
        if operation == "invoke_workflow":
            return Answer(Kind.WORKFLOW, InvocationFacts(name=values.name(rest), weak=True))
        if operation in _MODELS and span.span_kind == KIND_CLIENT:
            return Answer(Kind.MODEL, ModelFacts(request_model=values.text(rest)))
        return None
