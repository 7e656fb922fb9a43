"""logfire's instrumentation of OpenAI Agents: message templates as kinds (Q13).

Source: logfire 5.2 with openai-agents 0.24. (pydantic-ai's own spans are OTel GenAI.)
"""

from __future__ import annotations

from typing import Final

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai
from otel_reliability.conventions.base import NOTHING, Answer, Convention, SpanView, own, own_value
from otel_reliability.model.span import (
    HandoffFacts,
    InvocationFacts,
    Kind,
    RejectionFacts,
    ToolFacts,
)

TEMPLATE: Final = "logfire.msg_template"
LEVEL: Final = "logfire.level_num"
ERROR_LEVEL: Final = 17


class Logfire(Convention):
    """Spans of logfire, by their message template."""

    name = "logfire"
    scopes = ("logfire",)
    request = ("raw_input",)
    plain = (LEVEL, "name", "group_id", "to_agent", "logfire.span_type")
    tool_content = ("input", "output")
    tool_mark = (TEMPLATE, "function: {name}")
    messages = ("error",)
    needs = (TEMPLATE,)

    def read(self, span: SpanView) -> Answer | None:
        """Read by template; what has a GenAI operation is left to that convention."""
        template = span.get(TEMPLATE)
        if not isinstance(template, str) or isinstance(span.get(genai.OPERATION), str):
            return None
        if template.startswith("Agent run: {name"):
            return Answer(Kind.AGENT, InvocationFacts(name=values.name(span.get("name"))))
        if template.startswith("OpenAI Agents trace: {name}"):
            return Answer(
                Kind.WORKFLOW, InvocationFacts(), session=own(values.identifier, "group_id")
            )
        if template.startswith("Function: {name}"):
            if span.found_in("output", genai.approval_in):
                return Answer(Kind.TOOL, RejectionFacts(pending=True))
            return Answer(Kind.TOOL, _tool(span))
        if template.startswith("Handoff: {from_agent}"):
            return Answer(Kind.HANDOFF, HandoffFacts(values.name(span.get("to_agent"))))
        return NOTHING


def _tool(span: SpanView) -> ToolFacts:
    """A function call; the default failure handler marks the span by level and `error`, whatever
    its status.
    """
    level = values.integer(span.get(LEVEL))
    has_error = span.found_in("error", values.text) is not None
    failed = (level is not None and level >= ERROR_LEVEL) or has_error
    name = values.text(span.get("name"))
    return genai.one_call(span, name, None, own_value("input"), own_value("output"), failed=failed)
