"""OpenTelemetry GenAI semantic conventions, current names and older ones.

Source: open-telemetry/semantic-conventions-genai (all in development), and what the generations
before it emitted: the older keys `gen_ai.system` and `gen_ai.usage.prompt_tokens`, pydantic-ai's
`agent_name` and `tool_arguments`, koog's tools.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from otel_reliability.conventions import values
from otel_reliability.conventions.base import (
    NOTHING,
    Answer,
    Convention,
    EventAnswer,
    SpanView,
    own,
    own_of_all,
    own_value,
    reported_call,
)
from otel_reliability.model.span import (
    CANCELLED,
    PAUSED,
    STATUS_ERROR,
    Call,
    CompressionFacts,
    HandoffFacts,
    InvocationFacts,
    Kind,
    ModelFacts,
    RawLog,
    RejectionFacts,
    Tokens,
    ToolFacts,
    is_no_name,
)

OPERATION: Final = "gen_ai.operation.name"
SYSTEM: Final = "gen_ai.system"
AGENT_NAME: Final = "gen_ai.agent.name"
OLD_AGENT_NAME: Final = "agent_name"
AGENT_ID: Final = "gen_ai.agent.id"
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
INPUT_TOKENS: Final = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "gen_ai.response.prompt_tokens",
)
OUTPUT_TOKENS: Final = (
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "gen_ai.response.completion_tokens",
)
"""The last of each is Semantic Kernel's."""
AGGREGATED_INPUT: Final = ("gen_ai.aggregated_usage.input_tokens",)
AGGREGATED_OUTPUT: Final = ("gen_ai.aggregated_usage.output_tokens",)
"""The totals of an agent's run, where pydantic-ai keeps them apart."""
CALL_ARGUMENTS: Final = (
    *(ARGUMENTS, "tool_arguments", "gen_ai.tool.args", "gen_ai.tool.input"),
    "gen_ai.tool.arguments",
)
CALL_RESULTS: Final = (RESULT, "tool_response", "gen_ai.tool.output", "gen_ai.tool.result")
INPUT: Final = "input.value"
OUTPUT: Final = "output.value"
TOOL_ARGUMENTS: Final = (*CALL_ARGUMENTS, INPUT)
TOOL_RESULTS: Final = (*CALL_RESULTS, OUTPUT)
"""On the span of a tool; the last of each holds messages on other spans."""
TOOL_STATUS: Final = ("gen_ai.tool.status", "tool.status", "gen_ai.tool.call.status")
TOOL_FAILED: Final = (
    *("error", "gen_ai.tool.is_error", "gen_ai.tool.call.is_error"),
    *("mcp.tool.result.is_error", "mcp.tool.is_error", "mcp.result.is_error"),
    "mcp.response.is_error",
)
"""Keys that are true on the span of a call that failed; the first as in OpenTracing. Those of MCP
say it of results whose spans often end OK: Sentry, mcp-use, LiteLLM, Traceloop.
"""
TOOL_SUCCEEDED: Final = ("gen_ai.tool.success", "gen_ai.tool.execution.success")
"""Keys that are false there: of Mastra before 1, of openlit."""
ERROR_TYPE: Final = "error.type"
MAX_APPROVAL: Final = 8_192
"""Characters of a result in which it is looked for that a call waits for a person."""
MCP_METHOD: Final = "mcp.method.name"
APPROVAL_OF: Final = "cloudflare.agents.operation.name"
APPROVAL_STATE: Final = "cloudflare.agents.tool.approval.state"
"""Of Cloudflare's agents, where a tool's span may stand for the question whether to call it."""
TRANSFER_MODE: Final = "gen_ai.transfer.mode"
TRANSFER_TARGET: Final = "gen_ai.transfer.target.name"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
DETAILS: Final = "gen_ai.client.inference.operation.details"
"""The event of a model call, written in its span: the attributes of the span, and messages."""
USER_MESSAGE: Final = "gen_ai.user.message"
CHOICE: Final = "gen_ai.choice"
"""Events of single messages of a model call, before version 1.37 of the conventions."""
USER_TEXT: Final = ("content", "gen_ai.event.content")
_DETAILS: Final = frozenset({DETAILS, USER_MESSAGE, CHOICE})
PENDING_TOOLS: Final = (
    "agentscope.agent.hitl_pending_tools",
    "agentscope.agent.external_execution_pending_tools",
)
"""Tools for which an agent of AgentScope waits, where it waits for some."""
INTERRUPT: Final = "riffer.interrupt.reason"
"""Why a run of riffer stopped: a limit (`max_steps`), or it waits for an approval."""
CONTROL_FLOW: Final = "mellea.tool.is_control_flow"
"""True on the span of a tool by which Mellea only ends its loop."""
CONTEXT_LIMITS: Final = ("reliability.context_limit", "gen_ai.context.window_size")
COSTS: Final = ("reliability.usage.cost_usd", "operation.cost", "gen_ai.cost.total_cost")
PROVIDERS: Final = ("gen_ai.provider.name", SYSTEM)
CACHED_TOKENS: Final = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.cached_input_tokens",
    "gen_ai.usage.input_cached_tokens",
    "gen_ai.usage.details.cache_read_tokens",
    "gen_ai.usage.details.cached_tokens",
)
CACHE_WRITTEN_TOKENS: Final = (
    "gen_ai.usage.cache_write.input_tokens",
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_write_input_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
    "gen_ai.usage.details.cache_write_tokens",
)
REASONING_TOKENS: Final = (
    "gen_ai.usage.reasoning.output_tokens",
    "gen_ai.usage.reasoning_tokens",
    "gen_ai.usage.details.reasoning_tokens",
    "gen_ai.usage.output_tokens.reasoning",
    "gen_ai.usage.experimental.reasoning_tokens",
)
"""The last is of google-adk up to 2.2, the one before Sentry's."""
MONEY: Final = (*COSTS, *PROVIDERS, *CACHED_TOKENS, *CACHE_WRITTEN_TOKENS, *REASONING_TOKENS)
"""Sources of the cost of a model call, next to its model and its tokens."""

