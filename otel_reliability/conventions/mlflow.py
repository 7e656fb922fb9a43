"""MLflow tracing: `mlflow.spanType` and its fellows, whose values are JSON text (Q21).

Source: mlflow 3.17 over LangGraph 1.2.
"""

from __future__ import annotations

from typing import ClassVar, Final

from otel_reliability.conventions import genai, langchain, values
from otel_reliability.conventions.base import NOTHING, Told
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.model.span import Call, InvocationFacts, Kind, ModelFacts, RawSpan, ToolFacts

TYPE: Final = "mlflow.spanType"
INPUTS: Final = "mlflow.spanInputs"
OUTPUTS: Final = "mlflow.spanOutputs"
MODEL: Final = "mlflow.llm.model"
USAGE: Final = "mlflow.chat.tokenUsage"
METADATA: Final = "metadata"
CALL_ID: Final = "tool_call_id"


class MLflow:
    """Spans of MLflow's tracer, by span type."""

    name: ClassVar[str] = "MLflow"
    scopes: ClassVar[tuple[str, ...]] = ("mlflow",)
    keys: ClassVar[frozenset[str]] = frozenset({TYPE, INPUTS, OUTPUTS, MODEL, USAGE, METADATA, CALL_ID})
    prefixes: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[frozenset[str]] = frozenset({TYPE})

    def read(self, span: RawSpan, hasher: Hasher) -> Told | None:
        """Read by span type."""
        attributes = span.attributes
        kind = values.parsed(attributes.get(TYPE))
        if not isinstance(kind, str):
            return None
        metadata = values.mapping(attributes.get(METADATA))
        session = values.identifier(metadata.get(langchain.THREAD))
        if kind == "TOOL":
            return Told(Kind.TOOL, ToolFacts((_call(span, hasher),)), session=session)
        if kind in {"CHAT_MODEL", "LLM"}:
            return Told(Kind.MODEL, _model(span), session=session)
        if kind == "AGENT":
            return Told(Kind.AGENT, InvocationFacts(name=values.name(span.name)), session=session)
        if kind == "CHAIN":
            return Told(*langchain.chain(span.name, metadata), session=session)
        if kind == "RETRIEVER":
            return Told(Kind.RETRIEVAL, session=session)
        return NOTHING


def _model(span: RawSpan) -> ModelFacts:
    attributes = span.attributes
    return ModelFacts(
        model=values.text(values.parsed(attributes.get(MODEL))),
        tokens=genai.tokens(values.mapping(attributes.get(USAGE)), ("input_tokens",), ("output_tokens",)),
        context_limit=genai.context_limit(attributes),
        cost=genai.cost(attributes),
    )


def _call(span: RawSpan, hasher: Hasher) -> Call:
    attributes = span.attributes
    call_id = values.identifier(values.parsed(attributes.get(CALL_ID)))
    failed = genai.tool_failed(span)
    return hasher.call(values.text(span.name), call_id, attributes.get(INPUTS), attributes.get(OUTPUTS), failed=failed)
