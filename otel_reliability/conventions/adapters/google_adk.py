"""Google ADK's own spans, schema 2 (GenAI operations), schema 1 and 1.x (names).

Source: google-adk 1.5 and 2.13, scope `gcp.vertex.agent`.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai
from otel_reliability.conventions.base import Answer, Convention, SpanView, own, own_of_all
from otel_reliability.model.span import InvocationFacts, Kind, RejectionFacts, Tokens

SESSION: Final = "gcp.vertex.agent.session_id"
ARGUMENTS: Final = "gcp.vertex.agent.tool_call_args"
RESPONSE: Final = "gcp.vertex.agent.tool_response"
MODEL_RESPONSE: Final = "gcp.vertex.agent.llm_response"
RETURNED: Final = (genai.TOOL_NAME, genai.CALL_ID, ARGUMENTS, RESPONSE)
"""Attributes that a tool's span gets when the tool has returned; others may come from anywhere."""
_NOT_SERIALIZED: Final = ("N/A", "<not serializable>", "<not specified>")
_NOT_CAPTURED: Final = "{}"
"""Value of arguments and of a response alike where content is not captured."""
_WAITS: Final = "requires confirmation"
_REJECTED: Final = "tool call is rejected"


class GoogleADK(Convention):
    """Spans of the Agent Development Kit, by operation, and by name where there is none."""

    name = "Google ADK"
    scopes = ("gcp.vertex.agent",)
    request = ("gcp.vertex.agent.llm_request",)
    plain = (SESSION,)
    content = (ARGUMENTS, RESPONSE)
    messages = (MODEL_RESPONSE,)

    def read(self, span: SpanView) -> Answer | None:
        """Tools with their own argument keys, the older spans by name (Q7, Q26); the rest is OTel
        GenAI.
        """
        session = own(values.identifier, SESSION)
        operation = values.text(span.get(genai.OPERATION))
        if operation is None:
            told = _by_name(span)
        else:
            told = (
                _tool(span)
                if operation in genai.TOOL_OPERATIONS
                else genai.by_operation(operation, span)
            )
        return told if told is None or SESSION not in span else replace(told, session=session)


def _by_name(span: SpanView) -> Answer | None:
    if span.name == "invocation":
        return Answer(Kind.WORKFLOW, InvocationFacts())
    if span.name.startswith("agent_run"):
        return Answer(Kind.AGENT, InvocationFacts(name=bracketed(span.name)))
    if span.name.startswith("call_llm"):
        return _model(span)
    return _failed_tool(span)


def _failed_tool(span: SpanView) -> Answer | None:
    """A tool's span gets its attributes when the tool has returned: without any of them, it failed,
    also where the status does not say so (ADK for JavaScript).
    """
    name = values.text(span.name.removeprefix(genai.TOOL_SPAN))
    is_tool = span.name.startswith(genai.TOOL_SPAN) and name not in genai.MERGED_TOOLS
    if not is_tool or any(key in span for key in RETURNED):
        return None
    return genai.tool_answer(span, name, failed=True)


def bracketed(name: str) -> str | None:
    """`agent_run [support]` names support.

    >>> bracketed("agent_run [support]"), bracketed("agent_run")
    ('support', None)
    """
    head, bracket, rest = name.partition(" [")
    return values.name(rest[:-1]) if head and bracket and rest.endswith("]") else None


def _tool(span: SpanView) -> Answer:
    """An executed tool; the span that only merges parallel ones is none (Q9)."""
    refused = span.found_in(RESPONSE, _not_executed)
    if refused is not None:
        facts = RejectionFacts(pending=refused == _WAITS)
        return Answer(Kind.TOOL, facts, failed=False)
    call_id = own(_call_id, genai.CALL_ID)
    if ARGUMENTS not in span:
        return genai.tool(span, call_id)
    told = genai.tool(
        span,
        call_id,
        arguments=own_of_all(_captured, ARGUMENTS, RESPONSE),
        result=own_of_all(_captured, RESPONSE, ARGUMENTS),
    )
    return replace(told, fails_with_call=False)


def _call_id(value: object) -> str | None:
    """The id of a call; where there is none, a word stands in its place."""
    return None if value in _NOT_SERIALIZED else values.identifier(value)


def _captured(value: object, other: object) -> object:
    """Return what one of arguments and response is; None where neither was captured."""
    return None if value == other == _NOT_CAPTURED else _serialized(value)


def _not_executed(response: object) -> str | None:
    """Return by which error a call was held back or refused; None where it was executed."""
    if isinstance(response, str) and "tool call" not in response:
        return None
    error = values.mapping(response).get("error")
    given = error if isinstance(error, str) else ""
    return next((mark for mark in (_WAITS, _REJECTED) if mark in given), None)


def _serialized(value: object) -> object:
    return None if value in _NOT_SERIALIZED else value


def _model(span: SpanView) -> Answer:
    """A `call_llm` span of 1.x: its output tokens are the total where the response's JSON says so
    (Q27).
    """
    return genai.model(
        span, tokens=own_of_all(_tokens, MODEL_RESPONSE, *genai.INPUT_TOKENS, *genai.OUTPUT_TOKENS)
    )


def _tokens(response: object, *counts: object) -> Tokens:
    tokens = genai.first_known((), (), *counts) or Tokens()
    if tokens.input is None or tokens.output is None:
        return tokens
    usage = values.mapping(values.mapping(response).get("usage_metadata"))
    total = values.integer(usage.get("total_token_count"))
    if tokens.output != total:
        return tokens
    return Tokens(tokens.input, max(tokens.output - tokens.input, 0))