AGENT_OPERATIONS: Final = frozenset({"invoke_agent", "agent.run", "process_thread_run"})
"""The last is a run of the agents that Azure AI Foundry keeps (scope `azure.ai.agents`)."""
NAMED_AGENT_OPERATIONS: Final = frozenset(
    {
        *("agent", "run_agent", "agent_run", "call_agent", "agent_call", "execute_agent"),
        *("agent_execution", "agent_invoke", "agent_invocation", "invoke_agent_stream"),
    }
)
"""Operations of no convention, with `_` between words: an agent where the span names one."""
WORKFLOW_OPERATIONS: Final = frozenset(
    {"invoke_workflow", "invoke_swarm", "invoke_graph", "orchestrate_tools"}
)
"""The last is the loop over a model and its tools in Microsoft.Extensions.AI."""
MODEL_OPERATIONS: Final = frozenset(
    {
        "chat",
        "generate_content",
        "text_completion",
        "completion",
        "response",
        "responses",
        "call_llm",
        "messages",
    }
)
TOOL_OPERATIONS: Final = frozenset({"execute_tool", "tool.execute"})
COMPACTED: Final = "gen_ai.conversation.compacted"
FETCH: Final = "fetch_response"
"""The operation that asks for the response of a model call made in the background."""
RESPONSE_STATUS: Final = "gen_ai.response.status"
THREAD_RUN_STATUS: Final = "gen_ai.thread.run.status"
"""State, at the end of its span, of a run of an agent that Azure AI Foundry keeps."""
UNFINISHED: Final = frozenset({"queued", "in_progress"})
NO_STEPS: Final = frozenset(
    {
        "agent_step",
        "create_agent",
        "embedding",
        "embeddings",
        "execute_task",
        "moderation",
        "plan",
        "record_usage",
        "rerank",
    }
)
"""Operations that are no step, whatever else their spans carry."""
NO_STEPS_BEGIN: Final = ("embed", "rerank")
"""Beginnings of their names elsewhere: `embed`, `embedContent`."""
RETRIEVAL_OPERATIONS: Final = frozenset({"retrieval", "retrieve", "search_memory"})

