"""Conversations with coding agents: the trace that stands for one, where log events have no trace and spans have many."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from otel_reliability.model.span import SpanId, TraceId

_PREFIX: Final = b"convers."
"""The first half of the trace id of every conversation."""
BY_TIME: Final[SpanId] = bytes(7) + b"\x01"
"""The parent of what names no prompt: the prompt of the conversation that was current at its time."""
ORIGIN: Final[SpanId] = bytes(7) + b"\x02"
"""The span of a conversation that a tool call of another one started; its parent is that call."""


def trace_of(conversation: str) -> TraceId:
    """Return the trace id that stands for a conversation.

    >>> is_conversation(trace_of("01a208b9-4ef4"))
    True
    """
    return _PREFIX + blake2b(conversation.encode("utf-8", "replace"), digest_size=8).digest()


def is_conversation(trace_id: TraceId) -> bool:
    """Return whether a trace id stands for a conversation."""
    return trace_id.startswith(_PREFIX)


def span_of(*parts: object) -> SpanId:
    """Return the span id of a part of a conversation, by what identifies it."""
    return blake2b("\0".join(map(str, parts)).encode("utf-8", "replace"), digest_size=8).digest()
