"""Haystack's own tracing: kinds in component types, everything else in the JSON of inputs and outputs.

Source: haystack-ai 2.18, scope `haystack`; inputs and outputs only with HAYSTACK_CONTENT_TRACING_ENABLED=true.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from otel_reliability.conventions import genai, values
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

TYPE: Final = "haystack.component.type"
NAME: Final = "haystack.component.name"
INPUT: Final = "haystack.component.input"
OUTPUT: Final = "haystack.component.output"

_UNNAMED: Final = ToolFacts((Call(None),))


class Haystack:
    """Spans of Haystack pipelines, components and agents."""

    name: ClassVar[str] = "Haystack"
    scopes: ClassVar[tuple[str, ...]] = ("haystack",)
    keys: ClassVar[frozenset[str]] = frozenset({TYPE, NAME, INPUT, OUTPUT})
    prefixes: ClassVar[tuple[str, ...]] = ()

    def read(self, span: RawSpan, hasher: Hasher) -> Told | None:
        """Read by span name and component type. `haystack.agent.run` is the agent again, unnamed: the same invocation."""
        if span.name == "haystack.pipeline.run":
            return Told(Kind.WORKFLOW, InvocationFacts())
        if span.name == "haystack.agent.run":
            return Told(Kind.AGENT, InvocationFacts())
        component = values.text(span.attributes.get(TYPE))
        return NOTHING if component is None else _by_component(component, span, hasher)


def _by_component(component: str, span: RawSpan, hasher: Hasher) -> Told:
    if component == "Agent":
        return Told(Kind.AGENT, InvocationFacts(name=values.name(span.attributes.get(NAME))))
    if component == "ToolInvoker":
        return Told(Kind.TOOL, _tools(span, hasher))
    if component.endswith("Generator"):
        return Told(Kind.MODEL, _model(span))
    return Told(Kind.RETRIEVAL) if component.endswith("Retriever") else NOTHING


def _tools(span: RawSpan, hasher: Hasher) -> ToolFacts:
    """Q30: one span makes all calls of a turn. Without its output, the calls it was asked for; without both, unnamed."""
    output = values.mapping(span.attributes.get(OUTPUT))
    calls = tuple(_results(output, hasher))
    if not calls:
        asked = values.objects(values.mapping(span.attributes.get(INPUT)).get("messages"))[-1:]
        calls = tuple(_asked(asked, hasher, failed=span.status == STATUS_ERROR))
    return ToolFacts(calls) if calls else _UNNAMED


def _results(output: Mapping[str, Any], hasher: Hasher) -> Iterator[Call]:
    for told in _contents(values.objects(output.get("tool_messages")), "tool_call_result"):
        yield _call(values.mapping(told.get("origin")), told.get("result"), hasher, failed=told.get("error") is True)


def _asked(messages: list[Mapping[str, Any]], hasher: Hasher, *, failed: bool) -> Iterator[Call]:
    for origin in _contents(messages, "tool_call"):
        yield _call(origin, None, hasher, failed=failed)


def _contents(messages: list[Mapping[str, Any]], key: str) -> Iterator[Mapping[str, Any]]:
    """The contents of one kind of the messages' parts."""
    for message in messages:
        for part in values.objects(message.get("content")):
            if found := values.mapping(part.get(key)):
                yield found


def _call(origin: Mapping[str, Any], result: object, hasher: Hasher, *, failed: bool) -> Call:
    name, call_id = values.text(origin.get("tool_name")), values.identifier(origin.get("id"))
    return hasher.call(name, call_id, origin.get("arguments"), result, failed=failed)


def _model(span: RawSpan) -> ModelFacts:
    """Model and usage of the replies' metadata."""
    replies = values.objects(values.mapping(span.attributes.get(OUTPUT)).get("replies"))
    told = [values.mapping(reply.get("meta")) for reply in replies]
    usages = [values.mapping(meta.get("usage")) for meta in told]
    return ModelFacts(
        model=next((name for meta in told if (name := values.text(meta.get("model")))), None),
        tokens=Tokens(_total(usages, "prompt_tokens"), _total(usages, "completion_tokens")),
        asked_for_tools=any(genai.asks_for_tools(values.words(meta.get("finish_reason"))) for meta in told),
    )


def _total(usages: list[Mapping[str, Any]], key: str) -> int | None:
    found = [number for usage in usages if (number := values.integer(usage.get(key))) is not None]
    return sum(found) if found else None
