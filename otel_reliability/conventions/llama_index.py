"""LlamaIndex's own OpenTelemetry spans: kinds only in names, values only in Python reprs (Q31).

Source: llama-index-observability-otel 0.7 with LlamaIndex 0.14, scope `llamaindex.opentelemetry.tracer`.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from otel_reliability.conventions import values
from otel_reliability.conventions.base import NOTHING, Told
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.model.span import STATUS_ERROR, Call, InvocationFacts, Kind, ModelFacts, RawSpan, ToolFacts

INPUT_EVENT: Final = "llamaindex.step.input_event"
SUMMARY: Final = "llamaindex.step.input_summary"

_TOOL_NAME: Final = re.compile(r"\.call_tool$|Tool\.a?call$")
_MODEL_NAME: Final = re.compile(r"^(?P<owner>.*)\.a?(stream_)?(chat|complete)$")
_SUMMARY: Final = re.compile(r"ToolCall\(tool_name='(?P<name>[^']+)'")
_ARGUMENTS: Final = re.compile(r"tool_kwargs=(?P<arguments>\{.*?\}), tool_id=", re.DOTALL)
_CALL_ID: Final = re.compile(r"tool_id='(?P<id>[^']+)'")
_MAX_SUMMARY: Final = 4096


class LlamaIndex:
    """Spans of LlamaIndex's OpenTelemetry integration."""

    name: ClassVar[str] = "LlamaIndex"
    scopes: ClassVar[tuple[str, ...]] = ("llamaindex.opentelemetry",)
    keys: ClassVar[frozenset[str]] = frozenset({INPUT_EVENT, SUMMARY})
    prefixes: ClassVar[tuple[str, ...]] = ()

    def read(self, span: RawSpan, hasher: Hasher) -> Told | None:
        """Read by span name; a tool only where its own step was a tool call, since spans inherit attributes."""
        name = span.name
        if _TOOL_NAME.search(name):
            return _tool(span, hasher)
        if name.endswith(".run"):
            return Told(Kind.WORKFLOW, InvocationFacts(fallback_name=values.name(name.removesuffix(".run"))))
        model = _MODEL_NAME.match(name)
        if model and not model["owner"].endswith("Engine"):
            return Told(Kind.MODEL, ModelFacts())
        return NOTHING


def _tool(span: RawSpan, hasher: Hasher) -> Told:
    """A tool call from the summary of its step, cut at 200 characters; unreadable, it happened but cannot be named."""
    attributes = span.attributes
    if attributes.get(INPUT_EVENT) not in ("ToolCall", None):
        return NOTHING
    failed = span.status == STATUS_ERROR
    summary = attributes.get(SUMMARY)
    told = _SUMMARY.match(summary) if isinstance(summary, str) and len(summary) < _MAX_SUMMARY else None
    if told is None or not isinstance(summary, str):
        return Told(Kind.TOOL, ToolFacts((Call(None, failed=failed),)))
    given, call_id = _ARGUMENTS.search(summary), _CALL_ID.search(summary)
    call = hasher.call(
        told["name"], call_id["id"] if call_id else None, given["arguments"] if given else None, failed=failed
    )
    return Told(Kind.TOOL, ToolFacts((call,)))
