"""logfire's instrumentation of OpenAI Agents: message templates as kinds (Q13).

Source: logfire 5.2 with openai-agents 0.24. (pydantic-ai's own spans are OTel GenAI.)
"""

from __future__ import annotations

from typing import ClassVar, Final

from otel_reliability.conventions import genai, values
from otel_reliability.conventions.base import NOTHING, Told
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.model.span import Call, HandoffFacts, InvocationFacts, Kind, RawSpan, ToolFacts

TEMPLATE: Final = "logfire.msg_template"
LEVEL: Final = "logfire.level_num"
ERROR_LEVEL: Final = 17


class Logfire:
    """Spans of logfire that are told by their message template."""

    name: ClassVar[str] = "logfire"
    scopes: ClassVar[tuple[str, ...]] = ("logfire",)
    keys: ClassVar[frozenset[str]] = frozenset(
        {TEMPLATE, LEVEL, "name", "input", "output", "error", "group_id", "to_agent", "logfire.span_type"}
    )
    prefixes: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[frozenset[str]] = frozenset({TEMPLATE})

    def read(self, span: RawSpan, hasher: Hasher) -> Told | None:
        """Read by template; what has a GenAI operation is left to that convention."""
        attributes = span.attributes
        template = attributes.get(TEMPLATE)
        if not isinstance(template, str) or isinstance(attributes.get(genai.OPERATION), str):
            return None
        if template.startswith("Agent run: {name"):
            return Told(Kind.AGENT, InvocationFacts(name=values.name(attributes.get("name"))))
        if template.startswith("OpenAI Agents trace: {name}"):
            return Told(Kind.WORKFLOW, InvocationFacts(), session=values.identifier(attributes.get("group_id")))
        if template.startswith("Function: {name}"):
            return Told(Kind.TOOL, ToolFacts((_call(span, hasher),)))
        if template.startswith("Handoff: {from_agent}"):
            return Told(Kind.HANDOFF, HandoffFacts(values.name(attributes.get("to_agent"))))
        return NOTHING


def _call(span: RawSpan, hasher: Hasher) -> Call:
    """A function call; the default failure handler marks the span by level and `error`, whatever its status."""
    attributes = span.attributes
    level = values.integer(attributes.get(LEVEL))
    marked = (level is not None and level >= ERROR_LEVEL) or values.text(attributes.get("error")) is not None
    failed = marked or genai.tool_failed(span)
    name = values.text(attributes.get("name"))
    return hasher.call(name, None, attributes.get("input"), attributes.get("output"), failed=failed)
