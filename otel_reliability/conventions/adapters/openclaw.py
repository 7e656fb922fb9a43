"""OpenClaw's own diagnostics: runs, model calls and tools named by the span; GenAI keys on steps.

Source: extension diagnostics-otel of 2026, scope `openclaw`. The tokens of a run stand on one span
of usage beside its model calls. A tool that a policy blocked has a span without duration.
"""

from __future__ import annotations

from typing import Final

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai
from otel_reliability.conventions.base import Answer, Convention, SpanView, own
from otel_reliability.model.span import InvocationFacts, Kind, RejectionFacts

AGENT: Final = "openclaw.agent"
OUTCOME: Final = "openclaw.outcome"
TOOL: Final = "openclaw.toolName"
RUNS: Final = frozenset({"openclaw.run", "openclaw.harness.run"})
"""One invocation may have both, in one another."""


class OpenClaw(Convention):
    """Runs of OpenClaw, and tools that were not executed; models are OTel GenAI."""

    name = "OpenClaw"
    scopes = ("openclaw",)
    plain = (AGENT, OUTCOME, TOOL)

    def read(self, span: SpanView) -> Answer | None:
        """Read runs by the name of the span, tools by their own key."""
        if span.name in RUNS:
            outcome = values.text(span.get(OUTCOME)) or ""
            facts = InvocationFacts(
                name=values.name(span.get(AGENT)), stopped=genai.STOP_WORDS.get(outcome)
            )
            return Answer(Kind.AGENT, facts)
        if TOOL not in span or span.name != "openclaw.tool.execution":
            return None
        if span.get(OUTCOME) == "blocked":
            return Answer(Kind.TOOL, RejectionFacts(own(values.identifier, genai.CALL_ID)))
        return genai.tool(span)