EVALUATION_OPERATIONS: Final = frozenset({"evaluation", "evaluate", "apply_guardrail", "guardrail"})
EVALUATED: Final = Answer(Kind.EVALUATION)
CONVERSATION: Final = "conversation"
AG2_TYPE: Final = "ag2.span.type"
"""A conversation of AG2 (0.x) is the run of all agents that reply in it, one after the other."""
CODE_EXECUTION: Final = "execute_code"
"""The operation by which AG2 executes the code that a model wrote: a tool call of its name. Its
arguments stand in the message of another agent.
"""

MEMORY_CHANGES: Final = frozenset(
    {
        "create_memory",
        "update_memory",
        "upsert_memory",
        "delete_memory",
        "create_memory_store",
        "delete_memory_store",
    }
)
"""Operations that change a memory: tool calls of their name, with an effect. (`plan` and others are
transparent.)
"""
NAMED_CALLS: Final = MEMORY_CHANGES | {CODE_EXECUTION}
MEMORY_IDS: Final = ("gen_ai.memory.store.id", "gen_ai.memory.record.id")

_WORD_BREAK: Final = re.compile(r"[.\s-]")
_WORDS: Final = re.compile(r"[A-Za-z]{2,24}([ ._-][A-Za-z]{1,24})*")
"""Ids that people give; those with digits may be new in each run."""
LIMIT_WORDS: Final = frozenset({"max_steps", "max_turns", "max_iterations", "length"})
"""Finish reasons of an agent that say it was stopped by a limit (never read from a model call)."""
STOP_WORDS: Final = {
    **dict.fromkeys(
        ("interrupt", "interrupted", "suspended", "paused", "requires_action", "input_required"),
        PAUSED,
    ),
    **dict.fromkeys(("aborted", "abort", "cancelled", "canceled"), CANCELLED),
}
"""Finish reasons and states of an agent that say why it stopped before its end."""
TOOL_WORDS: Final = frozenset(
    {"tool_calls", "tool_call", "tool_use", "tool-calls", "function_call"}
)
"""Finish reasons of a model that asked for tools."""
FAILED_WORDS: Final = frozenset({"error", "failed"})
FAILED_RUNS: Final = frozenset({"failed", "expired"})
"""States of a run that Azure keeps which are failures, whatever its span says."""

_SERVED_MARKS: Final = ("server_tool_call", '"builtin"')
MERGED_TOOLS: Final = frozenset({"(merged tools)", "(merged)"})
FINISH_TOOL: Final = "final_answer"
"""The tool by which smolagents ends a run; in any other scope a tool of that name is a tool."""
TOOL_SPAN: Final = "execute_tool "
INVOKE_AGENT: Final = "invoke_agent "

NO_TOOL_SPANS: Final = frozenset(
    {
        "opentelemetry.instrumentation.genai.smolagents",
        "opentelemetry.instrumentation.crewai.instrumentation",
        "opentelemetry.instrumentation.crewai",
    }
)
"""Scopes whose runs never hold a tool span, whatever their tools did."""
ANSWERS_ONLY: Final = frozenset(
    {
        "opentelemetry.instrumentation.crewai.instrumentation",
        "opentelemetry.instrumentation.crewai",
    }
)
"""Scopes whose model spans hold the text that CrewAI goes on with: what the model asked for stands
in its words, or was called before the span ended.
"""


