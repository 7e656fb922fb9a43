"""OpenTelemetry GenAI semantic conventions, current names and older ones.

Source: open-telemetry/semantic-conventions-genai (all in development), and what the generations before it emitted: the older
keys `gen_ai.system`, `gen_ai.usage.prompt_tokens`, message events, `gen_ai.prompt` and `gen_ai.completion`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

from otel_reliability.conventions import values
from otel_reliability.conventions.base import NOTHING, Told
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.model.span import (
    STATUS_ERROR,
    Call,
    InvocationFacts,
    Kind,
    ModelFacts,
    RawSpan,
    Tokens,
    ToolFacts,
)

OPERATION: Final = "gen_ai.operation.name"
SYSTEM: Final = "gen_ai.system"
AGENT_NAME: Final = "gen_ai.agent.name"
WORKFLOW_NAME: Final = "gen_ai.workflow.name"
TOOL_NAME: Final = "gen_ai.tool.name"
CALL_ID: Final = "gen_ai.tool.call.id"
ARGUMENTS: Final = "gen_ai.tool.call.arguments"
RESULT: Final = "gen_ai.tool.call.result"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
INPUT_TOKENS: Final = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
OUTPUT_TOKENS: Final = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
CONTEXT_LIMITS: Final = ("reliability.context_limit", "gen_ai.context.window_size")
COSTS: Final = ("reliability.usage.cost_usd", "operation.cost")

AGENT_OPERATIONS: Final = frozenset({"invoke_agent", "agent.run"})
WORKFLOW_OPERATIONS: Final = frozenset({"invoke_workflow", "invoke_swarm", "invoke_graph"})
MODEL_OPERATIONS: Final = frozenset(
    {"chat", "generate_content", "text_completion", "completion", "response", "responses", "call_llm", "messages"}
)
TOOL_OPERATIONS: Final = frozenset({"execute_tool", "tool.execute"})
RETRIEVAL_OPERATIONS: Final = frozenset({"retrieval", "retrieve"})

LIMIT_WORDS: Final = frozenset({"max_steps", "max_turns", "max_iterations", "length"})
"""Finish reasons of an agent that say it was stopped by a limit (never read from a model call)."""
TOOL_WORDS: Final = frozenset({"tool_calls", "tool_call", "tool_use", "tool-calls", "function_call"})
"""Finish reasons of a model that asked for tools."""
FAILED_WORDS: Final = frozenset({"error", "failed"})

MERGED_TOOLS: Final = frozenset({"(merged tools)", "(merged)"})
FINISH_TOOLS: Final = frozenset({"final_answer"})
"""Tools by which smolagents ends a run; in any other scope a tool of that name is a tool."""

NO_TOOL_SPANS: Final = frozenset(
    {
        "opentelemetry.instrumentation.genai.smolagents",
        "opentelemetry.instrumentation.crewai.instrumentation",
        "opentelemetry.instrumentation.crewai",
    }
)
"""Scopes whose runs never hold a tool span, whatever their tools did (DESIGN §3.6)."""


class GenAI:
    """Spans that name their operation, and older ones that can be told by their other keys."""

    name: ClassVar[str] = "OTel GenAI"
    scopes: ClassVar[tuple[str, ...]] = ()
    keys: ClassVar[frozenset[str]] = frozenset(
        {
            OPERATION, SYSTEM, AGENT_NAME, "agent_name", WORKFLOW_NAME, TOOL_NAME, CALL_ID, ARGUMENTS, RESULT,
            REQUEST_MODEL, RESPONSE_MODEL, FINISH_REASONS, "gen_ai.response.finish_reason", "gen_ai.response.id",
            *INPUT_TOKENS, *OUTPUT_TOKENS, *CONTEXT_LIMITS, *COSTS, "error.type", "gen_ai.tool.status", "tool.status",
            "gen_ai.tool.args", "gen_ai.tool.input", "gen_ai.tool.output", "tool_arguments", "tool_response", "tools",
            "gen_ai.aggregated_usage.input_tokens", "gen_ai.aggregated_usage.output_tokens", OUTPUT_MESSAGES,
        }
    )  # fmt: skip
    prefixes: ClassVar[tuple[str, ...]] = ()
    eager: ClassVar[bool] = False

    def read(self, span: RawSpan, hasher: Hasher) -> Told | None:
        """Read by operation; where none is named, by what only such a span carries."""
        operation = span.attributes.get(OPERATION)
        if isinstance(operation, str):
            return by_operation(operation, span, hasher)
        return _without_operation(span, hasher)


def by_operation(operation: str, span: RawSpan, hasher: Hasher) -> Told | None:
    """What a span with a named operation is. Operations that are no step (embeddings, create_agent, …) are nothing."""
    if operation in MODEL_OPERATIONS:
        return Told(Kind.MODEL, model_facts(span, hasher), failed=model_failed(span))
    if operation in TOOL_OPERATIONS:
        return tool(span, hasher)
    if operation in AGENT_OPERATIONS:
        return Told(Kind.AGENT, agent_facts(span))
    if operation in WORKFLOW_OPERATIONS:
        return Told(Kind.WORKFLOW, workflow_facts(span))
    if operation in RETRIEVAL_OPERATIONS:
        return Told(Kind.RETRIEVAL)
    return NOTHING


def _without_operation(span: RawSpan, hasher: Hasher) -> Told | None:
    """Q15, older pydantic-ai and koog: a tool by `gen_ai.tool.name`, an agent by `agent_name` and the name `X run`."""
    attributes = span.attributes
    if values.text(attributes.get(TOOL_NAME)) is not None and "mcp.method.name" not in attributes:
        return tool(span, hasher)
    if values.name(attributes.get("agent_name")) is not None and span.name.endswith(" run"):
        return Told(Kind.AGENT, agent_facts(span))
    if SYSTEM in attributes and (REQUEST_MODEL in attributes or RESPONSE_MODEL in attributes):
        return Told(Kind.MODEL, model_facts(span, hasher), failed=model_failed(span))
    return None


def first(attributes: Mapping[str, Any], keys: Iterable[str]) -> Any:
    """The value of the first key that is there."""
    for key in keys:
        value = attributes.get(key)
        if value is not None:
            return value
    return None


def agent_facts(span: RawSpan) -> InvocationFacts:
    """What an `invoke_agent` span tells."""
    attributes = span.attributes
    return InvocationFacts(
        name=values.name(attributes.get(AGENT_NAME)) or values.name(attributes.get("agent_name")),
        tokens=own_totals(span),
        limit_reached=not LIMIT_WORDS.isdisjoint(finish_reasons(attributes)),
        emits_no_tools=span.scope in NO_TOOL_SPANS,
    )


def workflow_facts(span: RawSpan) -> InvocationFacts:
    """What an `invoke_workflow` span tells: its explicit name."""
    return InvocationFacts(name=values.name(span.attributes.get(WORKFLOW_NAME)))


def own_totals(span: RawSpan) -> Tokens | None:
    """The totals an agent span carries for its whole run; pydantic-ai keeps them apart as `gen_ai.aggregated_usage.*`."""
    attributes = span.attributes
    found = Tokens(
        values.integer(attributes.get("gen_ai.aggregated_usage.input_tokens")),
        values.integer(attributes.get("gen_ai.aggregated_usage.output_tokens")),
    )
    found = found if found != Tokens() else usage(attributes)
    return None if found == Tokens() else found


def usage(attributes: Mapping[str, Any]) -> Tokens:
    """Input and output tokens; old and new names say the same thing and are never added."""
    return Tokens(
        values.integer(first(attributes, INPUT_TOKENS)),
        values.integer(first(attributes, OUTPUT_TOKENS)),
    )


def finish_reasons(attributes: Mapping[str, Any]) -> list[str]:
    """The finish reasons in lower case: an array, a JSON string of one, or the older single value."""
    return values.words(first(attributes, (FINISH_REASONS, "gen_ai.response.finish_reason")))


def model_failed(span: RawSpan) -> bool | None:
    """A model call whose finish reason is `error` failed, whatever its status says."""
    return True if not FAILED_WORDS.isdisjoint(finish_reasons(span.attributes)) else None


def model_facts(span: RawSpan, hasher: Hasher) -> ModelFacts:
    """What a model call tells."""
    attributes = span.attributes
    calls = tuple(message_calls(attributes.get(OUTPUT_MESSAGES), hasher))
    reasons = finish_reasons(attributes)
    return ModelFacts(
        model=values.text(attributes.get(RESPONSE_MODEL)),
        request_model=values.text(attributes.get(REQUEST_MODEL)),
        tokens=usage(attributes),
        asked_for_tools=bool(calls) or not TOOL_WORDS.isdisjoint(reasons),
        messages=OUTPUT_MESSAGES in attributes,
        calls=calls,
        context_limit=values.integer(first(attributes, CONTEXT_LIMITS)) or None,
        cost=cost(attributes),
        response_id=values.text(attributes.get("gen_ai.response.id")),
        emits_no_tools=span.scope in NO_TOOL_SPANS,
    )


def cost(attributes: Mapping[str, Any]) -> float | None:
    """US dollars of one model call, where somebody says so."""
    found = values.number(first(attributes, COSTS))
    return found if found is not None and found >= 0 else None


def message_calls(messages: object, hasher: Hasher) -> Iterator[Call]:
    """The tool calls a model's output messages asked for: `[{parts: [{type: "tool_call", id, name, arguments}]}]`."""
    if messages is None:
        return
    for message in values.items(messages):
        parts = message.get("parts") if isinstance(message, Mapping) else None
        for part in parts if isinstance(parts, list | tuple) else ():
            if isinstance(part, Mapping) and part.get("type") == "tool_call":
                name, call_id = values.text(part.get("name")), values.identifier(part.get("id"))
                yield hasher.call(name, call_id, part.get("arguments"), failed=False)


