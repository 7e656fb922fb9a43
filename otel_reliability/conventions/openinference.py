"""OpenInference (Arize): spans that carry `openinference.span.kind`.

Source: Arize-ai/openinference, semantic conventions 0.1.42 and the instrumentations named at each quirk below.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final

from otel_reliability.conventions import genai, google_adk, langchain, values
from otel_reliability.conventions.base import NOTHING, Told
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.model.span import (
    Call,
    HandoffFacts,
    InvocationFacts,
    Kind,
    ModelFacts,
    RawSpan,
    Tokens,
    ToolFacts,
)

SPAN_KIND: Final = "openinference.span.kind"
AGENT_NAME: Final = "agent.name"
NODE_ID: Final = "graph.node.id"
TOOL_NAME: Final = "tool.name"
INPUT: Final = "input.value"
OUTPUT: Final = "output.value"
METADATA: Final = "metadata"
PROMPT_TOKENS: Final = "llm.token_count.prompt"
COMPLETION_TOKENS: Final = "llm.token_count.completion"
OUTPUT_CALLS: Final = "llm.output_messages."
FINISH_REASON: Final = "llm.finish_reason"
COST: Final = "llm.cost.total"
MODEL: Final = ("llm.response.model_name", "llm.model_name")
REQUEST_MODEL: Final = "llm.request.model_name"
CALL_IDS: Final = ("tool_call.id", "tool.call_id", "tool.id", genai.CALL_ID)
MANAGED_AGENTS: Final = "smolagents.managed_agents."

SCOPE: Final = "openinference.instrumentation."
LANGCHAIN: Final = SCOPE + "langchain"
SMOLAGENTS: Final = SCOPE + "smolagents"
OPENAI_AGENTS: Final = SCOPE + "openai_agents"
GOOGLE_ADK: Final = SCOPE + "google_adk"
CREWAI: Final = SCOPE + "crewai"
AUTOGEN: Final = SCOPE + "autogen"
DSPY: Final = SCOPE + "dspy"
LLAMA_INDEX: Final = SCOPE + "llama_index"
AGNO: Final = SCOPE + "agno"
BEEAI: Final = SCOPE + "beeai"
CLAUDE: Final = SCOPE + "claude_agent_sdk"

_CALL_KEY: Final = re.compile(
    r"llm\.output_messages\.(\d+)\.message\.tool_calls\.(\d+)\.tool_call\.(id|function\.name|function\.arguments)"
)
_CALLED_AS: Final = re.compile(r"named '([^']{1,200})'")
_MANAGED: Final = re.compile(r"smolagents\.managed_agents\.\d+\.name")
_EVENT_SPAN: Final = re.compile(r"\.(start|finish|success|(?:\w+_)?update|error)-\d+$")
_MAX_MESSAGE_CALLS: Final = 256


class OpenInference:
    """Spans that say their kind in OpenInference's words."""

    name: ClassVar[str] = "OpenInference"
    scopes: ClassVar[tuple[str, ...]] = ()
    keys: ClassVar[frozenset[str]] = frozenset(
        {
            SPAN_KIND, AGENT_NAME, NODE_ID, TOOL_NAME, INPUT, OUTPUT, METADATA, PROMPT_TOKENS, COMPLETION_TOKENS, FINISH_REASON,
            *MODEL, REQUEST_MODEL, COST, *CALL_IDS, *genai.CONTEXT_LIMITS, *genai.COSTS, *genai.INPUT_TOKENS,
            *genai.OUTPUT_TOKENS, genai.AGENT_NAME, genai.ERROR_TYPE, *genai.TOOL_STATUS,
        }
    )  # fmt: skip
    prefixes: ClassVar[tuple[str, ...]] = (OUTPUT_CALLS, MANAGED_AGENTS)
    needs: ClassVar[frozenset[str]] = frozenset({SPAN_KIND})

    def read(self, span: RawSpan, hasher: Hasher) -> Told | None:
        """Read by kind. Kinds that are no step (EMBEDDING, RERANKER, GUARDRAIL, PROMPT, …) are nothing."""
        kind = span.attributes.get(SPAN_KIND)
        if not isinstance(kind, str):
            return None
        reader = _BY_KIND.get(kind.upper())
        return NOTHING if reader is None else reader(span, hasher)