VERCEL: Final = frozenset({"ai", "gen_ai"})
"""Scopes of the Vercel AI SDK from 7 on."""
EMITS_TOOLS: Final = VERCEL | {
    "opentelemetry.instrumentation.genai.langchain",
    "opentelemetry.instrumentation.langchain",
    "opentelemetry.instrumentation.openai_agents",
}
"""Scopes that make a span of every call that is executed."""


class GenAI(Convention):
    """Spans that name their operation, and older ones that are recognized by their other keys."""

    name = "OTel GenAI"
    request = (INPUT_MESSAGES, "gen_ai.workflow.input", "gen_ai.prompt")
    asks = (OUTPUT_MESSAGES,)
    finish = (FINISH_REASONS, OLD_FINISH_REASON)
    plain = (
        AGENT_NAME,
        AGENT_ID,
        WORKFLOW_NAME,
        CALL_ID,
        *TOOL_STATUS,
        *TOOL_FAILED,
        *TOOL_SUCCEEDED,
        ERROR_TYPE,
        MCP_METHOD,
        REQUEST_MODEL,
        RESPONSE_MODEL,
        RESPONSE_ID,
        RESPONSE_STATUS,
        THREAD_RUN_STATUS,
        COMPACTED,
        FINISH_REASONS,
        OLD_FINISH_REASON,
        *INPUT_TOKENS,
        *OUTPUT_TOKENS,
        *AGGREGATED_INPUT,
        *AGGREGATED_OUTPUT,
        *CONTEXT_LIMITS,
        *MONEY,
        *MEMORY_IDS,
        APPROVAL_OF,
        APPROVAL_STATE,
        TRANSFER_MODE,
        TRANSFER_TARGET,
        *PENDING_TOOLS,
        INTERRUPT,
        CONTROL_FLOW,
        AG2_TYPE,
    )
    content = (*CALL_ARGUMENTS, *CALL_RESULTS)
    tool_content = (INPUT, OUTPUT)
    tool_mark = (OPERATION, *sorted(TOOL_OPERATIONS))
    messages = (OUTPUT_MESSAGES,)
    needs = (OPERATION, TOOL_NAME, OLD_AGENT_NAME, SYSTEM, REQUEST_MODEL)
    event_scopes = ("",)

    def read(self, span: SpanView) -> Answer | None:
        """Read by operation; where none is named, by what only such a span carries."""
        operation = span.get(OPERATION)
        if isinstance(operation, str):
            return by_operation(operation, span)
        return _without_operation(span)

    def read_event(self, log: RawLog) -> EventAnswer | None:
        """Read the details and messages of a model call; assembly adds what its span leaves out."""
        return details_event(log)


def details_event(log: RawLog) -> EventAnswer | None:
    """Return what the event of a model call says; None for other events, and for one that was
    written in no span.
    """
    if log.name not in _DETAILS or not any(log.trace_id) or not any(log.span_id):
        return None
    given = log.attributes
    if log.name == USER_MESSAGE:
        asked = values.raw(given, USER_TEXT)
        return EventAnswer(kind=Kind.OTHER, facts=ModelFacts(), request=asked)
    if log.name == CHOICE:
        return EventAnswer(kind=Kind.OTHER, facts=_chosen(given))
    facts = ModelFacts(
        values.text(given.get(RESPONSE_MODEL)),
        values.text(given.get(REQUEST_MODEL)),
        tokens(given, INPUT_TOKENS, OUTPUT_TOKENS),
        asks_for_tools(finish_reasons(given)),
        OUTPUT_MESSAGES in given,
        message_calls(given.get(OUTPUT_MESSAGES)),
        served=served_tools(given.get(OUTPUT_MESSAGES)),
        cost=values.first(given, COSTS, values.amount),
        response_id=values.text(given.get(RESPONSE_ID)),
        provider=values.first(given, PROVIDERS, values.text),
        cached=values.first(given, CACHED_TOKENS, values.integer),
        cache_written=values.first(given, CACHE_WRITTEN_TOKENS, values.integer),
        reasoned=values.first(given, REASONING_TOKENS, values.integer),
    )
    return EventAnswer(kind=Kind.OTHER, facts=facts, request=given.get(INPUT_MESSAGES))


