"""MLflow tracing: `mlflow.spanType` and its fellows, whose values are JSON text (Q21).

Source: mlflow 3.17 over LangGraph 1.2.
"""

from __future__ import annotations

from typing import Final

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai, langchain
from otel_reliability.conventions.base import NOTHING, Answer, Convention, SpanView, own, own_value
from otel_reliability.model.span import InvocationFacts, Kind, ModelFacts, Tokens

TYPE: Final = "mlflow.spanType"
INPUTS: Final = "mlflow.spanInputs"
OUTPUTS: Final = "mlflow.spanOutputs"
MODEL: Final = "mlflow.llm.model"
USAGE: Final = "mlflow.chat.tokenUsage"
METADATA: Final = "metadata"
CALL_ID: Final = "tool_call_id"
OPENAI_AGENTS: Final = "AgentRunner."
"""Start of the name of the span around the agents of the OpenAI Agents SDK: a function, no agent
(Q45).
"""


class MLflow(Convention):
    """Spans of MLflow's tracer, by span type."""

    name = "MLflow"
    scopes = ("mlflow",)
    request = (INPUTS,)
    plain = (MODEL, USAGE, CALL_ID)
    tool_content = (INPUTS, OUTPUTS, METADATA)
    tool_mark = (TYPE, "tool", '"tool"')
    needs = (TYPE,)

    def read(self, span: SpanView) -> Answer | None:
        kind = values.parsed(span.get(TYPE))
        if not isinstance(kind, str):
            return None
        session = own(langchain.thread_of, METADATA)
        if kind == "TOOL":
            call_id = own(langchain.call_id_of, CALL_ID)
            name = values.text(span.name)
            facts = genai.one_call(span, name, call_id, own_value(INPUTS), own_value(OUTPUTS))
            return Answer(Kind.TOOL, facts, session=session)
        if kind in {"CHAT_MODEL", "LLM"}:
            return Answer(Kind.MODEL, _model(span), session=session)
        if kind == "AGENT":
            if span.name.startswith(OPENAI_AGENTS):
                return Answer(Kind.WORKFLOW, InvocationFacts(), session=session)
            return Answer(Kind.AGENT, InvocationFacts(name=values.name(span.name)), session=session)
        if kind == "CHAIN":
            return Answer(
                *langchain.chain(span.name, span.found_in(METADATA, langchain.agent_of)),
                session=session,
            )
        if kind == "RETRIEVER":
            return Answer(Kind.RETRIEVAL, session=session)
        return NOTHING


def _model(span: SpanView) -> ModelFacts:
    return ModelFacts(
        model=values.text(values.parsed(span.get(MODEL))),
        tokens=own(_usage, USAGE),
        context_limit=genai.context_limit(span),
        cost=own(values.amount, *genai.COSTS),
    )


def _usage(usage: object) -> Tokens:
    return genai.tokens(values.mapping(usage), ("input_tokens",), ("output_tokens",))
