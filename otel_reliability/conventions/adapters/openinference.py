"""OpenInference (Arize): spans that carry `openinference.span.kind`.

Source: Arize-ai/openinference, semantic conventions 0.1.42, the instrumentations named at each
quirk below, and the converter `openinference-genai` (Mastra's exporter to Arize).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec.structs import replace

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai, google_adk, langchain
from otel_reliability.conventions.base import (
    NOTHING,
    Answer,
    Convention,
    SpanView,
    own,
    own_of_all,
    own_value,
    reported_call,
)
from otel_reliability.model.span import (
    Call,
    HandoffFacts,
    InvocationFacts,
    Kind,
    ModelFacts,
    RejectionFacts,
    Tokens,
    ToolFacts,
)

SPAN_KIND: Final = "openinference.span.kind"
AGENT_NAME: Final = "agent.name"
NODE_ID: Final = "graph.node.id"
NODE_NAME: Final = "graph.node.name"
TOOL_NAME: Final = "tool.name"
INPUT: Final = "input.value"
OUTPUT: Final = "output.value"
METADATA: Final = "metadata"
PROMPT_TOKENS: Final = "llm.token_count.prompt"
COMPLETION_TOKENS: Final = "llm.token_count.completion"
OUTPUT_CALLS: Final = "llm.output_messages."
FINISH_REASON: Final = "llm.finish_reason"
COST: Final = "llm.cost.total"
PROVIDER: Final = "llm.provider"
CACHED_TOKENS: Final = (
    "llm.token_count.prompt_details.cache_read",
    "llm.token_count.prompt_details.cache_input",
)
REASONING_TOKENS: Final = "llm.token_count.completion_details.reasoning"
CACHE_WRITTEN_TOKENS: Final = ("llm.token_count.prompt_details.cache_write",)
MODEL: Final = ("llm.response.model_name", "llm.model_name")
REQUEST_MODEL: Final = "llm.request.model_name"
CALL_IDS: Final = ("tool_call.id", "tool.call_id", "tool.id", genai.CALL_ID)
MAX_STEPS: Final = "smolagents.max_steps"
MANAGED_AGENTS: Final = "smolagents.managed_agents."

SCOPE: Final = "openinference.instrumentation."
AGENT_FRAMEWORK: Final = "agent_framework"
"""Scope of Microsoft's own spans, to which OpenInference only adds attributes."""
DAPR: Final = "dapr_agents"
"""Scope of Dapr's agents: an activity is around each tool call, which has a span of its own."""
OPERATIONS: Final = re.compile(
    r"(chat|text_completion|generate_content|invoke_agent|invoke_workflow) (.+)", re.DOTALL
)
"""Name of a span of the GenAI conventions: the operation, and of whom."""
MODEL_KEYS: Final = ("llm.", "gen_ai.", "ai.", "input.", "output.")
"""Beginnings of keys of which a model call has some."""
START: Final = ".start-"
"""Of BeeAI's event spans, the number follows."""
CLAUDE_NAME: Final = "claude"
"""Name of the main agent of the Claude Agent SDK, which has none; subagents have names."""

_CALL_KEY: Final = re.compile(
    r"llm\.output_messages\.(\d+)\.message\.tool_calls\.(\d+)\.tool_call\.(id|function\.name|function\.arguments)"
)
_CALLED_AS: Final = re.compile(r"named '([^']{1,200})'")
METHODS: Final = frozenset({"AiService.chat", "ai.chat"})
"""Names of spans of agents that are methods of a library: LangChain4j, TanStack AI."""
_AGENT_RUN: Final = re.compile(r"(?i)agent(\.run)?$")
"""End of the name of an agent's span, where nothing else says so."""
_TURN: Final = re.compile(r"(Planning step|Step)( \d+)?", re.IGNORECASE)
"""The names of turns in smolagents, which lose their agent where it streams."""
_MANAGED: Final = re.compile(r"smolagents\.managed_agents\.\d+\.name")
_EVENT_SPAN: Final = re.compile(r"\.(start|finish|success|(?:\w+_)?update|error)-\d+$")
_CALL_PARTS: Final = ("function.name", "id", "function.arguments")
_MAX_MESSAGE_CALLS: Final = 256
_USAGE: Final = (PROMPT_TOKENS, COMPLETION_TOKENS, *genai.INPUT_TOKENS, *genai.OUTPUT_TOKENS)