def _chosen(given: values.Attributes) -> ModelFacts:
    """Return the tools that the event of an answer asks for, as OpenAI writes them."""
    answer = values.mapping(given.get("message"))
    calls = tuple(
        reported_call(
            values.text(function.get("name")),
            values.identifier(asked.get("id")),
            function.get("arguments"),
        )
        for asked in values.objects(answer.get("tool_calls", given.get("tool_calls")))
        if (function := values.mapping(asked.get("function")))
    )
    is_asking = asks_for_tools(values.words(given.get("finish_reason")))
    return ModelFacts(asked_for_tools=is_asking, messages=True, calls=calls)


def by_operation(operation: str, span: SpanView) -> Answer:
    """Return what a span with a named operation is; where the operation is unknown, by what only
    a step carries. Operations that are no step (embeddings, create_agent, …) are nothing.
    """
    if operation in MODEL_OPERATIONS:
        return model(span)
    if operation in TOOL_OPERATIONS:
        return tool(span)
    if operation in AGENT_OPERATIONS:
        return agent(span)
    if operation in WORKFLOW_OPERATIONS or (operation == CONVERSATION and AG2_TYPE in span):
        return Answer(Kind.WORKFLOW, InvocationFacts(name=values.name(span.get(WORKFLOW_NAME))))
    if operation in RETRIEVAL_OPERATIONS:
        return Answer(Kind.RETRIEVAL)
    if operation in NAMED_CALLS:
        return named_call(operation, span)
    if operation == FETCH:
        return fetched(span)
    if operation in NO_STEPS or operation.lower().startswith(NO_STEPS_BEGIN):
        return NOTHING
    found = _by_keys(span)
    if found is None and _WORD_BREAK.sub("_", operation.lower()) in NAMED_AGENT_OPERATIONS:
        found = agent(span) if values.name(span.get(AGENT_NAME)) is not None else None
    return found or (EVALUATED if operation in EVALUATION_OPERATIONS else NOTHING)


def named_call(operation: str, span: SpanView) -> Answer:
    """A call that has the name of its operation. The arguments of a change of a memory are the ids
    of the store and of the record.
    """
    arguments = (
        own_of_all(_memory_ids, *MEMORY_IDS) if any(key in span for key in MEMORY_IDS) else None
    )
    facts = one_call(span, operation, None, arguments)
    return Answer(Kind.TOOL, facts, facts.calls[0].failed)


def _memory_ids(store: object, record: object) -> dict[str, object]:
    return {"store": store, "record": record}


def _without_operation(span: SpanView) -> Answer | None:
    """Q15, older pydantic-ai and koog: a tool by `gen_ai.tool.name`, an agent by `agent_name` and
    the name `X run`.
    """
    is_agent = values.name(span.get(OLD_AGENT_NAME)) is not None and span.name.endswith(" run")
    if is_agent and TOOL_NAME not in span:
        return agent(span)
    if SYSTEM in span and (REQUEST_MODEL in span or RESPONSE_MODEL in span):
        return model(span)
    return _by_keys(span)


def _by_keys(span: SpanView) -> Answer | None:
    """Return what a span is that names no operation, or an unknown one: a tool's name makes a tool
    call, the model that was asked and the tokens that it wrote make a model call, as does the error
    of a provider. (Embeddings write none; a record of usage asks no model; an agent has a name.)
    """
    if values.text(span.get(TOOL_NAME)) is not None and MCP_METHOD not in span:
        return tool(span)
    is_failed = (
        span.status == STATUS_ERROR
        and OPERATION in span
        and AGENT_NAME not in span
        and any(key in span for key in PROVIDERS)
    )
    is_model = REQUEST_MODEL in span and (is_failed or any(key in span for key in OUTPUT_TOKENS))
    return model(span) if is_model else None