def _agent(span: RawSpan, hasher: Hasher) -> Told:
    if _is_event(span):
        return Told(Kind.AGENT, InvocationFacts()) if _is_start(span) else NOTHING
    attributes = span.attributes
    named = values.name(attributes.get(AGENT_NAME))
    if span.scope.startswith(OPENAI_AGENTS) and named is None:
        return Told(Kind.WORKFLOW, InvocationFacts())
    if span.scope.startswith(SMOLAGENTS):
        return Told(Kind.AGENT, _smolagents_agent(span, hasher))
    return Told(Kind.AGENT, InvocationFacts(name=named or _agent_name(span), tokens=genai.known(usage(attributes))))


def _agent_name(span: RawSpan) -> str | None:
    """Q3: where each instrumentation keeps the agent's name, if not in `agent.name`."""
    attributes, scope, name = span.attributes, span.scope, span.name
    node = values.name(attributes.get(NODE_ID))
    if node is not None:
        return node
    if scope.startswith(GOOGLE_ADK):
        return google_adk.bracketed(name) or values.name(attributes.get(genai.AGENT_NAME))
    if scope.startswith(LANGCHAIN):
        return langchain.graph_name(name)
    if scope.startswith((CLAUDE, CREWAI)):
        return None
    return values.name(_cut(name, scope))


def _cut(name: str, scope: str) -> str:
    """Q32: method names behind class and tool names, cut by scope."""
    if scope.startswith(DSPY):
        return name.removesuffix(".forward").removesuffix(".__call__")
    if scope.startswith((LLAMA_INDEX, SMOLAGENTS, AGNO)):
        return name.removesuffix(".run")
    return name


def _smolagents_agent(span: RawSpan, hasher: Hasher) -> InvocationFacts:
    """smolagents: `X.run` names the agent where X is no class (1.26); before, the class is all there is (Q38).

    Its agent calls have no tool span (Q11). Without a final answer it was stopped by its step limit (Q10); 1.17 tells no
    limit that way, since there the tool spans hang directly below the agent all the same.
    """
    attributes = span.attributes
    name = _cut(span.name, span.scope)
    is_class = name[:1].isupper() and name.endswith("Agent")
    request = values.mapping(attributes.get(INPUT))
    called_as = _CALLED_AS.search(str(request.get("task", ""))) if is_class else None
    runs_on = request.get("reset") is False
    return InvocationFacts(
        name=None if is_class else values.name(name),
        fallback_name=name if is_class else None,
        tokens=None if runs_on or not request else genai.known(usage(attributes)),
        expects_finish=True,
        call=Call(None if is_class else values.name(name)),
        manages=tuple(_managed(attributes)),
        called_as=called_as.group(1) if called_as else None,
    )


