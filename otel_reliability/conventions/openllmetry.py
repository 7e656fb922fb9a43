"""OpenLLMetry / Traceloop: spans that carry `traceloop.span.kind`, and its model spans of the generations before 0.50.

Source: traceloop/openllmetry, semconv-ai 0.5.1, instrumentations 0.40 to 0.62.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from otel_reliability.conventions import genai, langchain, values
from otel_reliability.conventions.base import NOTHING, Told
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.model.span import Call, HandoffFacts, InvocationFacts, Kind, RawSpan, ToolFacts

SPAN_KIND: Final = "traceloop.span.kind"
ENTITY_NAME: Final = "traceloop.entity.name"
ENTITY_INPUT: Final = "traceloop.entity.input"
ENTITY_OUTPUT: Final = "traceloop.entity.output"
WORKFLOW_NAME: Final = "traceloop.workflow.name"
REQUEST_TYPE: Final = "llm.request.type"
ASSOCIATION: Final = "traceloop.association.properties."
SESSIONS: Final = tuple(ASSOCIATION + key for key in ("session_id", "thread_id", "conversation_id"))
CREW: Final = "crewai.workflow"
TO_AGENT: Final = "gen_ai.handoff.to_agent"
CREW_ROLE: Final = "crewai.agent.role"
COMPLETION: Final = "gen_ai.completion."

LANGCHAIN: Final = "opentelemetry.instrumentation.langchain"
CREWAI: Final = "opentelemetry.instrumentation.crewai"
OPENAI_AGENTS: Final = "opentelemetry.instrumentation.openai_agents"

MODEL_REQUESTS: Final = frozenset({"chat", "completion", "response"})
HIDES_FAILURE: Final = (OPENAI_AGENTS,)
"""Q37: agent and workflow spans of these scopes end OK although the run died."""
_MOST_CALLS: Final = 256


class OpenLLMetry:
    """Spans that say their kind in Traceloop's words; the kind beats the operation (Q6)."""

    name: ClassVar[str] = "OpenLLMetry"
    scopes: ClassVar[tuple[str, ...]] = ()
    keys: ClassVar[frozenset[str]] = frozenset(
        {
            SPAN_KIND, ENTITY_NAME, ENTITY_INPUT, ENTITY_OUTPUT, WORKFLOW_NAME, REQUEST_TYPE, TO_AGENT, CREW_ROLE, *SESSIONS,
        }
    )  # fmt: skip
    prefixes: ClassVar[tuple[str, ...]] = (COMPLETION,)

    def read(self, span: RawSpan, hasher: Hasher) -> Told | None:
        """Read by Traceloop's kind; without one, CrewAI's crew and the older model spans are told apart."""
        kind = span.attributes.get(SPAN_KIND)
        if kind is None:
            return _without_kind(span, hasher)
        if kind == "tool":
            return Told(Kind.TOOL, ToolFacts((_call(span, hasher),)))
        if kind == "agent":
            return Told(Kind.AGENT, _agent(span), session=_session(span))
        if kind == "workflow":
            return _workflow(span)
        if kind == "handoff":
            return Told(Kind.HANDOFF, HandoffFacts(_target(span)))
        return NOTHING if isinstance(kind, str) else None


def _without_kind(span: RawSpan, hasher: Hasher) -> Told | None:
    """CrewAI's crew is a container (Q6); `llm.request.type` tells a model call that names no operation (Q36)."""
    if span.name == CREW:
        return Told(Kind.WORKFLOW, InvocationFacts())
    attributes = span.attributes
    if REQUEST_TYPE in attributes and genai.OPERATION not in attributes:
        return _model(span, hasher) if values.text(attributes.get(REQUEST_TYPE)) in MODEL_REQUESTS else None
    return None


def _agent(span: RawSpan) -> InvocationFacts:
    attributes = span.attributes
    named = values.first(attributes, (genai.AGENT_NAME, CREW_ROLE, ENTITY_NAME), values.name)
    return InvocationFacts(
        name=named or values.name(span.name.removesuffix(".agent")),
        emits_no_tools=span.scope in genai.NO_TOOL_SPANS,
        hides_failure=span.scope.startswith(HIDES_FAILURE),
    )


