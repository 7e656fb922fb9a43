"""Where the demo's agents act: a real tracer, and a clock that is wound instead of waited for."""

from __future__ import annotations

import json
import random
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer

SECOND: Final = 1_000_000_000
OPENING_NS: Final = 1_736_150_400 * SECOND
"""6 January 2025, 08:00 UTC: a fixed day, so that the same seed gives the same file."""
MODEL: Final = "house-model-1"
CONTEXT_LIMIT: Final = 128_000


class SeededIds(IdGenerator):
    """The same ids for the same seed."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice

    def generate_trace_id(self) -> int:
        return self._dice.getrandbits(127) + 1

    def generate_span_id(self) -> int:
        return self._dice.getrandbits(63) + 1


class Stage:
    """The time, the dice, and the tracer through which everything that happens is told."""

    def __init__(self, tracer: Tracer, dice: random.Random) -> None:
        self.dice = dice
        self.now_ns = OPENING_NS
        self._tracer = tracer

    def wait(self, seconds: float) -> None:
        """Wind the clock."""
        self.now_ns += round(seconds * SECOND)

    @contextmanager
    def run(self, agent: str, conversation: str | None = None) -> Generator[Act]:
        """One invocation of an agent."""
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent}
        if conversation is not None:
            attributes["gen_ai.conversation.id"] = conversation
        with self.span(f"invoke_agent {agent}", SpanKind.INTERNAL, attributes):
            yield Act(self)
        self.wait(self.dice.uniform(5, 60))

    @contextmanager
    def span(self, name: str, kind: SpanKind, attributes: Mapping[str, Any]) -> Generator[Span]:
        """A span that lasts for as long as the clock is wound within."""
        span = self._tracer.start_span(name, kind=kind, attributes=attributes, start_time=self.now_ns)
        with trace.use_span(span):
            yield span
        span.end(self.now_ns)


class Act:
    """What an agent can do in one run."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def think(self, tokens: int = 2_000, reply: int = 150) -> None:
        """Call the model."""
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.response.model": MODEL,
            "gen_ai.usage.input_tokens": tokens,
            "gen_ai.usage.output_tokens": reply,
            "reliability.context_limit": CONTEXT_LIMIT,
        }
        with self._stage.span(f"chat {MODEL}", SpanKind.CLIENT, attributes):
            self._stage.wait(0.4 + reply / 100)

    def call(self, tool: str, *, ok: bool = True, **arguments: Any) -> None:
        """Call a tool."""
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.arguments": json.dumps(arguments),
        }
        with self._stage.span(f"execute_tool {tool}", SpanKind.INTERNAL, attributes) as span:
            self._stage.wait(self._stage.dice.uniform(0.05, 0.8))
            if not ok:
                span.set_status(StatusCode.ERROR)
                span.set_attribute("error.type", "not_found")
