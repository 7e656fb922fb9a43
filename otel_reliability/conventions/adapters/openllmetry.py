"""OpenLLMetry / Traceloop: spans that carry `traceloop.span.kind`, and its model spans of the
generations before 0.50.

Source: traceloop/openllmetry, semconv-ai 0.5.1, instrumentations 0.40 to 0.62, and that of
LangChain for JavaScript of 2026.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec.structs import replace

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai, langchain
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
from otel_reliability.model.span import Call, HandoffFacts, InvocationFacts, Kind, ToolFacts

SPAN_KIND: Final = "traceloop.span.kind"
ENTITY_NAME: Final = "traceloop.entity.name"
ENTITY_INPUT: Final = "traceloop.entity.input"
ENTITY_OUTPUT: Final = "traceloop.entity.output"
ENTITY_PATH: Final = "traceloop.entity.path"
NORMALIZED: Final = frozenset({"invoke_agent", "invoke_workflow", "execute_tool"})
KINDS: Final = frozenset({"workflow", "task", "agent", "tool"})
"""Traceloop's kinds of spans that are no model calls, which end the names of these spans."""
WORKFLOW_NAME: Final = "traceloop.workflow.name"
REQUEST_TYPE: Final = "llm.request.type"
ASSOCIATION: Final = "traceloop.association.properties."
SESSIONS: Final = tuple(ASSOCIATION + key for key in ("session_id", "thread_id", "conversation_id"))
SESSION: Final = own(values.identifier, *SESSIONS)
CREW: Final = "crewai.workflow"
TO_AGENT: Final = "gen_ai.handoff.to_agent"
CREW_ROLE: Final = "crewai.agent.role"
COMPLETION: Final = "gen_ai.completion."

LANGCHAIN: Final = "opentelemetry.instrumentation.langchain"
LANGCHAIN_JS: Final = "@traceloop/instrumentation-langchain"
TOOL_CLASSES: Final = frozenset(
    {"DynamicStructuredTool", "DynamicTool", "StructuredTool", "Tool", "unknown"}
)
"""Classes that LangChain for JavaScript names in the place of most tools."""
OPENAI_AGENTS: Final = "opentelemetry.instrumentation.openai_agents"
"""Q37: agent and workflow spans of this scope end OK although the run died."""

MODEL_REQUESTS: Final = frozenset({"chat", "completion", "response"})
_MOST_CALLS: Final = 256


class OpenLLMetry(Convention):
    """Spans that say their kind in Traceloop's words; the kind beats the operation (Q6)."""

    name = "OpenLLMetry"
    request = (ENTITY_INPUT, "crewai.crew.tasks")
    asks = (COMPLETION,)
    needs = (SPAN_KIND, REQUEST_TYPE, WORKFLOW_NAME, ENTITY_PATH)
    names = (CREW,)
    plain = (ENTITY_NAME, WORKFLOW_NAME, TO_AGENT, CREW_ROLE, *SESSIONS)
    tool_content = (ENTITY_INPUT, ENTITY_OUTPUT)
    tool_mark = (SPAN_KIND, "tool")
    prefixes = (COMPLETION,)

    def read(self, span: SpanView) -> Answer | None:
        """Read by Traceloop's kind; without one, CrewAI's crew and the older model spans are
        recognized.
        """
        if span.scope.startswith(LANGCHAIN_JS):
            return _langchain_js(span)
        kind = span.get(SPAN_KIND)
        if kind is None:
            kind = _normalized_kind(span)
        if kind is None:
            return _without_kind(span)
        if kind == "tool":
            return Answer(Kind.TOOL, _tool(span), session=SESSION)
        if kind == "agent":
            return Answer(Kind.AGENT, _agent(span), session=SESSION)
        if kind == "workflow":
            return _workflow(span)
        if kind == "handoff":
            return Answer(Kind.HANDOFF, HandoffFacts(_target(span)))
        return NOTHING if isinstance(kind, str) else None


def _normalized_kind(span: SpanView) -> str | None:
    """Return the kind of a span of Traceloop of which a Collector's `gen_ai_normalizer` made an
    operation: it writes `invoke_agent` for agents and tasks alike, but leaves the span's name.
    """
    if values.text(span.get(genai.OPERATION)) not in NORMALIZED:
        return None
    if WORKFLOW_NAME not in span and ENTITY_PATH not in span:
        return None
    suffix = span.name.rpartition(".")[2]
    return suffix if suffix in KINDS else None


def _langchain_js(span: SpanView) -> Answer | None:
    """In JavaScript the operation decides: a tool is a task too, an agent a workflow. Chains are
    siblings of what they contain, so none is a root.
    """
    operation = span.get(genai.OPERATION)
    if operation == "execute_tool":
        named = values.text(span.get(ENTITY_NAME))
        name = None if named in TOOL_CLASSES else named
        return Answer(
            Kind.TOOL,
            genai.one_call(span, name, None, own_value(ENTITY_INPUT), own_value(ENTITY_OUTPUT)),
            session=SESSION,
        )
    if operation == "invoke_agent":
        named = langchain.graph_name(span.get(genai.AGENT_NAME))
        return Answer(Kind.AGENT, InvocationFacts(name=named), session=SESSION)
    return None if operation in genai.MODEL_OPERATIONS else NOTHING


