"""LlamaIndex's own OpenTelemetry spans: kinds only in names, values only in Python reprs (Q31).

Source: llama-index-observability-otel 0.7 with LlamaIndex 0.14, scope
`llamaindex.opentelemetry.tracer`.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Final

from otel_reliability.conventions import values
from otel_reliability.conventions.base import (
    NOTHING,
    Answer,
    Convention,
    SpanView,
    own_of_all,
    reported_call,
)
from otel_reliability.model.span import (
    STATUS_ERROR,
    Call,
    InvocationFacts,
    Kind,
    ModelFacts,
    ToolFacts,
)

INPUT_EVENT: Final = "llamaindex.step.input_event"
SUMMARY: Final = "llamaindex.step.input_summary"

_TOOL_NAME: Final = re.compile(r"\.call_tool$|Tool\.a?call$")
_MODEL_NAME: Final = re.compile(r"^(?P<owner>.*)\.a?(stream_)?(chat|complete)$")
_SUMMARY: Final = re.compile(r"ToolCall\(tool_name='(?P<name>[^']+)'")
_ARGUMENTS: Final = re.compile(r"tool_kwargs=(?P<arguments>\{.*?\}), tool_id=", re.DOTALL)
_CALL_ID: Final = re.compile(r"tool_id='(?P<id>[^']+)'")
_MAX_SUMMARY: Final = 4096


class LlamaIndex(Convention):
    """Spans of LlamaIndex's OpenTelemetry integration."""

    name = "LlamaIndex"
    scopes = ("llamaindex.opentelemetry",)
    messages = (INPUT_EVENT, SUMMARY)

    def read(self, span: SpanView) -> Answer | None:
        """Read by span name; a tool only where its own step was a tool call, since spans inherit
        attributes.
        """
        name = span.name
        if _TOOL_NAME.search(name):
            return _tool(span)
        if name.endswith(".run"):
            return Answer(
                Kind.WORKFLOW, InvocationFacts(fallback_name=values.name(name.removesuffix(".run")))
            )
        model = _MODEL_NAME.match(name)
        if model and not model["owner"].endswith("Engine"):
            return Answer(Kind.MODEL, ModelFacts())
        return NOTHING


def _tool(span: SpanView) -> Answer:
    """A tool call from the summary of its step, cut at 200 characters; unreadable, it happened but
    cannot be named.
    """
    if span.get(INPUT_EVENT) not in ("ToolCall", None):
        return NOTHING
    return Answer(
        Kind.TOOL, own_of_all(_failed_call if span.status == STATUS_ERROR else _call, SUMMARY)
    )


def _call(summary: object, *, failed: bool = False) -> ToolFacts:
    named = (
        _SUMMARY.match(summary)
        if isinstance(summary, str) and len(summary) < _MAX_SUMMARY
        else None
    )
    if named is None or not isinstance(summary, str):
        return ToolFacts((Call(None, failed=failed),))
    given = _ARGUMENTS.search(summary)
    call_id = _CALL_ID.search(summary)
    call = reported_call(
        named["name"],
        call_id["id"] if call_id else None,
        given["arguments"] if given else None,
        failed=failed,
    )
    return ToolFacts((call,))


_failed_call: Final = partial(_call, failed=True)
