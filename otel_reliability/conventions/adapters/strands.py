"""Strands Agents: GenAI operations, arguments in span events, usage that runs on over an agent
object's life.

Source: strands-agents 1.0 to 1.62, scope `strands.telemetry.tracer`, whose newest conventions keep
all messages of a span in events of one name; @strands-agents/sdk 1.19, scope `strands-agents`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai
from otel_reliability.conventions.base import Answer, Convention, SpanView
from otel_reliability.conventions.hashing import is_known
from otel_reliability.model.span import CANCELLED, STATUS_ERROR, Kind, RejectionFacts

JAVASCRIPT: Final = "strands-agents"
MESSAGE_EVENT: Final = "gen_ai.tool.message"
CHOICE_EVENT: Final = "gen_ai.choice"
CANCELLATION: Final = "strands.cancellation.type"
"""Attribute of what ended an agent before its end, whose span has no error then."""


class Strands(Convention):
    """Agents and tools of the Strands tracer."""

    name = "Strands"
    scopes = ("strands.telemetry.tracer", JAVASCRIPT)
    plain = (CANCELLATION,)
    needs = (genai.OPERATION,)

    def read(self, span: SpanView) -> Answer | None:
        """Agents without their running totals, tools with the arguments of their events (Q12); the
        rest is OTel GenAI.
        """
        operation = span.get(genai.OPERATION)
        if operation == "invoke_agent":
            return _stopped(genai.agent(span, tokens=None), span)
        if operation == "execute_tool":
            return _tool(span)
        return None


def _stopped(told: Answer, span: SpanView) -> Answer:
    """The finish reason of an agent stands in the event of its answer; one that was cancelled has
    none.
    """
    if CANCELLATION in span:
        return replace(told, facts=replace(told.facts, stopped=CANCELLED))
    reasons = [reason for event in span.events for reason in _finish_reasons(event.attributes)]
    stopped = genai.stopped_by(values.words([reason for reason in reasons if reason]))
    return replace(told, facts=replace(told.facts, stopped=stopped))


def _finish_reasons(event: values.Attributes) -> Iterator[object]:
    yield event.get("finish_reason")
    messages = event.get(genai.OUTPUT_MESSAGES)
    if isinstance(messages, str) and any(word in messages for word in genai.STOP_WORDS):
        for message in values.objects(messages):
            yield message.get("finish_reason")


def _tool(span: SpanView) -> Answer:
    if not span.events:
        return genai.tool(span)
    if span.status != STATUS_ERROR and not _has_result(span):
        return Answer(Kind.TOOL, RejectionFacts(pending=True))
    call_id = values.identifier(span.get(genai.CALL_ID))
    given = values.raw(span, genai.TOOL_ARGUMENTS)
    result = values.raw(span, genai.TOOL_RESULTS)
    by_attribute = is_known(result)
    for event in span.events:
        if event.name == MESSAGE_EVENT and not is_known(given):
            given = event.attributes.get("content")
            call_id = call_id or values.identifier(event.attributes.get("id"))
        elif event.name == genai.DETAILS and not is_known(given):
            asked = values.objects(event.attributes.get(genai.INPUT_MESSAGES))
            parts = [part for one in asked for part in values.objects(one.get("parts"))]
            given = values.raw(parts[0], ("arguments",)) if parts else None
        elif event.name == CHOICE_EVENT and not is_known(result):
            result = event.attributes.get("message")
    return replace(genai.tool(span, call_id, given, result), fails_with_call=by_attribute)


def _has_result(span: SpanView) -> bool:
    """Return whether a call was executed: one that waits for a person has neither a status nor a
    result.
    """
    by_key = any(key in span for key in (*genai.TOOL_STATUS, *genai.TOOL_RESULTS))
    return by_key or any(
        event.name == CHOICE_EVENT or genai.OUTPUT_MESSAGES in event.attributes
        for event in span.events
    )
