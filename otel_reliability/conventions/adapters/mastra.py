"""Mastra's OpenTelemetry exporter: operation names of its own, agents of kind SERVER, no OTLP flags
(Q29).

Source: @mastra/otel-exporter 0.3 with Mastra 0.24, and the exporter and the bridge of Mastra 1,
scopes `@mastra/otel…`.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai
from otel_reliability.conventions.base import Answer, Convention, SpanView, own
from otel_reliability.model.span import InvocationFacts, Kind

SESSION: Final = "threadId"
AGENT_ID: Final = ("gen_ai.agent.id", "agent.id")
AGENT_OUTPUT: Final = "mastra.agent_run.output"


class Mastra(Convention):
    """Spans of Mastra, by its own operation names."""

    name = "Mastra"
    scopes = ("@mastra/otel",)
    request = ("mastra.agent_run.input", "input")
    plain = (SESSION, *AGENT_ID)
    messages = (AGENT_OUTPUT,)
    needs = (genai.OPERATION,)

    def read(self, span: SpanView) -> Answer | None:
        """Agents, whose id is their name (only here; elsewhere ids are random); the rest is OTel
        GenAI.
        """
        session = own(values.identifier, SESSION)
        operation = span.get(genai.OPERATION)
        if operation == "agent.run":
            named = values.first(span, AGENT_ID, values.name)
            facts = InvocationFacts(name=named or values.name(span.name.removeprefix("agent.")))
            return Answer(Kind.AGENT, facts, session=session)
        if not isinstance(operation, str):
            return None
        told = genai.by_operation(operation, span)
        if isinstance(told.facts, InvocationFacts):
            stopped = span.found_in(AGENT_OUTPUT, _stopped) or told.facts.stopped
            told = replace(told, facts=replace(told.facts, stopped=stopped))
        return replace(told, session=session)


def _stopped(output: object) -> str | None:
    """Return why an agent stopped: its output is then an object with a status."""
    return genai.stopped_by(values.words(values.mapping(output).get("status")))
