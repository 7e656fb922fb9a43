"""Haystack's own tracing: kinds in component types, everything else in the JSON of inputs and
outputs.

Source: haystack-ai 2.18, scope `haystack`, whose agents are made of components; from 3.0 on an
agent makes spans of its steps, one for each tool call. Inputs and outputs only with
HAYSTACK_CONTENT_TRACING_ENABLED=true.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai
from otel_reliability.conventions.base import (
    NOTHING,
    Answer,
    Convention,
    SpanView,
    own_of_all,
    own_value,
    reported_call,
)
from otel_reliability.model.span import (
    STATUS_ERROR,
    Call,
    InvocationFacts,
    Kind,
    ModelFacts,
    Tokens,
    ToolFacts,
)

TYPE: Final = "haystack.component.type"
NAME: Final = "haystack.component.name"
INPUT: Final = "haystack.component.input"
OUTPUT: Final = "haystack.component.output"
STEP_MODEL: Final = "haystack.agent.step.llm"
STEP_MODEL_OUTPUT: Final = STEP_MODEL + ".output"
STEP_TOOL: Final = "haystack.agent.step.tool"
STEP_TOOL_INPUT: Final = STEP_TOOL + ".input"
STEP_TOOL_OUTPUT: Final = STEP_TOOL + ".output"
TOOL_NAME: Final = "haystack.tool.name"
PIPELINES: Final = ("haystack.pipeline.run", "haystack.async_pipeline.run")
ERROR: Final = "error"


class Haystack(Convention):
    """Spans of Haystack pipelines, components and agents."""

    name = "Haystack"
    scopes = ("haystack",)
    request = ("haystack.agent.input", "haystack.pipeline.input_data")
    plain = (TYPE, NAME, TOOL_NAME)
    content = (STEP_TOOL_INPUT, STEP_TOOL_OUTPUT)
    messages = (INPUT, OUTPUT, STEP_MODEL_OUTPUT)

    def read(self, span: SpanView) -> Answer | None:
        """Read by span name and component type. `haystack.agent.run` is the agent again, unnamed:
        the same invocation.
        """
        if span.name in PIPELINES:
            return Answer(Kind.WORKFLOW, InvocationFacts())
        if span.name == "haystack.agent.run":
            return Answer(Kind.AGENT, InvocationFacts())
        if span.name == STEP_MODEL:
            return Answer(Kind.MODEL, own_of_all(_model, STEP_MODEL_OUTPUT))
        if span.name == STEP_TOOL:
            return _step_tool(span)
        component = values.text(span.get(TYPE))
        return NOTHING if component is None else _by_component(component, span)


def _by_component(component: str, span: SpanView) -> Answer:
    if component == "Agent":
        return Answer(Kind.AGENT, InvocationFacts(name=values.name(span.get(NAME))))
    if component == "ToolInvoker":
        return Answer(
            Kind.TOOL,
            own_of_all(_failed_tools if span.status == STATUS_ERROR else _tools, INPUT, OUTPUT),
        )
    if component.endswith("Generator"):
        return Answer(Kind.MODEL, own_of_all(_model, OUTPUT))
    return Answer(Kind.RETRIEVAL) if component.endswith("Retriever") else NOTHING


def _step_tool(span: SpanView) -> Answer:
    """One call of an agent's step. Where the tool raised, the error stands in place of the output,
    and the status says nothing.
    """
    return genai.tool_answer(
        span,
        values.text(span.get(TOOL_NAME)),
        arguments=own_value(STEP_TOOL_INPUT),
        result=own_value(STEP_TOOL_OUTPUT),
        failed=span.found_in(STEP_TOOL_OUTPUT, _error) is not None,
    )


def _error(output: object) -> str | None:
    """Return the key of an error that stands alone in an output."""
    return ERROR if list(values.mapping(output)) == [ERROR] else None


def _tools(given: object, output: object, *, failed: bool = False) -> ToolFacts:
    """Q30: one span makes all calls of a turn. Without its output, the calls it was asked for;
    without both, unnamed.
    """
    results = _contents(
        values.objects(values.mapping(output).get("tool_messages")), "tool_call_result"
    )
    asked = _contents(values.objects(values.mapping(given).get("messages"))[-1:], "tool_call")
    calls = [
        _call(values.mapping(one.get("origin")), one.get("result"), failed=one.get("error") is True)
        for one in results
    ]
    return ToolFacts(
        tuple(calls or [_call(one, None, failed=failed) for one in asked]) or (Call(None),)
    )


_failed_tools: Final = partial(_tools, failed=True)


def _contents(messages: list[Mapping[str, Any]], key: str) -> Iterator[Mapping[str, Any]]:
    """The contents of one kind of the messages' parts."""
    for message in messages:
        for part in values.objects(message.get("content")):
            if found := values.mapping(part.get(key)):
                yield found


def _call(origin: Mapping[str, Any], result: object, *, failed: bool) -> Call:
    name = values.text(origin.get("tool_name"))
    call_id = values.identifier(origin.get("id"))
    return reported_call(name, call_id, origin.get("arguments"), result, failed=failed)


def _model(output: object) -> ModelFacts:
    """Model and usage of the replies' metadata."""
    replies = values.objects(values.mapping(output).get("replies"))
    told = [values.mapping(reply.get("meta")) for reply in replies]
    usages = [values.mapping(meta.get("usage")) for meta in told]
    return ModelFacts(
        model=next((name for meta in told if (name := values.text(meta.get("model")))), None),
        tokens=Tokens(_total(usages, "prompt_tokens"), _total(usages, "completion_tokens")),
        asked_for_tools=any(
            genai.asks_for_tools(values.words(meta.get("finish_reason"))) for meta in told
        ),
    )


def _total(usages: list[Mapping[str, Any]], key: str) -> int | None:
    found = [number for usage in usages if (number := values.integer(usage.get(key))) is not None]
    return sum(found) if found else None
