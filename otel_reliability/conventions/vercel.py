"""Vercel AI SDK: `ai.operationId` (up to 6), GenAI operations in the scope `ai` (7).

Source: the spans of ai 6.0.326 and ai 7.0.173 with @ai-sdk/otel 1.0.173.
"""

from __future__ import annotations

from typing import ClassVar, Final

from otel_reliability.conventions import genai, values
from otel_reliability.conventions.base import NOTHING, Told
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.model.span import Call, InvocationFacts, Kind, ModelFacts, RawSpan, Tokens, ToolFacts

OPERATION_ID: Final = "ai.operationId"
FUNCTION_ID: Final = "ai.telemetry.functionId"
METADATA: Final = "ai.telemetry.metadata."
SESSIONS: Final = tuple(METADATA + key for key in ("sessionId", "session_id", "conversationId", "threadId", "chatId"))
FINISH_REASON: Final = "ai.response.finishReason"
INPUT_TOKENS: Final = ("ai.usage.inputTokens", "ai.usage.promptTokens", "gen_ai.usage.input_tokens")
OUTPUT_TOKENS: Final = ("ai.usage.outputTokens", "ai.usage.completionTokens", "gen_ai.usage.output_tokens")

AGENTS: Final = frozenset({"ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject"})
MODELS: Final = frozenset({".doGenerate", ".doStream"})


class Vercel:
    """Spans of the Vercel AI SDK that name its own operation; from 7 on it names GenAI operations."""

    name: ClassVar[str] = "Vercel AI SDK"
    scopes: ClassVar[tuple[str, ...]] = ()
    keys: ClassVar[frozenset[str]] = frozenset(
        {
            OPERATION_ID, FUNCTION_ID, FINISH_REASON, *SESSIONS, *INPUT_TOKENS, *OUTPUT_TOKENS, "ai.model.id",
            "ai.response.model", "ai.toolCall.name", "ai.toolCall.id", "ai.toolCall.args", "ai.toolCall.result",
            "ai.response.toolCalls",
        }
    )  # fmt: skip
    prefixes: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[frozenset[str]] = frozenset({OPERATION_ID})

    def read(self, span: RawSpan, hasher: Hasher) -> Told | None:
        """Read by the SDK's operation. Operations that are no step (embeddings, …) are nothing."""
        operation = span.attributes.get(OPERATION_ID)
        if not isinstance(operation, str):
            return None
        session = values.first(span.attributes, SESSIONS, values.identifier)
        if operation in AGENTS:
            return Told(Kind.AGENT, _agent(span), session=session)
        if operation == "ai.toolCall":
            return Told(Kind.TOOL, ToolFacts((_call(span, hasher),)), session=session)
        if operation[operation.rfind(".") :] in MODELS and not operation.startswith("ai.embed"):
            return Told(Kind.MODEL, _model(span, hasher), session=session)
        return NOTHING


def _agent(span: RawSpan) -> InvocationFacts:
    """The agent's name is the function id (Q3)."""
    return InvocationFacts(name=values.name(span.attributes.get(FUNCTION_ID)), tokens=genai.known(_usage(span)))


def _usage(span: RawSpan) -> Tokens:
    attributes = span.attributes
    return genai.tokens(attributes, INPUT_TOKENS, OUTPUT_TOKENS)


def _model(span: RawSpan, hasher: Hasher) -> ModelFacts:
    attributes = span.attributes
    calls = tuple(_message_calls(attributes.get("ai.response.toolCalls"), hasher))
    reasons = values.words(attributes.get(FINISH_REASON))
    return ModelFacts(
        model=values.text(attributes.get("ai.response.model")),
        request_model=values.text(attributes.get("ai.model.id")),
        tokens=_usage(span),
        asked_for_tools=bool(calls) or genai.asks_for_tools(reasons),
        calls=calls,
        context_limit=genai.context_limit(attributes),
        cost=genai.cost(attributes),
    )


def _message_calls(calls: object, hasher: Hasher) -> list[Call]:
    found: list[Call] = []
    for call in values.objects(calls):
        name, call_id = values.text(call.get("toolName")), values.identifier(call.get("toolCallId"))
        found.append(hasher.call(name, call_id, values.raw(call, ("input", "args")), failed=False))
    return found


def _call(span: RawSpan, hasher: Hasher) -> Call:
    attributes = span.attributes
    return hasher.call(
        values.text(attributes.get("ai.toolCall.name")),
        values.identifier(attributes.get("ai.toolCall.id")),
        attributes.get("ai.toolCall.args"),
        attributes.get("ai.toolCall.result"),
        failed=genai.tool_failed(span),
    )
