"""Vercel AI SDK: `ai.operationId` (up to 6), GenAI operations in the scope `ai` (7).

Source: the spans of ai 6.0.326 and ai 7.0.173 with @ai-sdk/otel 1.0.173.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai
from otel_reliability.conventions.base import (
    NOTHING,
    Answer,
    Convention,
    SpanView,
    own,
    own_value,
    reported_call,
)
from otel_reliability.model.span import Call, InvocationFacts, Kind, ModelFacts, ToolFacts

OPERATION_ID: Final = "ai.operationId"
FUNCTION_ID: Final = "ai.telemetry.functionId"
METADATA: Final = "ai.telemetry.metadata."
SESSIONS: Final = tuple(
    METADATA + key for key in ("sessionId", "session_id", "conversationId", "threadId", "chatId")
)
CONTEXT_SESSIONS: Final = tuple(
    "ai.settings.context." + key
    for key in ("sessionId", "session_id", "conversationId", "threadId", "chatId")
)
"""Keys under which version 7 keeps what its user gave as context."""
FINISH_REASON: Final = "ai.response.finishReason"
INPUT_TOKENS: Final = ("ai.usage.inputTokens", "ai.usage.promptTokens", "gen_ai.usage.input_tokens")
OUTPUT_TOKENS: Final = (
    "ai.usage.outputTokens",
    "ai.usage.completionTokens",
    "gen_ai.usage.output_tokens",
)

AGENTS: Final = frozenset(
    {"ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject"}
)
MODELS: Final = frozenset({".doGenerate", ".doStream"})


CACHED_TOKENS: Final = (
    "ai.usage.inputTokenDetails.cacheReadTokens",
    "ai.usage.cachedInputTokens",
)
CACHE_WRITTEN_TOKENS: Final = ("ai.usage.inputTokenDetails.cacheWriteTokens",)
REASONING_TOKENS: Final = (
    "ai.usage.outputTokenDetails.reasoningTokens",
    "ai.usage.reasoningTokens",
)
PROVIDER: Final = "ai.model.provider"
RESPONSE_ID: Final = "ai.response.id"


class Vercel(Convention):
    """Spans of the Vercel AI SDK that name its own operation; from 7 on it
    names GenAI operations.
    """

    name = "Vercel AI SDK"
    request = ("ai.prompt", "ai.prompt.messages")
    asks = ("ai.response.toolCalls",)
    plain = (
        FUNCTION_ID,
        FINISH_REASON,
        *SESSIONS,
        *CONTEXT_SESSIONS,
        *INPUT_TOKENS,
        *OUTPUT_TOKENS,
        *CACHED_TOKENS,
        *CACHE_WRITTEN_TOKENS,
        *REASONING_TOKENS,
        PROVIDER,
        RESPONSE_ID,
        "ai.model.id",
        "ai.response.model",
        "ai.toolCall.name",
        "ai.toolCall.id",
    )
    content = ("ai.toolCall.args", "ai.toolCall.result")
    messages = ("ai.response.toolCalls",)
    needs = (OPERATION_ID, *CONTEXT_SESSIONS)

    def read(self, span: SpanView) -> Answer | None:
        """Read by the SDK's operation. Operations that are no step (embeddings, …) are nothing."""
        operation = span.get(OPERATION_ID)
        if not isinstance(operation, str):
            return _of_version_7(span)
        session = own(values.identifier, *SESSIONS)
        if operation in AGENTS:
            name = values.name(span.get(FUNCTION_ID))  # the function id (Q3)
            facts = InvocationFacts(name=name, tokens=genai.usage(INPUT_TOKENS, OUTPUT_TOKENS))
            return Answer(Kind.AGENT, facts, session=session)
        if operation == "ai.toolCall":
            return Answer(Kind.TOOL, _tool(span), session=session)
        if operation[operation.rfind(".") :] in MODELS and not operation.startswith("ai.embed"):
            return Answer(Kind.MODEL, _model(span), session=session)
        return NOTHING


def _of_version_7(span: SpanView) -> Answer | None:
    """A span of GenAI operations, with a session of the user's context."""
    operation = span.get(genai.OPERATION)
    if not isinstance(operation, str):
        return None
    session = own(values.identifier, *CONTEXT_SESSIONS)
    return replace(genai.by_operation(operation, span), session=session)


def _model(span: SpanView) -> ModelFacts:
    return ModelFacts(
        model=values.text(span.get("ai.response.model")),
        request_model=values.text(span.get("ai.model.id")),
        tokens=genai.usage(INPUT_TOKENS, OUTPUT_TOKENS),
        asked_for_tools=genai.asks_for_tools(values.words(span.get(FINISH_REASON))),
        calls=own(_message_calls, "ai.response.toolCalls"),
        context_limit=genai.context_limit(span),
        cost=own(values.amount, *genai.COSTS),
        response_id=own(values.text, RESPONSE_ID, genai.RESPONSE_ID),
        provider=values.text(span.get(PROVIDER)) or genai.provider(span),
        cached=own(values.integer, *CACHED_TOKENS),
        cache_written=own(values.integer, *CACHE_WRITTEN_TOKENS),
        emits_tools=True,
        reasoned=own(values.integer, *REASONING_TOKENS),
        served=own(_served_tools, "ai.response.toolCalls"),
    )


def _message_calls(calls: object) -> tuple[Call, ...]:
    return tuple(
        reported_call(
            values.text(call.get("toolName")),
            values.identifier(call.get("toolCallId")),
            values.raw(call, ("input", "args")),
        )
        for call in values.objects(calls)
        if call.get("providerExecuted") is not True
    )


def _served_tools(calls: object) -> tuple[str, ...]:
    if isinstance(calls, str) and "providerExecuted" not in calls:
        return ()
    return tuple(
        name
        for call in values.objects(calls)
        if call.get("providerExecuted") is True
        and (name := values.text(call.get("toolName"))) is not None
    )


def _tool(span: SpanView) -> ToolFacts:
    return genai.one_call(
        span,
        values.text(span.get("ai.toolCall.name")),
        own(values.identifier, "ai.toolCall.id"),
        own_value("ai.toolCall.args"),
        own_value("ai.toolCall.result"),
    )
