"""Qwen Code: its log events, and its own spans `qwen-code.*`.

Source: recordings of Qwen Code 0.24.4. A background subagent is a trace of its own with a link to
the call that started it; every hook has the status ERROR; a call that was refused has no
`.execution` child, and `execution_status` not_started in its event.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import gemini_cli, genai
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
    InvocationFacts,
    Kind,
    ModelFacts,
    RawLog,
    RejectionFacts,
    ToolFacts,
)

AGENT: Final = "qwen-code"
PREFIX: Final = "qwen-code."
CONTEXT: Final = "llm_request.context"
STATUS: Final = "execution_status"
NOT_STARTED: Final = "not_started"
FAILURE_KIND: Final = "tool.failure_kind"
DENIED: Final = "permission_denied"
MANAGED: Final = "managed-"
"""Begins the names of subagents that the user did not ask for, as the one that extracts memories.
"""
SEPARATOR: Final = "#"


class QwenCode(Convention):
    """Spans named `qwen-code.interaction`, `.llm_request`, `.tool`, `.tool.execution` and
    `.subagent`.
    """

    name = "Qwen Code"
    scopes = ("qwen-code",)
    event_scopes = ("qwen-code",)
    conversation = ("session.id",)
    content = genai.GenAI.content
    tool_content = genai.GenAI.tool_content
    tool_mark = genai.GenAI.tool_mark
    messages = genai.GenAI.messages
    plain = (
        *genai.GenAI.plain,
        *genai.GenAI.needs,
        CONTEXT,
        STATUS,
        FAILURE_KIND,
        "tool.call_id",
        "success",
    )

    def read(self, span: SpanView) -> Answer | None:
        """Read by span name, then as the GenAI conventions say; a request that serves no prompt is
        nothing.
        """
        match span.name.removeprefix(PREFIX):
            case "interaction" | "subagent":
                return genai.agent(span)
            case "llm_request" if span.get(CONTEXT) != "standalone":
                return genai.model(span)
            case "tool" if span.get(FAILURE_KIND) == DENIED:
                return Answer(Kind.TOOL, RejectionFacts(), failed=False)
            case "tool":
                return genai.tool(span)
            case "tool.execution":
                name = values.text(span.get(genai.TOOL_NAME))
                failed = values.truth(span.get("success")) is False
                facts = genai.one_call(
                    span, name, own(values.identifier, "tool.call_id"), failed=failed
                )
                return Answer(Kind.TOOL, facts, facts.calls[0].failed)
            case _:
                return NOTHING

    def read_event(self, log: RawLog) -> EventAnswer | None:
        given = log.attributes
        session = values.identifier(given.get("session.id"))
        prompt_id = values.text(given.get("prompt_id"))
        if session is not None and log.name == f"{PREFIX}chat_compression":
            return gemini_cli.chat_compression(given, session)
        if session is None or prompt_id is None:
            return None
        prompt, subagent = _prompt(session, prompt_id)
        if subagent is not None and subagent.startswith(MANAGED):
            return None
        duration = values.number(given.get("duration_ms")) or 0.0
        match log.name.removeprefix(PREFIX):
            case "user_prompt":
                return EventAnswer(
                    kind=Kind.AGENT,
                    facts=InvocationFacts(name=AGENT),
                    conversation=session,
                    prompt=prompt,
                    request=given.get("prompt"),
                )
            case "tool_call":
                return _tool(given, session, prompt, subagent, duration)
            case "api_response" | "api_error" as name:
                response_id = values.text(given.get("response_id"))
                tokens = genai.tokens(given, ("input_token_count",), ("output_token_count",))
                facts = ModelFacts(
                    values.text(given.get("model")),
                    tokens=tokens,
                    response_id=response_id,
                    cached=values.integer(given.get("cached_content_token_count")),
                    reasoned=values.integer(given.get("thoughts_token_count")),
                )
                failed = name == "api_error"
                identity = (prompt_id, response_id)
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
            case _:
                return None


def _tool(
    given: Mapping[str, Any],
    session: str,
    prompt: str | None,
    subagent: str | None,
    duration: float,
) -> EventAnswer:
    failed = values.truth(given.get("success")) is False
    call_id = values.identifier(given.get("call_id"))
    call = reported_call(
        values.text(given.get("function_name")), call_id, given.get("function_args"), failed=failed
    )
    facts = RejectionFacts(call_id) if given.get(STATUS) == NOT_STARTED else ToolFacts((call,))
    return EventAnswer(
        kind=Kind.TOOL,
        facts=facts,
        conversation=session,
        identity=(call_id,),
        prompt=prompt,
        duration_ms=duration,
        failed=failed,
        subagent=subagent,
    )


def _prompt(session: str, prompt_id: str) -> tuple[str | None, str | None]:
    """The prompt of an id `<session>########<n>`, else the subagent of
    `<session>#<subagent>#<turn>`.
    """
    rest = prompt_id.removeprefix(session)
    if rest.startswith(SEPARATOR * 2):
        return prompt_id, None
    subagent = rest.strip(SEPARATOR).rpartition(SEPARATOR)[0]
    return (prompt_id, None) if not subagent else (None, subagent)
