"""Google ADK's own spans, schema 2 (GenAI operations), schema 1 and 1.x (names).

Source: google-adk 1.5 and 2.13, scope `gcp.vertex.agent`.
"""

from __future__ import annotations

from typing import ClassVar, Final

from otel_reliability.conventions import genai, openinference, values
from otel_reliability.conventions.base import Told
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.model.span import Call, InvocationFacts, Kind, ModelFacts, RawSpan, Tokens, ToolFacts

SESSION: Final = "gcp.vertex.agent.session_id"
ARGUMENTS: Final = "gcp.vertex.agent.tool_call_args"
RESPONSE: Final = "gcp.vertex.agent.tool_response"
MODEL_RESPONSE: Final = "gcp.vertex.agent.llm_response"
_NOT_TOLD: Final = ("N/A", "<not serializable>")


class GoogleADK:
    """Spans of the Agent Development Kit."""

    name: ClassVar[str] = "Google ADK"
    scopes: ClassVar[tuple[str, ...]] = ("gcp.vertex.agent",)
    keys: ClassVar[frozenset[str]] = frozenset({SESSION, ARGUMENTS, RESPONSE, MODEL_RESPONSE})
    prefixes: ClassVar[tuple[str, ...]] = ()
    eager: ClassVar[bool] = False

    def read(self, span: RawSpan, hasher: Hasher) -> Told | None:
        """Tools with their own argument keys, the older spans by name (Q7, Q26); the rest is OTel GenAI."""
        attributes = span.attributes
        session = values.identifier(attributes.get(SESSION))
        operation = attributes.get(genai.OPERATION)
        if operation in genai.TOOL_OPERATIONS:
            return _tool(span, hasher)
        if isinstance(operation, str):
            told = genai.by_operation(operation, span, hasher)
            return told if session is None or told is None else told._replace(session=session)
        if span.name == "invocation":
            return Told(Kind.WORKFLOW, InvocationFacts(), session=session)
        if span.name.startswith("agent_run"):
            named = openinference.bracketed(span.name)
            return Told(Kind.AGENT, InvocationFacts(name=named), session=session)
        if span.name.startswith("call_llm"):
            return Told(Kind.MODEL, _model(span, hasher), session=session)
        return None


def _tool(span: RawSpan, hasher: Hasher) -> Told:
    """An executed tool; the span that only merges parallel ones is none (Q9)."""
    attributes = span.attributes
    told = genai.tool(span, hasher)
    if not isinstance(told.facts, ToolFacts) or ARGUMENTS not in attributes:
        return told
    known, given, result = told.facts.calls[0], attributes.get(ARGUMENTS), attributes.get(RESPONSE)
    call = hasher.call(
        known.name,
        known.call_id,
        None if given in _NOT_TOLD else given,
        None if result in _NOT_TOLD else result,
        failed=known.failed,
    )
    return told._replace(facts=ToolFacts((call,)))


def _model(span: RawSpan, hasher: Hasher) -> ModelFacts:
    """A `call_llm` span of 1.x: its output tokens are the total where the response's JSON says so (Q27)."""
    facts = genai.model_facts(span, hasher)
    given = facts.tokens
    response = values.mapping(span.attributes.get(MODEL_RESPONSE))
    told = response.get("usage_metadata")
    total = values.integer(told.get("total_token_count")) if isinstance(told, dict) else None
    if total is not None and given.output == total and given.input is not None:
        facts = facts._replace(tokens=Tokens(given.input, max(total - given.input, 0)))
    return facts
