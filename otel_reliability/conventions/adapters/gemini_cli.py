"""Gemini CLI: its log events, and its spans, each model call and each batch of tool calls a trace
of its own.

Source: recordings of Gemini CLI 0.61.0. The status of a span is OK whatever happened; the output,
where it is captured, shows a failure and the exit code of a command. A prompt of a session has no
id of its own; a tool call of an event has none either.
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
    ToolFacts,
)

AGENT: Final = "gemini-cli"
FAILED: Final = "failed"
SHELL: Final = "run_shell_command"
CALL_ID: Final = "gen_ai.tool.call_id"
INPUT: Final = "gen_ai.input.messages"
OUTPUT: Final = "gen_ai.output.messages"
SUBAGENT_GOAL: Final = "subagent_goal"
"""Name of the evaluation of a run whose subagent ended; it decides the outcome only where
`outcome.evaluations` has it.
"""
REFUSED: Final = "policy_violation"

_ERROR: Final = re.compile(r'\{\s*"status":\s*"(?:error|cancelled)"')
_EXIT_CODE: Final = re.compile(r"Exit Code: (?!0\b)-?\d")
_PARTS: Final = '"functionResponse"'


class GeminiCli(Convention):
    """Spans `llm_call` and `tool_call`."""

    name = "Gemini CLI"
    scopes = ("gemini-cli",)
    event_scopes = ("gemini-cli",)
    conversation = ("gen_ai.conversation.id",)
    tool_content = (INPUT, OUTPUT)
    tool_mark = (genai.OPERATION, "tool_call")
    plain = (
        genai.OPERATION,
        genai.TOOL_NAME,
        CALL_ID,
        genai.REQUEST_MODEL,
        *genai.INPUT_TOKENS,
        *genai.OUTPUT_TOKENS,
        *genai.CACHED_TOKENS,
        *genai.REASONING_TOKENS,
    )

    def read(self, span: SpanView) -> Answer | None:
        operation = span.get(genai.OPERATION)
        if operation == "llm_call":
            model = values.text(span.get(genai.REQUEST_MODEL))
            cached = own(values.integer, *genai.CACHED_TOKENS)
            facts = ModelFacts(
                request_model=model,
                tokens=genai.usage(),
                cached=cached,
                reasoned=own(values.integer, *genai.REASONING_TOKENS),
            )
            return Answer(Kind.MODEL, facts)
        if operation == "tool_call":
            name = values.text(span.get(genai.TOOL_NAME))
            error = span.found_in(OUTPUT, _shell_error if name == SHELL else _tool_error)
            failed = error is not None
            call = reported_call(
                name,
                own(values.identifier, CALL_ID),
                own(_arguments, INPUT),
                own(_result, OUTPUT),
                failed=failed,
            )
            return Answer(Kind.TOOL, ToolFacts((call,)), failed)
        return NOTHING

    def read_event(self, log: RawLog) -> EventAnswer | None:
        given = log.attributes
        session = values.identifier(given.get("session.id"))
        if session is None:
            return None
        duration = values.number(given.get("duration_ms")) or 0.0
        prompt_id = given.get("prompt_id")
        match log.name:
            case "gemini_cli.user_prompt":
                return EventAnswer(
                    kind=Kind.AGENT,
                    facts=InvocationFacts(name=AGENT),
                    conversation=session,
                    request=given.get("prompt"),
                )
            case "gemini_cli.tool_call":
                failed = values.truth(given.get("success")) is False
                name = values.text(given.get("function_name"))
                call = reported_call(name, None, given.get("function_args"), failed=failed)
                facts = (
                    RejectionFacts() if given.get("error_type") == REFUSED else ToolFacts((call,))
                )
                size = given.get("content_length")
                identity = (
                    name,
                    prompt_id,
                    duration,
                    size,
                    failed,
                    given.get("error"),
                    given.get("function_args"),
                )
                return EventAnswer(
                    kind=Kind.TOOL,
                    facts=facts,
                    conversation=session,
                    identity=identity,
                    duration_ms=duration,
                    failed=failed,
                )
            case "gemini_cli.api_response":
                tokens = genai.tokens(given, ("input_token_count",), ("output_token_count",))
                cached = values.integer(given.get("cached_content_token_count"))
                facts = ModelFacts(
                    values.text(given.get("model")),
                    tokens=tokens,
                    cached=cached,
                    reasoned=values.integer(given.get("thoughts_token_count")),
                )
                identity = (prompt_id, tokens.input, tokens.output)
                return EventAnswer(
                    kind=Kind.MODEL,
                    facts=facts,
                    conversation=session,
                    identity=identity,
                    duration_ms=duration,
                )
            case "gemini_cli.agent.finish":
                reason = values.text(given.get("terminate_reason"))
                goal = (
                    None
                    if reason is None
                    else (SUBAGENT_GOAL, None, "pass" if reason == "GOAL" else "fail")
                )
                return goal and EventAnswer(
                    kind=Kind.OTHER,
                    conversation=session,
                    identity=(given.get("agent_id"),),
                    evaluation=goal,
                )
            case "gemini_cli.chat_compression":
                return chat_compression(given, session)
            case "gemini_cli.api_error":
                facts = ModelFacts(values.text(given.get("model")))
                return EventAnswer(
                    kind=Kind.MODEL,
                    facts=facts,
                    conversation=session,
                    identity=(prompt_id, duration),
                    duration_ms=duration,
                    failed=True,
                )
            case _:
                return None


def chat_compression(given: Mapping[str, Any], session: str) -> EventAnswer:
    """Return what a compression stands for. The agent discards one that has more tokens than there
    were.
    """
    before = values.integer(given.get("tokens_before"))
    after = values.integer(given.get("tokens_after"))
    failed = before is not None and after is not None and after > before
    return EventAnswer(
        kind=Kind.COMPRESSION,
        facts=CompressionFacts(before, after),
        conversation=session,
        identity=(before, after),
        failed=failed,
    )


def _tool_error(output: Any) -> str | None:
    """Return a text if a call failed."""
    return FAILED if isinstance(output, str) and _ERROR.match(output) else None


def _shell_error(output: Any) -> str | None:
    """Return the same of a command, also by its exit code."""
    if not isinstance(output, str):
        return None
    has_exit_code = _EXIT_CODE.search(output.partition(_PARTS)[2]) is not None
    return FAILED if has_exit_code else _tool_error(output)


def _arguments(messages: object) -> object:
    return values.mapping(messages).get("args")


def _result(messages: object) -> object:
    parts = values.objects(
        values.mapping(values.mapping(messages).get("response")).get("responseParts")
    )
    return values.mapping(parts[0].get("functionResponse")).get("response") if parts else None
