"""OpenAI Codex: its log events, and the few of its spans that report a turn, a tool call or a
response.

Source: recordings of Codex 0.169.0. Log records have no event time, `success` stays true for a
command that failed (its exit code stands in the output), and a subagent is a conversation of its
own that only the output of `spawn_agent` names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai
from otel_reliability.conventions.base import (
    NOTHING,
    Answer,
    Convention,
    EventAnswer,
    SpanView,
    own,
    reported_call,
)
from otel_reliability.model.span import (
    CompressionFacts,
    InvocationFacts,
    Kind,
    ModelFacts,
    RawLog,
    RejectionFacts,
    Tokens,
    ToolFacts,
)

AGENT: Final = "codex"
CONVERSATION: Final = "conversation.id"
PHASE: Final = "codex.tool.phase"
TURN_INPUT: Final = "codex.turn.token_usage.input_tokens"
TURN_OUTPUT: Final = "codex.turn.token_usage.output_tokens"
WRAPPER: Final = "exec"
"""In code mode the model calls `exec` with a program that calls the tools: no step, its calls are.
"""
SPAWN: Final = "spawn_agent"
COMPACT: Final = "/compact"
"""Ends the endpoint that compresses a conversation. One that the agent summarizes itself leaves a
span only if a user asked.
"""
NAMESPACES: Final = ("multi_agent_v1", "functions")
"""Precede the name of a tool on spans, without a separator."""

_EXIT_CODE: Final = re.compile(r"(?:Process exited with code|Exit code:) (-?\d+)")
_HEAD: Final = 400
"""Characters of an output that hold its exit code."""
_OUTPUT: Final = "Output:\n"
_REJECTED: Final = "Rejected("


class Codex(Convention):
    """Spans `session_task.turn`, `session_task.compact` and `handle_responses`, and those in the
    phase `dispatch` of a tool.
    """

    name = "Codex"
    scopes = ("codex_",)
    event_scopes = ("codex_otel",)
    conversation = (CONVERSATION, "thread.id")
    plain = (
        PHASE,
        "tool_name",
        "call_id",
        "model",
        TURN_INPUT,
        TURN_OUTPUT,
        *genai.INPUT_TOKENS,
        *genai.OUTPUT_TOKENS,
    )

    def read(self, span: SpanView) -> Answer | None:
        session = own(values.text, CONVERSATION)
        if span.name == "session_task.turn":
            facts = InvocationFacts(name=AGENT, tokens=genai.usage((TURN_INPUT,), (TURN_OUTPUT,)))
            return Answer(Kind.AGENT, facts, session=own(values.text, "thread.id"))
        if span.name == "session_task.compact":
            return Answer(
                Kind.COMPRESSION,
                CompressionFacts(trigger="manual"),
                session=own(values.text, "thread.id"),
            )
        if span.get(PHASE) == "dispatch":
            name = values.text(span.get("tool_name"))
            if name is None or name == WRAPPER:
                return NOTHING
            call = reported_call(_bare(name), own(values.identifier, "call_id"))
            return Answer(Kind.TOOL, ToolFacts((call,)), session=session)
        if span.name == "handle_responses" and genai.INPUT_TOKENS[0] in span:
            return Answer(Kind.MODEL, ModelFacts(tokens=genai.usage()))
        return NOTHING

    def read_event(self, log: RawLog) -> EventAnswer | None:
        given = log.attributes
        session = values.identifier(given.get(CONVERSATION))
        if session is None:
            return None
        duration = values.number(given.get("duration_ms")) or 0.0
        match log.name:
            case "codex.user_prompt":
                return EventAnswer(
                    kind=Kind.AGENT,
                    facts=InvocationFacts(name=AGENT),
                    conversation=session,
                    request=given.get("prompt"),
                )
            case "codex.tool_result":
                return _result(given, session, duration)
            case "codex.sse_event" if given.get("event.kind") == "response.completed":
                tokens = genai.tokens(given, ("input_token_count",), ("output_token_count",))
                if tokens == Tokens():
                    return None
                return EventAnswer(
                    kind=Kind.MODEL,
                    facts=ModelFacts(
                        values.text(given.get("model")),
                        tokens=tokens,
                        cached=values.integer(given.get("cached_token_count")),
                        cache_written=values.integer(given.get("cache_write_token_count")),
                    ),
                    conversation=session,
                    identity=(tokens.input, tokens.output),
                )
            case "codex.api_request":
                failed = given.get("error.message") is not None
                attempt = given.get("attempt")
                if str(given.get("endpoint")).endswith(COMPACT):
                    return EventAnswer(
                        kind=Kind.COMPRESSION,
                        facts=CompressionFacts(),
                        conversation=session,
                        identity=(attempt,),
                        duration_ms=duration,
                        failed=failed,
                    )
                facts = ModelFacts(values.text(given.get("model")))
                return (
                    EventAnswer(
                        kind=Kind.MODEL,
                        facts=facts,
                        conversation=session,
                        identity=(attempt,),
                        duration_ms=duration,
                        failed=failed,
                    )
                    if failed
                    else None
                )
            case _:
                return None


def _result(given: Mapping[str, Any], session: str, duration: float) -> EventAnswer | None:
    """A tool call; one that a rule forbade is none, and neither is the wrapper of others."""
    name = values.text(given.get("tool_name"))
    call_id = values.identifier(given.get("call_id"))
    if name is None or name == WRAPPER:
        return None
    namespace = values.text(given.get("tool_namespace")) or ""
    if namespace.startswith("mcp__"):
        name = f"{namespace}__{name}"
    output = given.get("output")
    head = output[:_HEAD] if isinstance(output, str) else ""
    code = _EXIT_CODE.search(head)
    refused = values.truth(given.get("success")) is False
    failed = refused or (code is not None and int(code[1]) != 0)
    result = output.partition(_OUTPUT)[2] if isinstance(output, str) and _OUTPUT in head else output
    call = reported_call(name, call_id, given.get("arguments"), result, failed=failed)
    facts = RejectionFacts(call_id) if refused and _REJECTED in head else ToolFacts((call,))
    started = values.mapping(output).get("agent_id") if name == SPAWN else None
    return EventAnswer(
        kind=Kind.TOOL,
        facts=facts,
        conversation=session,
        identity=(call_id, name),
        duration_ms=duration,
        failed=failed,
        starts=values.identifier(started),
    )


def _bare(name: str) -> str:
    return next((name.removeprefix(space) for space in NAMESPACES if name.startswith(space)), name)
