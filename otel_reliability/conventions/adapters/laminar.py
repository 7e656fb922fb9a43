"""Laminar: types in `lmnr.span.type`; its model calls carry GenAI keys without an operation.

Source: traces of OpenHands' SDK, scope `lmnr.tracer`, where a conversation is the run of an agent
and a delegated one lies below the tool that started it.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai
from otel_reliability.conventions.base import (
    NOTHING,
    Answer,
    Convention,
    SpanView,
    own,
    own_value,
)
from otel_reliability.model.span import InvocationFacts, Kind

TYPE: Final = "lmnr.span.type"
INPUT: Final = "lmnr.span.input"
OUTPUT: Final = "lmnr.span.output"
ASSOCIATION: Final = "lmnr.association.properties."
SESSIONS: Final = (ASSOCIATION + "session_id",)
CONVERSATION: Final = "conversation"


class Laminar(Convention):
    """Spans of Laminar's decorators, by type."""

    name = "Laminar"
    request = (INPUT,)
    plain = SESSIONS
    tool_content = (INPUT, OUTPUT)
    tool_mark = (TYPE, "tool")
    needs = (TYPE,)

    def read(self, span: SpanView) -> Answer | None:
        """A function is a chain: the container of the run where nothing stands above it."""
        kind = span.get(TYPE)
        session = own(values.identifier, *SESSIONS)
        if kind == "LLM":
            return replace(genai.model(span), session=session)
        if kind == "TOOL":
            name = values.text(span.name)
            told = genai.tool_answer(
                span, name, arguments=own_value(INPUT), result=own_value(OUTPUT)
            )
            return replace(told, session=session)
        if kind == "DEFAULT":
            named = InvocationFacts(name=values.name(span.name))
            is_agent = span.name == CONVERSATION
            return Answer(Kind.AGENT if is_agent else Kind.CHAIN, named, session=session)
        return None if kind is None else NOTHING