def _workflow(span: RawSpan) -> Told:
    """A workflow; of LangChain it is the graph, hence the agent where nothing stands above it (Q1)."""
    attributes = span.attributes
    named = values.first(attributes, (WORKFLOW_NAME, ENTITY_NAME), values.name)
    if span.scope.startswith(LANGCHAIN):
        graph = langchain.graph_name(named)
        facts = InvocationFacts(name=graph, agent_if_root=graph is not None)
        return Told(Kind.WORKFLOW, facts, session=_session(span) or _thread(attributes))
    if span.scope.startswith(OPENAI_AGENTS):
        return Told(Kind.WORKFLOW, InvocationFacts(hides_failure=True), session=_session(span))
    return Told(Kind.WORKFLOW, InvocationFacts(name=named), session=_session(span))


def _thread(attributes: Mapping[str, Any]) -> str | None:
    """Q36: up to 0.46 the thread id stands only in the workflow's input (read there alone: parsing costs)."""
    metadata = values.mapping(values.mapping(attributes.get(ENTITY_INPUT)).get("metadata"))
    return values.identifier(metadata.get(langchain.THREAD))


def _session(span: RawSpan) -> str | None:
    return values.first(span.attributes, SESSIONS, values.identifier)


def _target(span: RawSpan) -> str | None:
    """`support_agent → unknown.handoff` goes to whoever starts next (Q37)."""
    named = values.name(span.attributes.get(TO_AGENT))
    if named is None:
        named = values.name(span.name.removesuffix(".handoff").rpartition("→")[2].strip())
    return None if named == "unknown" else named


def _call(span: RawSpan, hasher: Hasher) -> Call:
    """A tool call, with what the wrapper of LangChain's inputs holds of it."""
    attributes = span.attributes
    named = values.first(attributes, (genai.TOOL_NAME, ENTITY_NAME), values.text)
    name = named or values.text(span.name.removesuffix(".tool"))
    call_id = values.identifier(attributes.get(genai.CALL_ID))
    given, result = (
        values.raw(attributes, (genai.ARGUMENTS, ENTITY_INPUT)),
        values.raw(attributes, (genai.RESULT, ENTITY_OUTPUT)),
    )
    if span.scope.startswith(LANGCHAIN):
        given, wrapped_id = _unwrapped(given)
        call_id = call_id or wrapped_id
    return hasher.call(name, call_id, given, result, failed=genai.tool_failed(span))


def _unwrapped(given: object) -> tuple[object, str | None]:
    """Q12: LangChain's arguments stand among tags, ids and steps that differ from call to call. Only `.inputs` is theirs."""
    wrapper = values.mapping(given)
    arguments = wrapper.get("inputs", wrapper.get("input_str", given))
    return arguments, values.identifier(values.mapping(wrapper.get("kwargs")).get("tool_call_id"))


def _model(span: RawSpan, hasher: Hasher) -> Told:
    """A model call of the generations that name no operation; its calls stand in `gen_ai.completion.N.tool_calls.M`."""
    facts, failed = genai.model_facts(span, hasher)
    calls = tuple(_completion_calls(span.attributes, hasher))
    reasons = values.words(span.attributes.get(COMPLETION + "0.finish_reason"))
    asked = facts.asked_for_tools or bool(calls) or genai.asks_for_tools(reasons)
    return Told(Kind.MODEL, facts._replace(calls=calls or facts.calls, asked_for_tools=asked), failed)


def _completion_calls(attributes: Mapping[str, Any], hasher: Hasher) -> Iterator[Call]:
    for number in range(_MOST_CALLS):
        start = f"{COMPLETION}0.tool_calls.{number}."
        name = values.text(attributes.get(start + "name"))
        if name is None:
            return
        call_id = values.identifier(attributes.get(start + "id"))
        yield hasher.call(name, call_id, attributes.get(start + "arguments"), failed=False)
