"""Embabel: agents and tools in `embabel.event.type`; its model calls are Spring AI's.

Source: embabel-agent-observability of 2026, through Micrometer. Tools are reported when they ended,
as spans without duration.
"""

from __future__ import annotations

from typing import Final

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai
from otel_reliability.conventions.base import NOTHING, Answer, Convention, SpanView
from otel_reliability.model.span import CANCELLED, PAUSED, InvocationFacts, Kind

EVENT: Final = "embabel.event.type"
AGENT_NAME: Final = "embabel.agent.name"
AGENT_STATUS: Final = "embabel.agent.status"
TOOL_STATUS: Final = "embabel.tool.status"
STOPPED: Final = {
    **dict.fromkeys(("WAITING", "PAUSED"), PAUSED),
    **dict.fromkeys(("KILLED", "TERMINATED"), CANCELLED),
}
FAILED: Final = frozenset({"FAILED", "STUCK"})


class Embabel(Convention):
    """Agents and tool calls of Embabel, by event."""

    name = "Embabel"
    request = ("input.value",)
    plain = (AGENT_NAME, AGENT_STATUS, TOOL_STATUS)
    needs = (EVENT,)

    def read(self, span: SpanView) -> Answer | None:
        """Read by event; plans, actions and loops over tools are nothing, as are the records of
        usage beside the model calls.
        """
        event = span.get(EVENT)
        if event == "agent_process":
            status = values.text(span.get(AGENT_STATUS)) or ""
            facts = InvocationFacts(
                name=values.name(span.get(AGENT_NAME)), stopped=STOPPED.get(status)
            )
            return Answer(Kind.AGENT, facts, True if status in FAILED else None)
        if event == "tool_call":
            return genai.tool(span, failed=span.get(TOOL_STATUS) == "error")
        return None if event is None else NOTHING