class OpenInference(Convention):
    """Spans that say their kind in OpenInference's words."""

    name = "OpenInference"
    request = ("smolagents.task", INPUT)
    asks = ("llm.output_messages.",)
    finish = (FINISH_REASON,)
    tool_content = (INPUT, OUTPUT, METADATA)
    tool_mark = (SPAN_KIND, "tool")
    plain = (
        AGENT_NAME,
        NODE_ID,
        NODE_NAME,
        TOOL_NAME,
        PROMPT_TOKENS,
        COMPLETION_TOKENS,
        FINISH_REASON,
        *MODEL,
        REQUEST_MODEL,
        COST,
        PROVIDER,
        *CACHED_TOKENS,
        *CACHE_WRITTEN_TOKENS,
        REASONING_TOKENS,
        *CALL_IDS,
        *genai.CONTEXT_LIMITS,
        *genai.MONEY,
        *genai.INPUT_TOKENS,
        *genai.OUTPUT_TOKENS,
        genai.AGENT_NAME,
        genai.REQUEST_MODEL,
        genai.RESPONSE_MODEL,
        genai.ERROR_TYPE,
        *genai.TOOL_STATUS,
        *genai.TOOL_FAILED,
        *genai.TOOL_SUCCEEDED,
    )
    prefixes = (OUTPUT_CALLS, MANAGED_AGENTS)
    needs = (SPAN_KIND, genai.OPERATION)

    def read(self, span: SpanView) -> Answer | None:
        """Read by kind. Kinds that are no step (EMBEDDING, RERANKER, PROMPT, …) are
        nothing.
        """
        kind = span.get(SPAN_KIND)
        if not isinstance(kind, str):
            return _normalized(span) if _is_of(span, "") else None
        match kind.upper():
            case "AGENT":
                return _model(span) if _is_converted_model(span) else _agent(span)
            case "CHAIN":
                return _chain(span)
            case "LLM":
                return NOTHING if _is_converted_rest(span) else _model(span)
            case "TOOL":
                return _tool(span)
            case "RETRIEVER":
                return Answer(Kind.RETRIEVAL)
            case "EVALUATOR" | "GUARDRAIL":
                return Answer(Kind.EVALUATION)
            case _:
                return NOTHING


def _is_converted_model(span: SpanView) -> bool:
    """Return whether an agent's span is a model call: to OpenInference's converter of GenAI spans
    for JavaScript, up to 0.1, whatever names its agent is an agent.
    """
    if span.scope.startswith(SCOPE) or not any(key in span for key in MODEL):
        return False
    found = OPERATIONS.fullmatch(span.name)
    return found is not None and not found[1].startswith("invoke_")


def _is_converted_rest(span: SpanView) -> bool:
    """Return whether a model's span is none: to that converter all is a model call of which it
    knows no better (steps of models and workflows, processors, chunks of a stream).
    """
    return not span.scope.startswith(SCOPE) and not any(key.startswith(MODEL_KEYS) for key in span)


def _agent(span: SpanView) -> Answer:
    if _is_event(span):
        return Answer(Kind.AGENT, InvocationFacts()) if START in span.name else NOTHING
    named = values.name(span.get(AGENT_NAME))
    if _is_of(span, "openai_agents") and named is None:
        node = values.name(
            span.get(NODE_ID)
        )  # Q43: up to 0.6, and in JavaScript; the root is named as the workflow
        return (
            Answer(Kind.WORKFLOW, InvocationFacts())
            if node is None
            else Answer(Kind.AGENT, InvocationFacts(node))
        )
    if _is_of(span, "smolagents"):
        return Answer(Kind.AGENT, _smolagents_agent(span))
    return Answer(Kind.AGENT, InvocationFacts(name=named or _agent_name(span), tokens=usage(span)))


def _normalized(span: SpanView) -> Answer | None:
    """Return what an invocation or a tool call is whose kind a Collector's `gen_ai_normalizer`
    replaced by an operation: it writes `invoke_agent` for agents and chains alike. Model calls read
    as GenAI's.
    """
    operation = span.get(genai.OPERATION)
    if operation == "execute_tool":
        return _tool(span)
    if operation != "invoke_agent":
        return None
    named = values.name(span.get(genai.AGENT_NAME))
    if named is not None and not _is_of(span, "smolagents"):
        return Answer(Kind.AGENT, InvocationFacts(name=named, tokens=usage(span)))
    is_agent = (
        named is not None
        or NODE_ID in span
        or _is_of(span, "claude_agent_sdk")
        or _AGENT_RUN.search(span.name) is not None
        or any(_MANAGED.fullmatch(key) or key == MAX_STEPS for key in span)
    )
    return _agent(span) if is_agent else _chain(span)


