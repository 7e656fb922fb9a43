"""Mastra's OpenTelemetry exporter: operation names of its own, agents of kind SERVER, no OTLP flags (Q29).

Source: @mastra/otel-exporter 0.3 with Mastra 0.24, scope `@mastra/otel`.
"""

from __future__ import annotations

from typing import ClassVar, Final

from otel_reliability.conventions import genai, values
from otel_reliability.conventions.base import Told
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.model.span import InvocationFacts, Kind, RawSpan

SESSION: Final = "threadId"
AGENT_ID: Final = ("gen_ai.agent.id", "agent.id")


class Mastra:
    """Spans of Mastra, by its own operation names."""

    name: ClassVar[str] = "Mastra"
    scopes: ClassVar[tuple[str, ...]] = ("@mastra/otel",)
    keys: ClassVar[frozenset[str]] = frozenset({SESSION, *AGENT_ID})
    prefixes: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[frozenset[str]] = frozenset({genai.OPERATION})

    def read(self, span: RawSpan, hasher: Hasher) -> Told | None:
        """Agents, whose id is their name (only here; elsewhere ids are random); the rest is OTel GenAI."""
        session = values.identifier(span.attributes.get(SESSION))
        operation = span.attributes.get(genai.OPERATION)
        if operation == "agent.run":
            named = values.first(span.attributes, AGENT_ID, values.name)
            facts = InvocationFacts(name=named or values.name(span.name.removeprefix("agent.")))
            return Told(Kind.AGENT, facts, session=session)
        if not isinstance(operation, str):
            return None
        told = genai.by_operation(operation, span, hasher)
        return told._replace(session=session)
