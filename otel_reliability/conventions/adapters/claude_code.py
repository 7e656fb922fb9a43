"""Claude Code: its log events, and its own spans `claude_code.*`.

Source: recordings of Claude Code 2.1.330 (CLAUDE_CODE_ENABLE_TELEMETRY=1; spans:
CLAUDE_CODE_ENHANCED_TELEMETRY_BETA=1) and its monitoring documentation. Input tokens there exclude
the cached part. The `.execution` child of a tool shows a failure, its `.blocked_on_user` child a
refused call; the tool's own status is always unset.
"""

from __future__ import annotations

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
    own_of_all,
    own_value,
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

AGENT: Final = "claude-code"
SCOPE: Final = "com.anthropic.claude_code"
PREFIX: Final = "claude_code."
CACHED: Final = "cache_read_tokens"
CACHE_WRITTEN: Final = "cache_creation_tokens"
INPUT_TOKENS: Final = ("input_tokens", CACHED, CACHE_WRITTEN)
"""Tokens that were new, that were read from the cache, what was written to it: together the
input.
"""
REQUEST_ID: Final = "request_id"
COMMIT: Final = "git_commit_id"
COMMIT_MADE: Final = "git_commit"
"""Name of the evaluation of a run that made a commit; it decides the outcome only where
`outcome.evaluations` has it.
"""
MCP_TOOL: Final = "mcp_tool"
"""The name that events give every tool of an MCP server; with details, `tool_parameters` has its
own.
"""


class ClaudeCode(Convention):
    """Spans named `claude_code.interaction`, `.llm_request`, `.tool`, `.tool.execution` and
    `.tool.blocked_on_user`.
    """

    name = "Claude Code"
    scopes = (SCOPE,)
    event_scopes = (SCOPE,)
    request = ("user_prompt",)
    conversation = ("session.id",)
    plain = (
        "model",
        *INPUT_TOKENS,
        "output_tokens",
        "stop_reason",
        "tool_name",
        "tool_use_id",
        "success",
        "decision",
        REQUEST_ID,
    )
    content = ("tool_input", "full_command")

    def read(self, span: SpanView) -> Answer | None:
        kind = span.name.removeprefix(PREFIX)
        if kind == "interaction":
            return Answer(Kind.AGENT, InvocationFacts(name=AGENT))
        if kind == "llm_request":
            return Answer(Kind.MODEL, _model(span))
        if kind == "tool":
            name = values.text(span.get("tool_name"))
            return NOTHING if name is None else _tool(span, name)
        if kind == "tool.execution":
            return _tool(span, None)
        if kind == "tool.blocked_on_user" and span.get("decision") == "reject":
            return Answer(Kind.TOOL, RejectionFacts())
        return NOTHING

    def read_event(self, log: RawLog) -> EventAnswer | None:
        given = log.attributes
        session = values.identifier(given.get("session.id"))
        if session is None:
            return None
        prompt = values.identifier(given.get("prompt.id"))
        subagent = values.identifier(given.get("agent_id"))
        duration = values.number(given.get("duration_ms")) or 0.0
        identity = given.get("event.sequence"), given.get("tool_use_id"), given.get(REQUEST_ID)
        match log.name.removeprefix(PREFIX):
            case "user_prompt":
                return EventAnswer(
                    kind=Kind.AGENT,
                    facts=InvocationFacts(name=AGENT),
                    conversation=session,
                    identity=identity,
                    prompt=prompt,
                    request=given.get("prompt"),
                )
            case "tool_result":
                failed = values.truth(given.get("success")) is False
                call_id = values.identifier(given.get("tool_use_id"))
                call = reported_call(
                    _tool_name(given), call_id, given.get("tool_input"), failed=failed
                )
                has_commit = not failed and _details(given).get(COMMIT) is not None
                return EventAnswer(
                    kind=Kind.TOOL,
                    facts=ToolFacts((call,)),
                    conversation=session,
                    identity=identity,
                    prompt=prompt,
                    duration_ms=duration,
                    failed=failed,
                    subagent=subagent,
                    evaluation=(COMMIT_MADE, None, "pass") if has_commit else None,
                )
            case "api_request" | "api_error" as name:
                facts = ModelFacts(
                    model=values.text(given.get("model")),
                    tokens=Tokens(
                        _input(*map(given.get, INPUT_TOKENS)),
                        values.integer(given.get("output_tokens")),
                    ),
                    cost=values.amount(given.get("cost_usd")),
                    cached=values.integer(given.get(CACHED)),
                    cache_written=values.integer(given.get(CACHE_WRITTEN)),
                    response_id=values.text(given.get(REQUEST_ID)),
                )
                failed = name == "api_error"
                return EventAnswer(
                    kind=Kind.MODEL,
                    facts=facts,
                    conversation=session,
                    identity=identity,
                    prompt=prompt,
                    duration_ms=duration,
                    failed=failed,
                    subagent=subagent,
                )
            case "compaction":  # by its time: it may name a prompt that is long done
                before = values.integer(given.get("pre_tokens"))
                after = values.integer(given.get("post_tokens"))
                facts = CompressionFacts(before, after, values.text(given.get("trigger")))
                failed = values.truth(given.get("success")) is False
                return EventAnswer(
                    kind=Kind.COMPRESSION,
                    facts=facts,
                    conversation=session,
                    identity=identity,
                    duration_ms=duration,
                    failed=failed,
                    subagent=subagent,
                )
            case _:
                return None


def _model(span: SpanView) -> ModelFacts:
    return ModelFacts(
        model=values.text(span.get("model")),
        tokens=Tokens(own_of_all(_input, *INPUT_TOKENS), own(values.integer, "output_tokens")),
        asked_for_tools=genai.asks_for_tools(values.words(span.get("stop_reason"))),
        response_id=own(values.text, REQUEST_ID),
        cached=own(values.integer, CACHED),
        cache_written=own(values.integer, CACHE_WRITTEN),
    )


def _input(*parts: object) -> int | None:
    new, *cached = map(values.integer, parts)
    return None if new is None else new + sum(part or 0 for part in cached)


def _tool(span: SpanView, name: str | None) -> Answer:
    """A tool; its `.execution` child reports the same call again, without its name, and whether it
    failed.
    """
    failed = values.truth(span.get("success")) is False
    call_id = own(values.identifier, "tool_use_id")
    facts = genai.one_call(
        span, name, call_id, own_value("tool_input", "full_command"), failed=failed
    )
    return Answer(Kind.TOOL, facts, facts.calls[0].failed)


def _tool_name(given: Mapping[str, Any]) -> str | None:
    """The name of a tool; of an MCP server as spans name it, where details have it."""
    name = values.text(given.get("tool_name"))
    if name != MCP_TOOL:
        return name
    details = _details(given)
    server = values.text(details.get("mcp_server_name"))
    tool = values.text(details.get("mcp_tool_name"))
    return name if server is None or tool is None else f"mcp__{server}__{tool}"


def _details(given: Mapping[str, Any]) -> Mapping[str, Any]:
    return values.mapping(given.get("tool_parameters"))
