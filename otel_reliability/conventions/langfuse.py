"""Langfuse SDK: `langfuse.observation.type`, in the scope `langfuse-sdk` only.

Langfuse's own export stamps an observation type on everybody's spans (in upper case); only its SDK's scope is read by it (Q14).
Source: langfuse 5.0.4, decorators and the LangChain handler.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from otel_reliability.conventions import genai, langchain, values
from otel_reliability.conventions.base import NOTHING, Told
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.model.span import Call, InvocationFacts, Kind, ModelFacts, RawSpan, Tokens, ToolFacts

TYPE: Final = "langfuse.observation.type"
INPUT: Final = "langfuse.observation.input"
OUTPUT: Final = "langfuse.observation.output"
MODEL: Final = "langfuse.observation.model.name"
USAGE: Final = "langfuse.observation.usage_details"
COST: Final = "langfuse.observation.cost_details"
LEVEL: Final = "langfuse.observation.level"
METADATA: Final = "langfuse.observation.metadata."
INTEGRATION: Final = METADATA + "ls_integration"
AGENT_NAME: Final = METADATA + langchain.AGENT_NAME
CALL_ID: Final = METADATA + "tool_call_id"


class Langfuse:
    """Observations of the Langfuse SDK, by type."""

    name: ClassVar[str] = "Langfuse"
    scopes: ClassVar[tuple[str, ...]] = ("langfuse-sdk",)
    keys: ClassVar[frozenset[str]] = frozenset(
        {TYPE, INPUT, OUTPUT, MODEL, USAGE, COST, LEVEL, INTEGRATION, AGENT_NAME, CALL_ID}
    )
    prefixes: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[frozenset[str]] = frozenset({TYPE})

    def read(self, span: RawSpan, hasher: Hasher) -> Told | None:
        """Read by observation type, whatever its case."""
        kind = span.attributes.get(TYPE)
        if not isinstance(kind, str):
            return None
        kind = kind.lower()
        failed = True if span.attributes.get(LEVEL) == "ERROR" else None
        if kind == "agent":
            return Told(Kind.AGENT, InvocationFacts(name=langchain.graph_name(span.name)), failed)
        if kind == "tool":
            return Told(Kind.TOOL, ToolFacts((_call(span, hasher, failed is True),)), failed)
        if kind == "generation":
            return Told(Kind.MODEL, _model(span, hasher), failed)
        if kind == "chain":
            return Told(*_chain(span), failed)
        return Told(Kind.RETRIEVAL) if kind == "retriever" else NOTHING


def _chain(span: RawSpan) -> tuple[Kind, InvocationFacts]:
    """A chain; one that LangChain's callbacks told is the agent under their rules (Q20), else an explicit workflow."""
    attributes = span.attributes
    if INTEGRATION in attributes:
        metadata = {langchain.AGENT_NAME: values.parsed(attributes.get(AGENT_NAME))}
        return langchain.chain(span.name, metadata)
    return Kind.CHAIN, InvocationFacts(name=values.name(span.name))


def _model(span: RawSpan, hasher: Hasher) -> ModelFacts:
    attributes = span.attributes
    return ModelFacts(
        model=values.text(attributes.get(MODEL)),
        tokens=usage(values.mapping(attributes.get(USAGE))),
        context_limit=genai.context_limit(attributes),
        cost=values.amount(values.mapping(attributes.get(COST)).get("total")),
    )


def usage(details: Mapping[str, Any]) -> Tokens:
    """Q22: where a `total` is there, the input stands without its cached part, so it is what the output leaves of the total.

    >>> usage({"input": 203, "output": 16, "total": 347, "input_cache_read": 128})
    Tokens(input=331, output=16)
    """
    total = values.integer(details.get("total"))
    if total is None:
        return genai.tokens(details, ("input",), ("output",))
    output = sum(values.integer(details[key]) or 0 for key in details if key.startswith("output"))
    return Tokens(max(total - output, 0), output)


def _call(span: RawSpan, hasher: Hasher, marked: bool) -> Call:
    attributes = span.attributes
    call_id = values.identifier(values.parsed(attributes.get(CALL_ID)))
    failed = marked or genai.tool_failed(span)
    return hasher.call(values.text(span.name), call_id, attributes.get(INPUT), attributes.get(OUTPUT), failed=failed)