def tool(span: RawSpan, hasher: Hasher) -> Told:
    """An `execute_tool` span: one call, unless it only merges others (Q9) or marks the end (smolagents' final answer)."""
    found = values.text(span.attributes.get(TOOL_NAME))
    if found is None and span.name.startswith("execute_tool "):
        found = values.text(span.name[len("execute_tool ") :])
    if found in MERGED_TOOLS:
        return NOTHING
    if found in FINISH_TOOLS and "smolagents" in span.scope:
        return Told(Kind.TOOL, ToolFacts(finish=True))
    call = tool_call(span, found, hasher)
    return Told(Kind.TOOL, ToolFacts((call,)), failed=call.failed)


def tool_call(span: RawSpan, tool_name: str | None, hasher: Hasher) -> Call:
    """The call, its arguments and result hashed; failed by status, by `error.type`, or by the span's own mark."""
    attributes = span.attributes
    return hasher.call(
        tool_name,
        values.identifier(attributes.get(CALL_ID)),
        first(attributes, (ARGUMENTS, "tool_arguments", "gen_ai.tool.args", "gen_ai.tool.input")),
        first(attributes, (RESULT, "tool_response", "gen_ai.tool.output")),
        failed=tool_failed(span),
    )


def tool_failed(span: RawSpan) -> bool:
    """ERROR status, `error.type`, or Q39: Strands' `gen_ai.tool.status` (1.0: `tool.status`) says error."""
    attributes = span.attributes
    if span.status == STATUS_ERROR or values.text(attributes.get("error.type")) is not None:
        return True
    return attributes.get("gen_ai.tool.status") == "error" or attributes.get("tool.status") == "error"