def _without_kind(span: SpanView) -> Answer | None:
    """CrewAI's crew is a container (Q6); `llm.request.type` marks a model call that names no
    operation (Q36).
    """
    if span.name == CREW:
        return Answer(Kind.WORKFLOW, InvocationFacts())
    if REQUEST_TYPE in span and genai.OPERATION not in span:
        return _model(span) if values.text(span.get(REQUEST_TYPE)) in MODEL_REQUESTS else None
    return None


def _agent(span: SpanView) -> InvocationFacts:
    named = values.first(span, (genai.AGENT_NAME, CREW_ROLE, ENTITY_NAME), values.name)
    return InvocationFacts(
        name=named or values.name(span.name.removesuffix(".agent")),
        emits_no_tools=span.scope in genai.NO_TOOL_SPANS,
        hides_failure=span.scope.startswith(OPENAI_AGENTS),
    )


def _workflow(span: SpanView) -> Answer:
    """A workflow; of LangChain it is the graph, hence the agent where nothing stands
    above it (Q1).
    """
    named = values.first(span, (WORKFLOW_NAME, ENTITY_NAME), values.name)
    if span.scope.startswith(LANGCHAIN):
        graph = langchain.graph_name(named)
        facts = InvocationFacts(name=graph, agent_if_root=graph is not None)
        return Answer(
            Kind.WORKFLOW, facts, session=own_of_all(_session_or_thread, ENTITY_INPUT, *SESSIONS)
        )
    if span.scope.startswith(OPENAI_AGENTS):
        return Answer(Kind.WORKFLOW, InvocationFacts(hides_failure=True), session=SESSION)
    return Answer(Kind.WORKFLOW, InvocationFacts(name=named), session=SESSION)


def _session_or_thread(given: object, *sessions: object) -> str | None:
    """Q36: up to 0.46 the thread id stands only in the workflow's input (read there alone: parsing
    costs).
    """
    found = next(filter(None, map(values.identifier, sessions)), None)
    if found is not None or (isinstance(given, str) and langchain.THREAD not in given):
        return found
    return langchain.thread_of(values.mapping(given).get("metadata"))


def _target(span: SpanView) -> str | None:
    """`support_agent → unknown.handoff` goes to the agent that starts next (Q37)."""
    named = values.name(span.get(TO_AGENT))
    if named is None:
        named = values.name(span.name.removesuffix(".handoff").rpartition("→")[2].strip())
    return None if named == "unknown" else named


def _tool(span: SpanView) -> ToolFacts:
    """A tool call, with what the wrapper of LangChain's inputs holds of it."""
    named = values.first(span, (genai.TOOL_NAME, ENTITY_NAME), values.text)
    name = named or values.text(span.name.removesuffix(".tool"))
    given = own_value(genai.ARGUMENTS, ENTITY_INPUT)
    call_id = own(values.identifier, genai.CALL_ID)
    if span.scope.startswith(LANGCHAIN):
        given = own_of_all(_inputs, genai.ARGUMENTS, ENTITY_INPUT)
        call_id = own_of_all(_call_id, genai.CALL_ID, genai.ARGUMENTS, ENTITY_INPUT)
    return genai.one_call(span, name, call_id, given, own_value(genai.RESULT, ENTITY_OUTPUT))


def _inputs(arguments: object, entity_input: object) -> object:
    """Q12: LangChain's arguments stand among tags, ids and steps that differ from call to call.
    Only `.inputs` is theirs.
    """
    given = entity_input if arguments is None else arguments
    wrapper = values.mapping(given)
    return wrapper.get("inputs", wrapper.get("input_str", given))


def _call_id(call_id: object, arguments: object, entity_input: object) -> str | None:
    found = values.identifier(call_id)
    given = entity_input if arguments is None else arguments
    if found is not None or (isinstance(given, str) and "tool_call_id" not in given):
        return found
    return values.identifier(
        values.mapping(values.mapping(given).get("kwargs")).get("tool_call_id")
    )


def _model(span: SpanView) -> Answer:
    """A model call of the generations that name no operation; its calls stand in
    `gen_ai.completion.N.tool_calls.M`.
    """
    reasons = genai.finish_reasons(span) + values.words(span.get(COMPLETION + "0.finish_reason"))
    calls = own_of_all(_calls, *_call_keys(span), genai.OUTPUT_MESSAGES)
    answer = genai.model(span, asked_for_tools=genai.asks_for_tools(reasons), calls=calls)
    return replace(answer, session=SESSION)


def _call_keys(span: SpanView) -> Iterator[str]:
    """The keys of the calls of a completion, three for each."""
    for number in range(_MOST_CALLS):
        start = f"{COMPLETION}0.tool_calls.{number}."
        if start + "name" not in span:
            return
        yield from (start + "name", start + "id", start + "arguments")


def _calls(*parts: Any) -> tuple[Call, ...]:
    """The calls up to the first without a name; without any, those of the messages."""
    *flat, messages = parts
    calls: list[Call] = []
    for name, call_id, given in zip(flat[::3], flat[1::3], flat[2::3], strict=True):
        if (named := values.text(name)) is None:
            break
        calls.append(reported_call(named, values.identifier(call_id), given))
    return tuple(calls) or genai.message_calls(messages)