def _agent_name(span: SpanView) -> str | None:
    """Q3: where each instrumentation keeps the agent's name, if not in `agent.name`."""
    if span.scope.startswith(AGENT_FRAMEWORK):  # Q44: its node ids are those of agent objects
        return values.first(span, (NODE_NAME, genai.AGENT_NAME), values.name)
    if _is_of(span, "claude_agent_sdk"):
        return CLAUDE_NAME
    names = (NODE_NAME,) if _is_of(span, "agno") else (NODE_ID, NODE_NAME)  # its ids are random
    node = values.first(span, names, values.name)
    if node is not None:
        return node
    if _is_of(span, "google_adk"):
        return google_adk.bracketed(span.name) or values.name(span.get(genai.AGENT_NAME))
    if _is_of(span, "langchain"):
        return langchain.graph_name(span.name)
    if _is_of(span, "crewai") or span.name in METHODS:
        return None
    return values.name(_cut(span))


def _is_of(span: SpanView, *frameworks: str) -> bool:
    return span.scope.startswith(tuple(SCOPE + framework for framework in frameworks))


def _cut(span: SpanView) -> str:
    """Q32: method names behind class and tool names, cut by scope; the operation before a name."""
    if not span.scope.startswith(SCOPE):
        found = OPERATIONS.fullmatch(span.name)
        return span.name if found is None else found[2]
    if _is_of(span, "dspy"):
        return span.name.removesuffix(".forward").removesuffix(".__call__")
    if _is_of(span, "llama_index", "smolagents", "agno"):
        return span.name.removesuffix(".run")
    return span.name


def _smolagents_agent(span: SpanView) -> Any:
    """smolagents: `X.run` names the agent where X is no class (1.26); before, the class is all
    there is (Q38).

    Its agent calls have no tool span (Q11). Without a final answer it was stopped by its step limit
    (Q10); 1.17 marks no limit that way, since there the tool spans hang directly below the agent
    all the same.
    """
    name = _cut(span)
    is_class = name[:1].isupper() and name.endswith("Agent")
    facts = InvocationFacts(
        name=None if is_class else values.name(name),
        fallback_name=name if is_class else None,
        expects_finish=True,
        call=Call(None if is_class else values.name(name)),
        manages=tuple(_managed(span)),
    )

    def with_request(request: object, *counts: object) -> InvocationFacts:
        """With its own totals, which run on over the requests of one agent, and the name it was
        called by.
        """
        meant = values.mapping(request)
        called_as = _CALLED_AS.search(str(meant.get("task", ""))) if is_class else None
        tokens = genai.first_known((PROMPT_TOKENS,), (COMPLETION_TOKENS,), *counts)
        return replace(
            facts,
            tokens=None if meant.get("reset") is False or not meant else tokens,
            called_as=called_as.group(1) if called_as else None,
        )

    return own_of_all(with_request, INPUT, *_USAGE) if INPUT in span else facts


def _managed(span: SpanView) -> Iterator[str]:
    for key in sorted(key for key in span if _MANAGED.fullmatch(key)):
        if (name := values.name(span.get(key))) is not None:
            yield name


def _chain(span: SpanView) -> Answer:
    """A container. In LangChain a root graph is the agent (Q1), and so is a chain named as its
    `lc_agent_name` (Q19).
    """
    if _is_event(span):
        return NOTHING
    if _is_of(span, "langchain"):
        agent = span.found_in(METADATA, langchain.agent_of)
        return Answer(
            *langchain.chain(span.name, agent), session=own(langchain.thread_of, METADATA)
        )
    if _is_of(span, "dspy", "llama_index"):
        return Answer(Kind.CHAIN, InvocationFacts(fallback_name=values.name(_cut(span))))
    if _is_of(span, "smolagents") and _TURN.fullmatch(span.name):
        return Answer(Kind.CHAIN, InvocationFacts(is_turn=True))
    if not span.scope.startswith(SCOPE):
        return Answer(Kind.CHAIN, InvocationFacts(name=values.name(_cut(span))))
    return Answer(Kind.CHAIN, InvocationFacts())