def agent(span: SpanView, **other: Any) -> Answer:
    """An agent, with the totals of its whole run; `other`: the facts that a convention reads in
    another way.
    """
    reasons = finish_reasons(span)
    status = values.text(span.get(THREAD_RUN_STATUS))
    interrupt = values.text(span.get(INTERRUPT)) or ""
    is_limit = interrupt.startswith("max_")
    named = values.first(span, (AGENT_NAME, OLD_AGENT_NAME), values.name)
    facts = InvocationFacts(
        name=named,
        fallback_name=_called(span) if named is None else None,
        tokens=own_tokens(span, AGGREGATED_INPUT, AGGREGATED_OUTPUT),
        limit_reached=is_limit or not LIMIT_WORDS.isdisjoint(reasons) or status == "incomplete",
        emits_no_tools=span.scope in NO_TOOL_SPANS,
        stopped=PAUSED
        if any(key in span for key in PENDING_TOOLS) or (interrupt and not is_limit)
        else stopped_by((*reasons, status or "")),
    )
    return Answer(Kind.AGENT, replace(facts, **other), True if status in FAILED_RUNS else None)


def _called(span: SpanView) -> str | None:
    """Return the agent that a span without its name invokes, by the name of the span: as Koog names
    it, which has ids of agents only. That may be the model (Vercel). Older releases of Koog name
    the run there: then the id names the agent, where it is made of words.
    """
    if span.scope in VERCEL:
        return None
    if not span.name.startswith(INVOKE_AGENT):
        return span.found_in(AGENT_ID, _named_by_id)
    called = values.name(span.name[len(INVOKE_AGENT) :])
    return None if called == values.text(span.get(REQUEST_MODEL)) else called


def _named_by_id(agent_id: object) -> str | None:
    named = values.name(agent_id)
    return named if named is not None and _WORDS.fullmatch(named) else None


def stopped_by(reasons: Iterable[str]) -> str | None:
    """Return why an agent with these finish reasons stopped before its end; None where it did
    not.
    """
    return next((STOP_WORDS[reason] for reason in reasons if reason in STOP_WORDS), None)


def usage(
    inputs: tuple[str, ...] = INPUT_TOKENS, outputs: tuple[str, ...] = OUTPUT_TOKENS
) -> Tokens:
    """Input and output tokens; old and new names say the same thing and are never added."""
    return Tokens(own(values.integer, *inputs), own(values.integer, *outputs))


def own_tokens(span: SpanView, given: tuple[str, ...], output: tuple[str, ...]) -> Any:
    """Input and output tokens under keys of a convention's own; where these say nothing, under the
    usual ones.
    """
    if not any(key in span for key in (*given, *output)):
        return usage()
    if not any(key in span for key in (*INPUT_TOKENS, *OUTPUT_TOKENS)):
        return usage(given, output)
    return own_of_all(
        partial(first_known, given, output), *given, *output, *INPUT_TOKENS, *OUTPUT_TOKENS
    )


def first_known(given: tuple[str, ...], output: tuple[str, ...], *counts: object) -> Tokens | None:
    """Return the same of counts that are read already: those under a convention's own keys, else
    those under the common ones.
    """
    told = dict(zip((*given, *output, *INPUT_TOKENS, *OUTPUT_TOKENS), counts, strict=True))
    pairs = tokens(told, given, output), tokens(told, INPUT_TOKENS, OUTPUT_TOKENS)
    return next((found for found in pairs if found != Tokens()), None)


def tokens(facts: Mapping[str, Any], inputs: Iterable[str], outputs: Iterable[str]) -> Tokens:
    """Input and output tokens of an object, each under the first of its keys that holds some."""
    return Tokens(
        values.first(facts, inputs, values.integer), values.first(facts, outputs, values.integer)
    )


