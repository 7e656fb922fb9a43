"""OpenTelemetry GenAI semantic conventions, current names and older ones.

Source: open-telemetry/semantic-conventions-genai (all in development), and what the generations before it emitted: the older
keys `gen_ai.system` and `gen_ai.usage.prompt_tokens`, pydantic-ai's `agent_name` and `tool_arguments`, koog's tools.
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
OLD_AGENT_NAME: Final = "agent_name"
WORKFLOW_NAME: Final = "gen_ai.workflow.name"
TOOL_NAME: Final = "gen_ai.tool.name"
CALL_ID: Final = "gen_ai.tool.call.id"
ARGUMENTS: Final = "gen_ai.tool.call.arguments"
RESULT: Final = "gen_ai.tool.call.result"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
RESPONSE_ID: Final = "gen_ai.response.id"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
OLD_FINISH_REASON: Final = "gen_ai.response.finish_reason"
INPUT_TOKENS: Final = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
OUTPUT_TOKENS: Final = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
AGGREGATED_INPUT: Final = ("gen_ai.aggregated_usage.input_tokens",)
AGGREGATED_OUTPUT: Final = ("gen_ai.aggregated_usage.output_tokens",)
TOOL_ARGUMENTS: Final = (ARGUMENTS, "tool_arguments", "gen_ai.tool.args", "gen_ai.tool.input", "input.value")
TOOL_RESULTS: Final = (RESULT, "tool_response", "gen_ai.tool.output", "output.value")
TOOL_STATUS: Final = ("gen_ai.tool.status", "tool.status")
ERROR_TYPE: Final = "error.type"
MCP_METHOD: Final = "mcp.method.name"
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
FINISH_TOOL: Final = "final_answer"
"""The tool by which smolagents ends a run; in any other scope a tool of that name is a tool."""
TOOL_SPAN: Final = "execute_tool "

NO_TOOL_SPANS: Final = frozenset(
    {
        "opentelemetry.instrumentation.genai.smolagents",
        "opentelemetry.instrumentation.crewai.instrumentation",
        "opentelemetry.instrumentation.crewai",
    }
)
"""Scopes whose runs never hold a tool span, whatever their tools did."""


class GenAI:
    """Spans that name their operation, and older ones that can be told by their other keys."""

    name: ClassVar[str] = "OTel GenAI"
    scopes: ClassVar[tuple[str, ...]] = ()
    keys: ClassVar[frozenset[str]] = frozenset(
        {
            OPERATION, SYSTEM, AGENT_NAME, OLD_AGENT_NAME, WORKFLOW_NAME, TOOL_NAME, CALL_ID, *TOOL_ARGUMENTS, *TOOL_RESULTS,
            *TOOL_STATUS, ERROR_TYPE, MCP_METHOD, REQUEST_MODEL, RESPONSE_MODEL, RESPONSE_ID, FINISH_REASONS, OLD_FINISH_REASON,
            *INPUT_TOKENS, *OUTPUT_TOKENS, *AGGREGATED_INPUT, *AGGREGATED_OUTPUT, *CONTEXT_LIMITS, *COSTS, OUTPUT_MESSAGES,
        }
    )  # fmt: skip
    prefixes: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[frozenset[str]] = frozenset({OPERATION, TOOL_NAME, OLD_AGENT_NAME, SYSTEM})

    def read(self, span: RawSpan, hasher: Hasher) -> Told | None:
        """Read by operation; where none is named, by what only such a span carries."""
        operation = span.attributes.get(OPERATION)
        if isinstance(operation, str):
            return by_operation(operation, span, hasher)
        return _without_operation(span, hasher)


def by_operation(operation: str, span: RawSpan, hasher: Hasher) -> Told:
    """What a span with a named operation is. Operations that are no step (embeddings, create_agent, …) are nothing."""
    if operation in MODEL_OPERATIONS:
        return model(span, hasher)
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
    if values.text(attributes.get(TOOL_NAME)) is not None and MCP_METHOD not in attributes:
        return tool(span, hasher)
    if values.name(attributes.get(OLD_AGENT_NAME)) is not None and span.name.endswith(" run"):
        return Told(Kind.AGENT, agent_facts(span))
    if SYSTEM in attributes and (REQUEST_MODEL in attributes or RESPONSE_MODEL in attributes):
        return model(span, hasher)
    return None


def agent_facts(span: RawSpan) -> InvocationFacts:
    """What an `invoke_agent` span tells."""
    attributes = span.attributes
    return InvocationFacts(
        name=values.first(attributes, (AGENT_NAME, OLD_AGENT_NAME), values.name),
        tokens=own_totals(attributes),
        limit_reached=not LIMIT_WORDS.isdisjoint(finish_reasons(attributes)),
        emits_no_tools=span.scope in NO_TOOL_SPANS,
    )


def workflow_facts(span: RawSpan) -> InvocationFacts:
    """What an `invoke_workflow` span tells: its explicit name."""
    return InvocationFacts(name=values.name(span.attributes.get(WORKFLOW_NAME)))


def own_totals(attributes: Mapping[str, Any]) -> Tokens | None:
    """The totals an agent span carries for its whole run; pydantic-ai keeps them apart as `gen_ai.aggregated_usage.*`."""
    return known(tokens(attributes, AGGREGATED_INPUT, AGGREGATED_OUTPUT)) or known(usage(attributes))


def usage(attributes: Mapping[str, Any]) -> Tokens:
    """Input and output tokens; old and new names say the same thing and are never added."""
    return tokens(attributes, INPUT_TOKENS, OUTPUT_TOKENS)


def tokens(attributes: Mapping[str, Any], inputs: Iterable[str], outputs: Iterable[str]) -> Tokens:
    """Input and output tokens, each under the first of its keys that tells some."""
    return Tokens(values.first(attributes, inputs, values.integer), values.first(attributes, outputs, values.integer))


def known(found: Tokens) -> Tokens | None:
    """Tokens of which at least one side is told."""
    return None if found.input is None and found.output is None else found


def finish_reasons(attributes: Mapping[str, Any]) -> list[str]:
    """The finish reasons in lower case: an array, a JSON string of one, or the older single value."""
    return values.words(values.raw(attributes, (FINISH_REASONS, OLD_FINISH_REASON)))


def asks_for_tools(reasons: Iterable[str]) -> bool:
    """Whether these finish reasons of a model say that it asked for tools."""
    return not TOOL_WORDS.isdisjoint(reasons)


def failed_by(reasons: Iterable[str]) -> bool | None:
    """A model call whose finish reason is `error` failed, whatever its status says; None: the status decides."""
    return None if FAILED_WORDS.isdisjoint(reasons) else True


def model(span: RawSpan, hasher: Hasher) -> Told:
    """A model call."""
    facts, failed = model_facts(span, hasher)
    return Told(Kind.MODEL, facts, failed)


def model_facts(span: RawSpan, hasher: Hasher, *, asking: bool = True) -> tuple[ModelFacts, bool | None]:
    """What a model call tells, and whether it says itself that it failed; `asking`: also what its messages ask for."""
    attributes = span.attributes
    calls = tuple(message_calls(attributes.get(OUTPUT_MESSAGES), hasher)) if asking else ()
    reasons = finish_reasons(attributes)
    facts = ModelFacts(
        model=values.text(attributes.get(RESPONSE_MODEL)),
        request_model=values.text(attributes.get(REQUEST_MODEL)),
        tokens=usage(attributes),
        asked_for_tools=bool(calls) or asks_for_tools(reasons),
        messages=OUTPUT_MESSAGES in attributes,
        calls=calls,
        context_limit=context_limit(attributes),
        cost=cost(attributes),
        response_id=values.text(attributes.get(RESPONSE_ID)),
        emits_no_tools=span.scope in NO_TOOL_SPANS,
    )
    return facts, failed_by(reasons)


def context_limit(attributes: Mapping[str, Any]) -> int | None:
    """The model's context window in tokens, where somebody says so."""
    return values.first(attributes, CONTEXT_LIMITS, values.positive)


