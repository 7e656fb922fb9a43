"""Strands Agents: GenAI operations, arguments in span events, usage that runs on over an agent object's life.

Source: strands-agents 1.0 and 1.62, scope `strands.telemetry.tracer`.
"""

from __future__ import annotations

from typing import ClassVar, Final

from otel_reliability.conventions import genai, values
from otel_reliability.conventions.base import Told
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.model.span import Kind, RawSpan, ToolFacts

MESSAGE_EVENT: Final = "gen_ai.tool.message"
CHOICE_EVENT: Final = "gen_ai.choice"


class Strands:
    """Agents and tools of the Strands tracer."""

    name: ClassVar[str] = "Strands"
    scopes: ClassVar[tuple[str, ...]] = ("strands.telemetry.tracer",)
    keys: ClassVar[frozenset[str]] = frozenset()
    prefixes: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[frozenset[str]] = frozenset({genai.OPERATION})

    def read(self, span: RawSpan, hasher: Hasher) -> Told | None:
        """Agents without their running totals, tools with the arguments of their events (Q12); the rest is OTel GenAI."""
        operation = span.attributes.get(genai.OPERATION)
        if operation == "invoke_agent":
            return Told(Kind.AGENT, genai.agent_facts(span)._replace(tokens=None))
        if operation == "execute_tool":
            return _tool(span, hasher)
        return None


def _tool(span: RawSpan, hasher: Hasher) -> Told:
    told = genai.tool(span, hasher)
    if not isinstance(told.facts, ToolFacts) or not told.facts.calls:
        return told
    call = told.facts.calls[0]
    for event in span.events:
        if event.name == MESSAGE_EVENT and call.arguments is None:
            arguments, effect = hasher.arguments(event.attributes.get("content"))
            call_id = call.call_id or values.identifier(event.attributes.get("id"))
            call = call._replace(arguments=arguments, effect=effect, call_id=call_id)
        elif event.name == CHOICE_EVENT and call.result is None:
            call = call._replace(result=hasher.value(event.attributes.get("message")))
    return told._replace(facts=ToolFacts((call,)))
