"""Langfuse SDK: `langfuse.observation.type`, in the scope `langfuse-sdk` only.

Langfuse's own export stamps an observation type on everybody's spans (in upper case); only its
SDK's scope is read by it (Q14). Source: langfuse 5.0.4, decorators and the LangChain handler.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai, langchain
from otel_reliability.conventions.base import NOTHING, Answer, Convention, SpanView, own, own_value
from otel_reliability.model.span import InvocationFacts, Kind, ModelFacts, Tokens

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


OTHER_KINDS: Final = {
    "retriever": Answer(Kind.RETRIEVAL),
    "evaluator": Answer(Kind.EVALUATION),
    "guardrail": Answer(Kind.EVALUATION),
}

CACHED: Final = ("input_cache_read", "input_cached_tokens", "cache_read_input_tokens")
CACHE_WRITTEN: Final = ("input_cache_creation", "cache_creation_input_tokens")
"""Details of the usage, in the words of LangChain and of the providers."""


class Langfuse(Convention):
    """Observations of the Langfuse SDK, by type."""

    name = "Langfuse"
    scopes = ("langfuse-sdk",)
    request = (INPUT, "langfuse.trace.input")
    plain = (MODEL, USAGE, COST, LEVEL, INTEGRATION, AGENT_NAME, CALL_ID)
    tool_content = (INPUT, OUTPUT)
    tool_mark = (TYPE, "tool")
    needs = (TYPE,)

    def read(self, span: SpanView) -> Answer | None:
        kind = span.get(TYPE)
        if not isinstance(kind, str):
            return None
        kind = kind.lower()
        failed = True if span.get(LEVEL) == "ERROR" else None
        if kind == "agent":
            return Answer(Kind.AGENT, InvocationFacts(name=langchain.graph_name(span.name)), failed)
        if kind == "tool":
            call_id = own(langchain.call_id_of, CALL_ID)
            name = values.text(span.name)
            facts = genai.one_call(
                span, name, call_id, own_value(INPUT), own_value(OUTPUT), failed=failed is True
            )
            return Answer(Kind.TOOL, facts, failed)
        if kind == "generation":
            return Answer(Kind.MODEL, _model(span), failed)
        if kind == "chain":
            return Answer(*_chain(span), failed)
        return OTHER_KINDS.get(kind, NOTHING)


def _chain(span: SpanView) -> tuple[Kind, InvocationFacts]:
    """A chain; one that LangChain's callbacks reported is the agent under their rules (Q20), else
    an explicit workflow.
    """
    if INTEGRATION in span:
        return langchain.chain(span.name, values.parsed(span.get(AGENT_NAME)))
    return Kind.CHAIN, InvocationFacts(name=values.name(span.name))


def _model(span: SpanView) -> ModelFacts:
    return ModelFacts(
        model=values.text(span.get(MODEL)),
        tokens=own(usage, USAGE),
        context_limit=genai.context_limit(span),
        cost=own(_cost, COST),
        cached=own(partial(_detail, CACHED), USAGE),
        cache_written=own(partial(_detail, CACHE_WRITTEN), USAGE),
    )


def _detail(names: tuple[str, ...], usage_details: object) -> int | None:
    return values.first(values.mapping(usage_details), names, values.integer)


def _cost(details: object) -> float | None:
    return values.amount(values.mapping(details).get("total"))


def usage(usage_details: object) -> Tokens:
    """Q22: where a `total` is there, the input stands without its cached part, so it is what the
    output leaves of the total.

    >>> usage({"input": 203, "output": 16, "total": 347, "input_cache_read": 128})
    Tokens(input=331, output=16)
    """
    details = values.mapping(usage_details)
    total = values.integer(details.get("total"))
    if total is None:
        return genai.tokens(details, ("input",), ("output",))
    output = sum(values.integer(details[key]) or 0 for key in details if key.startswith("output"))
    return Tokens(max(total - output, 0), output)
