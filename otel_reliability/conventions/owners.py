"""Owners: the agent, and its invocation, that a model or tool span says it belongs to, whatever its
convention, and the response that it continues. Assembly compares them with the span's parents,
which a lost context makes wrong.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

from msgspec.structs import replace

from otel_reliability.conventions import values
from otel_reliability.conventions.base import Answer, SpanView, own
from otel_reliability.model.span import InvocationFacts, ModelFacts, ToolFacts

AGENT_NAMES: Final = ("gen_ai.agent.name", "ai.telemetry.functionId")
INVOCATION_IDS: Final = ("gen_ai.agent.call.id",)
PREVIOUS_RESPONSE: Final = "gen_ai.request.previous_response.id"
KEYS: Final = frozenset({*AGENT_NAMES, *INVOCATION_IDS, PREVIOUS_RESPONSE})


def completed(answer: Answer, keys: AbstractSet[str], span: SpanView) -> Answer:
    """Return the answer with the owner that a span of these keys names."""
    facts = answer.facts
    is_of_tool = isinstance(facts, ToolFacts) and len(facts.calls) == 1
    if not is_of_tool and not isinstance(facts, ModelFacts | InvocationFacts):
        return answer
    if not keys.isdisjoint(INVOCATION_IDS):
        facts = replace(facts, invocation_id=own(values.identifier, *INVOCATION_IDS))
    if isinstance(facts, ModelFacts | ToolFacts):
        facts = replace(facts, agent=values.first(span, AGENT_NAMES, values.name))
    if isinstance(facts, ModelFacts) and PREVIOUS_RESPONSE in keys:
        facts = replace(facts, previous_response=own(values.identifier, PREVIOUS_RESPONSE))
    return replace(answer, facts=facts)