def finish_reasons(attributes: values.Attributes) -> list[str]:
    """The finish reasons in lower case: an array, a JSON string of one, or the
    older single value.
    """
    return values.words(values.raw(attributes, (FINISH_REASONS, OLD_FINISH_REASON)))


def asks_for_tools(reasons: Iterable[str]) -> bool:
    """Return whether these finish reasons of a model say that it asked for tools."""
    return not TOOL_WORDS.isdisjoint(reasons)


def failed_by(reasons: Iterable[str]) -> bool | None:
    """A model call whose finish reason is `error` failed, whatever its status says; None: the
    status decides.
    """
    return None if FAILED_WORDS.isdisjoint(reasons) else True


def model(span: SpanView, **other: Any) -> Answer:
    """A model call; `other`: the facts that a convention reads in another way."""
    reasons = finish_reasons(span)
    facts = ModelFacts(
        model=_named(span.get(RESPONSE_MODEL)),
        request_model=_named(span.get(REQUEST_MODEL)),
        tokens=usage(),
        asked_for_tools=asks_for_tools(reasons),
        messages=OUTPUT_MESSAGES in span and span.scope not in ANSWERS_ONLY,
        calls=own(message_calls, OUTPUT_MESSAGES),
        context_limit=context_limit(span),
        cost=own(values.amount, *COSTS),
        response_id=own(values.text, RESPONSE_ID),
        emits_no_tools=span.scope in NO_TOOL_SPANS,
        emits_tools=span.scope in EMITS_TOOLS,
        compressions=compacted(span),
        provider=provider(span),
        cached=own(values.integer, *CACHED_TOKENS),
        cache_written=own(values.integer, *CACHE_WRITTEN_TOKENS),
        served=own(served_tools, OUTPUT_MESSAGES),
        reasoned=own(values.integer, *REASONING_TOKENS),
    )
    return Answer(Kind.MODEL, replace(facts, **other), failed_by(reasons))


def _named(model: object) -> str | None:
    """Return the name of a model; Spring AI writes `none` where a call that failed has none."""
    found = values.text(model)
    return None if found is None or is_no_name(found) else found


def provider(span: SpanView) -> str | None:
    """Provider of the model, by the common keys."""
    return values.first(span, PROVIDERS, values.text)


def compacted(span: SpanView) -> tuple[CompressionFacts, ...]:
    """Return the compression of the context that came before a call; empty where there was none.
    Its tokens are not known.
    """
    return (CompressionFacts(),) if values.truth(span.get(COMPACTED)) else ()


def fetched(span: SpanView) -> Answer:
    """A response that was fetched is the model call that was begun in the background; one that is
    not finished, or of which nothing is known, is no step.
    """
    status = values.text(span.get(RESPONSE_STATUS))
    if status in UNFINISHED or not any(key in span for key in (*OUTPUT_TOKENS, OUTPUT_MESSAGES)):
        return NOTHING
    answer = model(span)
    return replace(answer, failed=True) if status in FAILED_WORDS else answer


def context_limit(span: SpanView) -> int | None:
    """The model's context window in tokens, where an attribute says so."""
    return values.first(span, CONTEXT_LIMITS, values.positive)


def message_calls(messages: object) -> tuple[Call, ...]:
    """The tool calls a model's output messages asked for: `[{parts: [{type: "tool_call", id, name,
    arguments}]}]`.
    """
    if messages is None or (isinstance(messages, str) and "tool_call" not in messages):
        return ()
    return tuple(
        reported_call(
            values.text(part.get("name")), values.identifier(part.get("id")), part.get("arguments")
        )
        for message in values.objects(messages)
        for part in values.objects(message.get("parts"))
        if part.get("type") == "tool_call" and part.get("builtin") is not True
    )


