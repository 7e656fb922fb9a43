"""Runs as the Collector's exporter writes them to a topic: a message each, under the id of its trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from otel_reliability.model.span import RawSpan
from otel_reliability.testing import span, traces_protobuf

TOOLS: Final = ("search", "read", "book", "pay")
PER_RUN: Final = 9
"""Spans of a run, and of a message: a root, four tool calls, four model calls."""
FLEET: Final = 20
"""Agents that the runs are spread over."""
BATCH: Final = 57
"""Runs of one request over HTTP: 513 spans."""


class Message(NamedTuple):
    """One message."""

    key: bytes
    value: bytes


def spans_of(number: int) -> list[RawSpan]:
    """A run of nine spans."""
    trace, start = number + 1, float(number % 1_000)
    root = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": f"agent {number % FLEET}"}
    found = [span(1, attributes=root, trace=trace, start=start, end=start + 9)]
    for step, tool in enumerate(TOOLS):
        call = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.arguments": '{"id": 7}',
        }
        chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o", "gen_ai.usage.input_tokens": 900}
        found.append(span(2 + step, 1, attributes=call, trace=trace, start=start + step))
        found.append(span(6 + step, 1, attributes=chat, trace=trace, start=start + step))
    return found


def messages(begin: int, end: int) -> list[Message]:
    """The runs of these numbers, a message each."""
    made = (spans_of(at) for at in range(begin, end))
    return [Message(spans[0].trace_id.hex().encode(), traces_protobuf(spans)) for spans in made]


def requests(begin: int, end: int) -> Iterator[bytes]:
    """The same as requests over HTTP."""
    for first in range(begin, end, BATCH):
        yield traces_protobuf([one for at in range(first, min(first + BATCH, end)) for one in spans_of(at)])
