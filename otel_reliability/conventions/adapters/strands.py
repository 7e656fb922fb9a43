"""Strands Agents: GenAI operations, arguments in span events, usage that runs on over an agent
object's life.

Source: strands-agents 1.0 to 1.62, scope `strands.telemetry.tracer`, whose newest conventions keep
all messages of a span in events of one name; @strands-agents/sdk 1.19, scope `strands-agents`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai
from otel_reliability.conventions.base import Answer, Convention, SpanView, own_of_events
from otel_reliability.conventions.hashing import is_known
from otel_reliability.model.span import (
    CANCELLED,
    STATUS_ERROR,
    Kind,
    RawEvent,
    RejectionFacts,
)

JAVASCRIPT: Final = "strands-agents"
MESSAGE_EVENT: Final = "gen_ai.tool.message"
CHOICE_EVENT: Final = "gen_ai.choice"
RESULT: Final = "result"
CALL: Final = "call"
"""Words for what events tell of a call: its result, or only that it was asked for."""
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
    stopped = CANCELLED if CANCELLATION in span else span.found_in_events(_stopped_in)
    return replace(told, facts=replace(told.facts, stopped=stopped))


def _stopped_in(events: Sequence[RawEvent]) -> str | None:
    reasons = [reason for event in events for reason in _finish_reasons(event.attributes)]
    return genai.stopped_by(values.words([reason for reason in reasons if reason]))


def _finish_reasons(event: values.Attributes) -> Iterator[object]:
    yield event.get("finish_reason")
    messages = event.get(genai.OUTPUT_MESSAGES)
    if isinstance(messages, str) and any(word in messages for word in genai.STOP_WORDS):
        for message in values.objects(messages):
            yield message.get("finish_reason")


def _tool(span: SpanView) -> Answer:
    """A tool; what its attributes do not say, events do. One that waits for a person has neither a
    status nor a result.
    """
    told = span.found_in_events(_told_in)
    if told is None:
        return genai.tool(span)
    has_result = told == RESULT or any(key in span for key in _RESULT_KEYS)
    if span.status != STATUS_ERROR and not has_result:
        return Answer(Kind.TOOL, RejectionFacts(pending=True))
    answer = genai.tool(
        span,
        own_of_events(_call_id, genai.CALL_ID),
        own_of_events(_arguments, *genai.TOOL_ARGUMENTS),
        own_of_events(_result, *genai.TOOL_RESULTS),
    )
    by_attribute = [span.found_in(key, _known) for key in genai.TOOL_RESULTS]
    return replace(answer, fails_with_call=any(by_attribute))


_RESULT_KEYS: Final = (*genai.TOOL_STATUS, *genai.TOOL_RESULTS)


def _told_in(events: Sequence[RawEvent]) -> str | None:
    """Return what the events of a tool tell of its call; None without any."""
    if not events:
        return None
    has_result = any(
        event.name == CHOICE_EVENT or genai.OUTPUT_MESSAGES in event.attributes for event in events
    )
    return RESULT if has_result else CALL


def _known(value: object) -> str | None:
    return "known" if is_known(value) else None


def _call_id(events: Sequence[RawEvent], given: object) -> str | None:
    of_events = (event.attributes.get("id") for event in events if event.name == MESSAGE_EVENT)
    return next(filter(None, map(values.identifier, (given, *of_events))), None)


def _arguments(events: Sequence[RawEvent], *given: object) -> object:
    return _first_known((*given, *_arguments_in(events)))


def _arguments_in(events: Sequence[RawEvent]) -> Iterator[object]:
    for event in events:
        if event.name == MESSAGE_EVENT:
            yield event.attributes.get("content")
        elif event.name == genai.DETAILS:
            asked = values.objects(event.attributes.get(genai.INPUT_MESSAGES))
            parts = [part for one in asked for part in values.objects(one.get("parts"))]
            yield values.raw(parts[0], ("arguments",)) if parts else None


def _result(events: Sequence[RawEvent], *given: object) -> object:
    of_events = (event.attributes.get("message") for event in events if event.name == CHOICE_EVENT)
    return _first_known((*given, *of_events))


def _first_known(found: Iterable[object]) -> object:
    """Return the first of some values that is not redacted, else the last."""
    present = [value for value in found if value is not None]
    return next(filter(is_known, present[:-1]), present[-1] if present else None)
