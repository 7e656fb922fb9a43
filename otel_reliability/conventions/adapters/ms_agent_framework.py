"""Microsoft Agent Framework: GenAI operations, and workflow spans of its own.

Source: agent-framework-core 1.23, scope `agent_framework`.
"""

from __future__ import annotations

from otel_reliability.conventions.base import Answer, Convention, SpanView
from otel_reliability.model.span import InvocationFacts, Kind


class MSAgentFramework(Convention):
    """Spans of the Agent Framework that name no operation."""

    name = "Microsoft Agent Framework"
    scopes = ("agent_framework",)

    def read(self, span: SpanView) -> Answer | None:
        """`workflow.run` is a container (Q8); the rest is OTel GenAI."""
        if span.name.startswith("workflow.run"):
            return Answer(Kind.WORKFLOW, InvocationFacts())
        return None