def cost(attributes: Mapping[str, Any]) -> float | None:
    """US dollars of one model call, where somebody says so."""
    return values.first(attributes, COSTS, values.amount)


def message_calls(messages: object, hasher: Hasher) -> Iterator[Call]:
    """The tool calls a model's output messages asked for: `[{parts: [{type: "tool_call", id, name, arguments}]}]`."""
    if messages is None or (isinstance(messages, str) and "tool_call" not in messages):
        return
    for message in values.objects(messages):
        for part in values.objects(message.get("parts")):
            if part.get("type") == "tool_call":
                name, call_id = values.text(part.get("name")), values.identifier(part.get("id"))
                yield hasher.call(name, call_id, part.get("arguments"), failed=False)


def tool(span: RawSpan, hasher: Hasher) -> Told:
    """An `execute_tool` span: one call, unless it only merges others (Q9) or marks the end (smolagents' final answer)."""
    name = values.text(span.attributes.get(TOOL_NAME))
    if name is None and span.name.startswith(TOOL_SPAN):
        name = values.text(span.name[len(TOOL_SPAN) :])
    if name in MERGED_TOOLS:
        return NOTHING
    if name == FINISH_TOOL and "smolagents" in span.scope:
        return Told(Kind.TOOL, ToolFacts(finish=True))
    call = tool_call(span, name, hasher)
    return Told(Kind.TOOL, ToolFacts((call,)), failed=call.failed)


def tool_call(span: RawSpan, name: str | None, hasher: Hasher) -> Call:
    """The call, its arguments and result hashed."""
    attributes = span.attributes
    call_id = values.identifier(attributes.get(CALL_ID))
    given, result = values.raw(attributes, TOOL_ARGUMENTS), values.raw(attributes, TOOL_RESULTS)
    return hasher.call(name, call_id, given, result, failed=tool_failed(span))


def tool_failed(span: RawSpan) -> bool:
    """ERROR status, `error.type`, or Q39: Strands' `gen_ai.tool.status` (1.0: `tool.status`) says error."""
    attributes = span.attributes
    if span.status == STATUS_ERROR or values.text(attributes.get(ERROR_TYPE)) is not None:
        return True
    return any(attributes.get(key) == "error" for key in TOOL_STATUS)