def _managed(attributes: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted(key for key in attributes if _MANAGED.fullmatch(key)):
        if (name := values.name(attributes[key])) is not None:
            yield name


def _chain(span: RawSpan, hasher: Hasher) -> Told:
    """A container. In LangChain a root graph is the agent (Q1), and so is a chain that bears its `lc_agent_name` (Q19)."""
    if _is_event(span):
        return NOTHING
    scope, name = span.scope, span.name
    if scope.startswith(LANGCHAIN):
        metadata = values.mapping(span.attributes.get(METADATA))
        return Told(*langchain.chain(name, metadata), session=values.identifier(metadata.get(langchain.THREAD)))
    if scope.startswith((DSPY, LLAMA_INDEX)):
        return Told(Kind.CHAIN, InvocationFacts(fallback_name=values.name(_cut(name, scope))))
    if not scope.startswith(SCOPE):
        return Told(Kind.CHAIN, InvocationFacts(name=values.name(name)))
    return Told(Kind.CHAIN, InvocationFacts())


def _model(span: RawSpan, hasher: Hasher) -> Told:
    """A model call. ADK's instrumentation overwrites one model span an agent: its tokens are the last call's only (Q17)."""
    attributes = span.attributes
    overwritten = span.scope.startswith(GOOGLE_ADK) and span.name.startswith("invoke_agent")
    calls = tuple(_message_calls(attributes, hasher))
    finish = values.words(attributes.get(FINISH_REASON))
    facts = ModelFacts(
        model=values.first(attributes, MODEL, values.text),
        request_model=values.text(attributes.get(REQUEST_MODEL)),
        tokens=Tokens() if overwritten else usage(attributes),
        asked_for_tools=bool(calls) or genai.asks_for_tools(finish),
        calls=calls,
        context_limit=genai.context_limit(attributes),
        cost=values.amount(attributes.get(COST)) if COST in attributes else genai.cost(attributes),
    )
    return Told(Kind.MODEL, facts, genai.failed_by(finish))


def usage(attributes: Mapping[str, Any]) -> Tokens:
    """Input and output tokens, by OpenInference's own keys, else by the dual-emitted GenAI ones."""
    return genai.known(genai.tokens(attributes, (PROMPT_TOKENS,), (COMPLETION_TOKENS,))) or genai.usage(attributes)


def _message_calls(attributes: Mapping[str, Any], hasher: Hasher) -> Iterator[Call]:
    """The tool calls of the flattened output messages."""
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for key in attributes:
        if not key.startswith(OUTPUT_CALLS):
            continue
        match = _CALL_KEY.fullmatch(key)
        if match is not None and len(found) < _MAX_MESSAGE_CALLS:
            found.setdefault((int(match[1]), int(match[2])), {})[match[3]] = attributes[key]
    for _, call in sorted(found.items()):
        name, call_id = values.text(call.get("function.name")), values.identifier(call.get("id"))
        yield hasher.call(name, call_id, call.get("function.arguments"), failed=False)


def _tool(span: RawSpan, hasher: Hasher) -> Told:
    attributes, name = span.attributes, span.name
    if _is_event(span):
        return _event_tool(span, hasher)
    if span.scope.startswith(OPENAI_AGENTS) and TOOL_NAME not in attributes and name.startswith("handoff"):
        return Told(Kind.HANDOFF, HandoffFacts(_handoff_target(name)))
    found = values.text(attributes.get(TOOL_NAME)) or values.text(_cut(name, span.scope))
    if span.scope.startswith(AUTOGEN) and TOOL_NAME not in attributes and found is not None:
        found = found.rpartition(".")[2]
    if (span.scope.startswith(SMOLAGENTS) and found == "final_answer") or (
        span.scope.startswith(DSPY) and found == "finish"
    ):
        return Told(Kind.TOOL, ToolFacts(finish=True))
    return Told(Kind.TOOL, ToolFacts((_call(span, found, hasher),)))


def _handoff_target(name: str) -> str | None:
    """`handoff to billing_agent` goes to billing_agent."""
    target = name.removeprefix("handoff").removeprefix(" to ").strip()
    return values.name(target)


def _call(span: RawSpan, name: str | None, hasher: Hasher) -> Call:
    attributes = span.attributes
    call_id = values.first(attributes, CALL_IDS, values.identifier)
    failed = genai.tool_failed(span)
    return hasher.call(name, call_id, attributes.get(INPUT), attributes.get(OUTPUT), failed=failed)


def _is_event(span: RawSpan) -> bool:
    """Q16: BeeAI tells events as spans: `tool.search.wikipedia.start-12`."""
    return span.scope.startswith(BEEAI) and _EVENT_SPAN.search(span.name) is not None


def _is_start(span: RawSpan) -> bool:
    return ".start-" in span.name


def _event_tool(span: RawSpan, hasher: Hasher) -> Told:
    """Of BeeAI's event spans `.start-N` is the call; `.finish`, `.success` and `.update` are nothing."""
    if not _is_start(span):
        return NOTHING
    name = values.text(span.attributes.get(TOOL_NAME)) or span.name.rpartition(".start-")[0]
    return Told(Kind.TOOL, ToolFacts((_call(span, name, hasher),)))


def _retrieval(span: RawSpan, hasher: Hasher) -> Told:
    return Told(Kind.RETRIEVAL)


def _evaluation(span: RawSpan, hasher: Hasher) -> Told:
    return Told(Kind.EVALUATION)


_BY_KIND: Final[Mapping[str, Callable[[RawSpan, Hasher], Told]]] = {
    "AGENT": _agent,
    "CHAIN": _chain,
    "LLM": _model,
    "TOOL": _tool,
    "RETRIEVER": _retrieval,
    "EVALUATOR": _evaluation,
}