def served_tools(messages: object) -> tuple[str, ...]:
    """The tools that the provider called itself: parts `server_tool_call` of a model's output, and
    those that pydantic-ai marks as built in.
    """
    if messages is None or (
        isinstance(messages, str) and not any(mark in messages for mark in _SERVED_MARKS)
    ):
        return ()
    return tuple(
        name
        for message in values.objects(messages)
        for part in values.objects(message.get("parts"))
        if (part.get("type") == "server_tool_call" or part.get("builtin") is True)
        and part.get("type") != "tool_call_response"
        and (name := values.text(part.get("name"))) is not None
    )


def tool(
    span: SpanView,
    call_id: Any = None,
    arguments: Any = None,
    result: Any = None,
    *,
    failed: bool = False,
) -> Answer:
    """An `execute_tool` span: one call, unless it only merges others (Q9) or marks the end
    (smolagents' final answer).

    `call_id`, `arguments`, `result`: where a convention reads them in another way; `failed`: it
    knows that the call failed.
    """
    name = values.text(span.get(TOOL_NAME))
    if name is None and span.name.startswith(TOOL_SPAN):
        name = values.text(span.name[len(TOOL_SPAN) :])
    if name in MERGED_TOOLS:
        return NOTHING
    if span.get(APPROVAL_OF) == "tool.approval":
        return _approval(span.get(APPROVAL_STATE))
    if span.get(TRANSFER_MODE) == "pass_control":
        return Answer(Kind.HANDOFF, HandoffFacts(values.name(span.get(TRANSFER_TARGET))))
    if values.truth(span.get(CONTROL_FLOW)) or (name == FINISH_TOOL and "smolagents" in span.scope):
        return Answer(Kind.TOOL, ToolFacts(finish=True))
    return tool_answer(span, name, call_id, arguments, result, failed=failed)


def _approval(state: object) -> Answer:
    """A question whether a tool may be called; a call that was approved has a span of its own."""
    if state not in ("requested", "denied"):
        return NOTHING
    return Answer(Kind.TOOL, RejectionFacts(pending=state == "requested"), failed=False)


def tool_answer(
    span: SpanView,
    name: str | None,
    call_id: Any = None,
    arguments: Any = None,
    result: Any = None,
    *,
    failed: bool = False,
) -> Answer:
    """A tool span of one call."""
    call_id = own(values.identifier, CALL_ID) if call_id is None else call_id
    arguments = own_value(*TOOL_ARGUMENTS) if arguments is None else arguments
    result = own_value(*TOOL_RESULTS) if result is None else result
    facts = one_call(span, name, call_id, arguments, result, failed=failed)
    return Answer(Kind.TOOL, facts, facts.calls[0].failed, fails_with_call=True)


def one_call(span: SpanView, name: str | None, *parts: Any, failed: bool = False) -> ToolFacts:
    """Return the facts of a tool span of one call, which failed also where the span says so
    (`tool_failed`).

    `parts`: the id of the call, its arguments and its result, as for `reported_call`.
    """
    return ToolFacts((reported_call(name, *parts, failed=failed or tool_failed(span)),))


def tool_failed(span: SpanView) -> bool:
    """ERROR status, `error.type`, a mark of the kind of `error`, or Q39: Strands'
    `gen_ai.tool.status` (1.0: `tool.status`) says error, that of AgentOps failed.
    """
    if span.status == STATUS_ERROR or values.text(span.get(ERROR_TYPE)) is not None:
        return True
    if any(values.truth(span.get(key)) for key in TOOL_FAILED if key in span):
        return True
    if any(values.truth(span.get(key)) is False for key in TOOL_SUCCEEDED if key in span):
        return True
    return any(values.text(span.get(key)) in FAILED_WORDS for key in TOOL_STATUS)


def approval_in(result: object) -> str | None:
    """Return that the result of a call is to wait for a person, as OpenAI Agents write it; None
    where it does not.
    """
    return (
        PAUSED if isinstance(result, str) and "ToolApprovalItem(" in result[:MAX_APPROVAL] else None
    )
