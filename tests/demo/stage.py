"""The stage of the demo's agents: a real tracer, and a clock that is set instead of waited for."""

from __future__ import annotations

import json
import random
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer

from otel_reliability.model.span import Evaluation

SECOND: Final = 1_000_000_000
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
    """The time, the dice, and the tracer.

    `evaluations` are those of an evaluator outside the runs; `unfinished` are the spans that
    outlive their runs, with their ends.
    """

    def __init__(self, tracer: Tracer, dice: random.Random) -> None:
        self.dice = dice
        self.now_ns = 0
        self.evaluations: list[Evaluation] = []
        self.unfinished: list[tuple[Span, int]] = []
        self._tracer = tracer

    def wait(self, seconds: float) -> None:
        self.now_ns += round(seconds * SECOND)

    @contextmanager
    def run(self, agent: str, conversation: str | None = None) -> Generator[Act]:
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent}
        if conversation is not None:
            attributes["gen_ai.conversation.id"] = conversation
        with self.span(f"invoke_agent {agent}", SpanKind.INTERNAL, attributes) as root:
            yield Act(self, root)

    @contextmanager
    def span(self, name: str, kind: SpanKind, attributes: Mapping[str, Any]) -> Generator[Span]:
        """Yield a span that lasts as long as the clock advances within."""
        span = self.begin(name, kind, attributes)
        with trace.use_span(span):
            yield span
        span.end(self.now_ns)

    def begin(self, name: str, kind: SpanKind, attributes: Mapping[str, Any]) -> Span:
        return self._tracer.start_span(
            name, kind=kind, attributes=attributes, start_time=self.now_ns
        )


class Act:
    """The actions of an agent in one run."""

    def __init__(self, stage: Stage, root: Span) -> None:
        self._stage = stage
        self._root = root

    def think(self, tokens: int = 2_000, reply: int = 150) -> None:
        with self._stage.span(f"chat {MODEL}", SpanKind.CLIENT, _chat(tokens, reply)):
            self._stage.wait(0.4 + reply / 250)

    def think_of_tools(self) -> None:
        """Call a model that asks for tools, under an instrumentation that reports neither them nor
        tokens.
        """
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.response.finish_reasons": ("tool_calls",),
        }
        with self._stage.span(f"chat {MODEL}", SpanKind.CLIENT, attributes):
            self._stage.wait(1)

    def think_in_background(self) -> None:
        """Call the model without waiting for it: its span ends long after the run."""
        span = self._stage.begin(f"chat {MODEL}", SpanKind.CLIENT, _chat(1_200, 20))
        self._stage.unfinished.append((span, self._stage.now_ns + SECOND))

    def call(self, tool: str, *, ok: bool = True, url: str | None = None, **arguments: Any) -> None:
        """Call a tool; with `url`, one that makes an HTTP request with a span of its own."""
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.arguments": json.dumps(arguments),
        }
        with self._stage.span(f"execute_tool {tool}", SpanKind.INTERNAL, attributes) as span:
            if url is not None:
                with self._stage.span(
                    "GET", SpanKind.CLIENT, {"http.request.method": "GET", "url.full": url}
                ):
                    self._stage.wait(0.05)
            self._stage.wait(self._stage.dice.uniform(0.05, 0.4))
            if not ok:
                span.set_status(StatusCode.ERROR)
                span.set_attribute("error.type", "not_found")

    def ask(self, agent: str) -> Any:
        return self._stage.run(agent)

    def evaluate(self, name: str, score: float, *, with_context: bool = True) -> None:
        """Have an evaluator score this run; without context, it does not name the run."""
        found = self._root.get_span_context()
        ids = (
            (found.trace_id.to_bytes(16), found.span_id.to_bytes(8))
            if with_context
            else (None, None)
        )
        self._stage.evaluations.append(Evaluation(name, score, None, self._stage.now_ns, *ids))


def _chat(tokens: int, reply: int) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.response.model": MODEL,
        "gen_ai.usage.input_tokens": tokens,
        "gen_ai.usage.output_tokens": reply,
        "reliability.context_limit": CONTEXT_LIMIT,
    }
