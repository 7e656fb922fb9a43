"""Microsoft Agent Framework: GenAI operations, and workflow spans of its own.

Source: agent-framework-core 1.23, scope `agent_framework`; for .NET the scope of workflows is
`Microsoft.Agents.AI.Workflows`, whose `workflow.session` holds several `workflow_invoke`.
"""

from __future__ import annotations

from otel_reliability.conventions.base import Answer, Convention, SpanView
from otel_reliability.model.span import InvocationFacts, Kind


class MSAgentFramework(Convention):
    """Spans of the Agent Framework that name no operation."""

    name = "Microsoft Agent Framework"
    scopes = ("agent_framework", "Microsoft.Agents.AI.Workflows")

    def read(self, span: SpanView) -> Answer | None:
        """`workflow.run` is a container (Q8); the rest is OTel GenAI."""
        if span.name.startswith(("workflow.run", "workflow_invoke")):
            return Answer(Kind.WORKFLOW, InvocationFacts())
        return None
