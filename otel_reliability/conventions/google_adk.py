"""Google ADK's own spans, schema 2 (GenAI operations), schema 1 and 1.x (names).

Source: google-adk 1.5 and 2.13, scope `gcp.vertex.agent`.
"""

from __future__ import annotations

from typing import ClassVar, Final

from otel_reliability.conventions import genai, values
from otel_reliability.conventions.base import Told
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.model.span import InvocationFacts, Kind, RawSpan, Tokens, ToolFacts

SESSION: Final = "gcp.vertex.agent.session_id"
ARGUMENTS: Final = "gcp.vertex.agent.tool_call_args"
RESPONSE: Final = "gcp.vertex.agent.tool_response"
MODEL_RESPONSE: Final = "gcp.vertex.agent.llm_response"
_NOT_TOLD: Final = ("N/A", "<not serializable>")


class GoogleADK:
    """Spans of the Agent Development Kit, by operation, and by name where there is none."""

    name: ClassVar[str] = "Google ADK"
    scopes: ClassVar[tuple[str, ...]] = ("gcp.vertex.agent",)
    keys: ClassVar[frozenset[str]] = frozenset({SESSION, ARGUMENTS, RESPONSE, MODEL_RESPONSE})
    prefixes: ClassVar[tuple[str, ...]] = ()

    def read(self, span: RawSpan, hasher: Hasher) -> Told | None:
        """Tools with their own argument keys, the older spans by name (Q7, Q26); the rest is OTel GenAI."""
        attributes = span.attributes
        session = values.identifier(attributes.get(SESSION))
        operation = values.text(attributes.get(genai.OPERATION))
        told = _by_name(span, hasher) if operation is None else _by_operation(operation, span, hasher)
        return told if told is None or session is None else told._replace(session=session)


def _by_operation(operation: str, span: RawSpan, hasher: Hasher) -> Told:
    return _tool(span, hasher) if operation in genai.TOOL_OPERATIONS else genai.by_operation(operation, span, hasher)


def _by_name(span: RawSpan, hasher: Hasher) -> Told | None:
    if span.name == "invocation":
        return Told(Kind.WORKFLOW, InvocationFacts())
    if span.name.startswith("agent_run"):
        return Told(Kind.AGENT, InvocationFacts(name=bracketed(span.name)))
    if span.name.startswith("call_llm"):
        return _model(span, hasher)
    return None


def bracketed(name: str) -> str | None:
    """`agent_run [support]` names support.

    >>> bracketed("agent_run [support]"), bracketed("agent_run")
    ('support', None)
    """
    head, bracket, rest = name.partition(" [")
    return values.name(rest[:-1]) if head and bracket and rest.endswith("]") else None


def _tool(span: RawSpan, hasher: Hasher) -> Told:
    """An executed tool; the span that only merges parallel ones is none (Q9)."""
    attributes = span.attributes
    told = genai.tool(span, hasher)
    if not isinstance(told.facts, ToolFacts) or not told.facts.calls or ARGUMENTS not in attributes:
        return told
    known = told.facts.calls[0]
    given, result = _told(attributes.get(ARGUMENTS)), _told(attributes.get(RESPONSE))
    call = hasher.call(known.name, known.call_id, given, result, failed=known.failed)
    return told._replace(facts=ToolFacts((call,)))


def _told(value: object) -> object:
    return None if value in _NOT_TOLD else value


def _model(span: RawSpan, hasher: Hasher) -> Told:
    """A `call_llm` span of 1.x: its output tokens are the total where the response's JSON says so (Q27)."""
    facts, failed = genai.model_facts(span, hasher)
    usage = values.mapping(values.mapping(span.attributes.get(MODEL_RESPONSE)).get("usage_metadata"))
    total = values.integer(usage.get("total_token_count"))
    given, output = facts.tokens
    if total is not None and given is not None and output == total:
        facts = facts._replace(tokens=Tokens(given, max(total - given, 0)))
    return Told(Kind.MODEL, facts, failed)
