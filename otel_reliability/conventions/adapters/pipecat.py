"""Pipecat's own tracing: `conversation` > `turn` > `llm`, no tool spans.

Source: pipecat-ai 1.14, scopes `pipecat.turn` and `pipecat`. A turn is a run. What a model asked
for stands, with its result, in the messages that the next model call gets.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile
from typing import Any, Final

from msgspec.structs import replace

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai
from otel_reliability.conventions.base import (
    NOTHING,
    Answer,
    Convention,
    SpanView,
    own,
    reported_call,
)
from otel_reliability.model.span import Call, InvocationFacts, Kind

INPUT: Final = "input"
SESSION: Final = "conversation.id"


class Pipecat(Convention):
    """Spans of Pipecat's turns and services."""

    name = "Pipecat"
    scopes = ("pipecat",)
    request = (INPUT,)
    plain = (SESSION,)
    messages = (INPUT,)

    def read(self, span: SpanView) -> Answer | None:
        """Read by name; the services that hear and speak, and the conversation, are nothing."""
        session = own(values.identifier, SESSION)
        if span.name == "turn":
            return Answer(Kind.AGENT, InvocationFacts(emits_no_tools=True), session=session)
        if span.name == "llm":
            return genai.model(
                span, messages=INPUT in span, calls=own(_calls, INPUT), emits_no_tools=True
            )
        return replace(NOTHING, session=session)


def _calls(messages: object) -> tuple[Call, ...]:
    """The calls since the last message of text, with their results: those of earlier model calls of
    the turn are among them, by the same ids.
    """
    since = list(takewhile(_is_of_tools, reversed(values.objects(messages))))[::-1]
    results = {
        values.identifier(message.get("tool_call_id")): message.get("content")
        for message in since
        if message.get("role") == "tool"
    }
    return tuple(
        _call(asked, results)
        for message in since
        for asked in values.objects(message.get("tool_calls"))
    )


def _is_of_tools(message: Mapping[str, Any]) -> bool:
    return message.get("role") == "tool" or bool(message.get("tool_calls"))


def _call(asked: Mapping[str, Any], results: Mapping[str | None, Any]) -> Call:
    function = values.mapping(asked.get("function"))
    call_id = values.identifier(asked.get("id"))
    name = values.text(function.get("name"))
    return reported_call(name, call_id, function.get("arguments"), results.get(call_id))