def _model(span: SpanView) -> Answer:
    """A model call. ADK's instrumentation overwrites one model span an agent: its tokens are the
    last call's only (Q17).
    """
    overwritten = _is_of(span, "google_adk") and span.name.startswith("invoke_agent")
    finish = values.words(span.get(FINISH_REASON))
    facts = ModelFacts(
        model=values.first(span, (*MODEL, genai.RESPONSE_MODEL), values.text),
        request_model=values.first(span, (REQUEST_MODEL, genai.REQUEST_MODEL), values.text),
        tokens=Tokens() if overwritten else usage(span),
        asked_for_tools=genai.asks_for_tools(finish),
        calls=_message_calls(span),
        emits_tools=_is_of(span, "openai_agents", "langchain"),
        context_limit=genai.context_limit(span),
        cost=own(values.amount, *((COST,) if COST in span else genai.COSTS)),
        provider=values.text(span.get(PROVIDER)) or genai.provider(span),
        cached=own(values.integer, *CACHED_TOKENS, *genai.CACHED_TOKENS),
        cache_written=own(values.integer, *CACHE_WRITTEN_TOKENS, *genai.CACHE_WRITTEN_TOKENS),
        reasoned=own(values.integer, REASONING_TOKENS, *genai.REASONING_TOKENS),
    )
    return Answer(Kind.MODEL, facts, genai.failed_by(finish))


def usage(span: SpanView) -> Any:
    """Input and output tokens, by OpenInference's own keys, else by the dual-emitted GenAI ones."""
    return genai.own_tokens(span, (PROMPT_TOKENS,), (COMPLETION_TOKENS,))


def _message_calls(span: SpanView) -> Any:
    """The tool calls of the flattened output messages."""
    found: dict[tuple[int, int], dict[str, int]] = {}
    keys: list[str] = []
    for key in span:
        match = _CALL_KEY.fullmatch(key) if key.startswith(OUTPUT_CALLS) else None
        if match is not None and len(found) < _MAX_MESSAGE_CALLS:
            found.setdefault((int(match[1]), int(match[2])), {})[match[3]] = len(keys)
            keys.append(key)
    places = [tuple(call.get(part) for part in _CALL_PARTS) for _, call in sorted(found.items())]

    def calls(*parts: object) -> tuple[Call, ...]:
        told = ((None if at is None else parts[at] for at in call) for call in places)
        return tuple(
            reported_call(values.text(name), values.identifier(of), given)
            for name, of, given in told
        )

    return own_of_all(calls, *keys) if keys else ()


def _tool(span: SpanView) -> Answer:
    if _is_event(span):
        return _event_tool(span)
    is_named = TOOL_NAME in span or genai.TOOL_NAME in span
    if _is_of(span, "openai_agents") and not is_named and span.name.startswith("handoff"):
        target = (
            span.name.removeprefix("handoff").removeprefix(" to ").strip()
        )  # `handoff to billing_agent`
        return Answer(Kind.HANDOFF, HandoffFacts(values.name(target)))
    named = values.first(span, (TOOL_NAME, genai.TOOL_NAME), values.text)
    if named is None and span.scope.startswith(DAPR):
        return NOTHING
    found = named or values.text(_cut(span))
    if _is_of(span, "autogen") and named is None and found is not None:
        found = found.rpartition(".")[2]
    if (_is_of(span, "smolagents", "beeai") and found == "final_answer") or (
        _is_of(span, "dspy") and found == "finish"
    ):
        return Answer(Kind.TOOL, ToolFacts(finish=True))
    return _call(span, found)


def _call(span: SpanView, name: str | None) -> Answer:
    call_id = own(values.identifier, *CALL_IDS)
    if _is_of(span, "openai_agents") and span.found_in(OUTPUT, genai.approval_in):
        return Answer(Kind.TOOL, RejectionFacts(pending=True))
    return Answer(
        Kind.TOOL, genai.one_call(span, name, call_id, own_value(INPUT), own_value(OUTPUT))
    )


def _is_event(span: SpanView) -> bool:
    """Q16: BeeAI exports events as spans: `tool.search.wikipedia.start-12`."""
    return _is_of(span, "beeai") and _EVENT_SPAN.search(span.name) is not None


def _event_tool(span: SpanView) -> Answer:
    """Of BeeAI's event spans `.start-N` is the call; `.finish`, `.success` and `.update` are
    nothing.
    """
    name = values.text(span.get(TOOL_NAME)) or span.name.rpartition(START)[0]
    return _call(span, name) if START in span.name else NOTHING
