"""Microsoft Agent Framework: GenAI operations, and workflow spans of its own.

Source: agent-framework-core 1.23, scope `agent_framework`.
"""

from __future__ import annotations

from typing import ClassVar

from otel_reliability.conventions.base import Told
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.model.span import InvocationFacts, Kind, RawSpan


class MSAgentFramework:
    """Spans of the Agent Framework that name no operation."""

    name: ClassVar[str] = "Microsoft Agent Framework"
    scopes: ClassVar[tuple[str, ...]] = ("agent_framework",)
    keys: ClassVar[frozenset[str]] = frozenset()
    prefixes: ClassVar[tuple[str, ...]] = ()

    def read(self, span: RawSpan, hasher: Hasher) -> Told | None:
        """`workflow.run` is a container (Q8); the rest is OTel GenAI."""
        if span.name.startswith("workflow.run"):
            return Told(Kind.WORKFLOW, InvocationFacts())
        return None
