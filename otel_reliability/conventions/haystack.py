"""Haystack's own tracing: kinds in component types, everything else in the JSON of inputs and outputs.

Source: haystack-ai 2.18, scope `haystack`; inputs and outputs only with HAYSTACK_CONTENT_TRACING_ENABLED=true. The JSON is
message text, so it is read at once and never kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from otel_reliability.conventions import values
from otel_reliability.conventions.base import NOTHING, Told
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.model.span import Call, InvocationFacts, Kind, ModelFacts, RawSpan, Tokens, ToolFacts

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
    eager: ClassVar[bool] = True

    def read(self, span: RawSpan, hasher: Hasher) -> Told | None:
        """Read by span name and component type. `haystack.agent.run` is the agent again, unnamed: the same invocation."""
        if span.name == "haystack.pipeline.run":
            return Told(Kind.WORKFLOW, InvocationFacts())
        if span.name == "haystack.agent.run":
            return Told(Kind.AGENT, InvocationFacts())
        component = span.attributes.get(TYPE)
        if not isinstance(component, str):
            return NOTHING
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
        messages = values.mapping(span.attributes.get(INPUT)).get("messages")
        asked = messages[-1] if isinstance(messages, list) and messages else None
        calls = tuple(_asked(asked, hasher, failed=span.status == 2))
    return ToolFacts(calls) if calls else _UNNAMED


def _content(message: object) -> Iterator[Mapping[str, Any]]:
    content = message.get("content") if isinstance(message, Mapping) else None
    for part in content if isinstance(content, list) else ():
        if isinstance(part, Mapping):
            yield part


def _results(output: Mapping[str, Any], hasher: Hasher) -> Iterator[Call]:
    messages = output.get("tool_messages")
    for message in messages if isinstance(messages, list) else ():
        for part in _content(message):
            result = part.get("tool_call_result")
            origin = result.get("origin") if isinstance(result, Mapping) else None
            if isinstance(result, Mapping) and isinstance(origin, Mapping):
                yield _call(origin, result.get("result"), hasher, failed=result.get("error") is True)


def _asked(message: object, hasher: Hasher, failed: bool) -> Iterator[Call]:
    for part in _content(message):
        origin = part.get("tool_call")
        if isinstance(origin, Mapping):
            yield _call(origin, None, hasher, failed)


def _call(origin: Mapping[str, Any], result: object, hasher: Hasher, failed: bool) -> Call:
    name, call_id = values.text(origin.get("tool_name")), values.identifier(origin.get("id"))
    return hasher.call(name, call_id, origin.get("arguments"), result, failed=failed)


def _model(span: RawSpan) -> ModelFacts:
    """Model and usage of the replies' metadata."""
    replies = values.mapping(span.attributes.get(OUTPUT)).get("replies")
    metas = [reply.get("meta") for reply in replies if isinstance(reply, Mapping)] if isinstance(replies, list) else []
    told = [meta for meta in metas if isinstance(meta, Mapping)]
    usages = [usage for meta in told if isinstance(usage := meta.get("usage"), Mapping)]
    return ModelFacts(
        model=next((name for meta in told if (name := values.text(meta.get("model")))), None),
        tokens=Tokens(_total(usages, "prompt_tokens"), _total(usages, "completion_tokens")),
        asked_for_tools=any(meta.get("finish_reason") == "tool_calls" for meta in told),
    )


def _total(usages: list[Mapping[str, Any]], key: str) -> int | None:
    found = [number for usage in usages if (number := values.integer(usage.get(key))) is not None]
    return sum(found) if found else None
