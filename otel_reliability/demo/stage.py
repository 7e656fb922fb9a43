"""Where the demo's agents act: a real tracer, and a clock that is wound instead of waited for."""

from __future__ import annotations

import json
import random
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

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


class Unfinished(NamedTuple):
    """A span that goes on when its run is over, and when it ends."""

    span: Span
    end_ns: int


class Stage:
    """The time, the dice, and the tracer through which everything that happens is told.

    `judgements` are those of an evaluator that looks at runs from outside; `unfinished` the spans that outlive their runs.
    """

    def __init__(self, tracer: Tracer, dice: random.Random) -> None:
        self.dice = dice
        self.now_ns = 0
        self.judgements: list[Evaluation] = []
        self.unfinished: list[Unfinished] = []
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
        with self.span(f"invoke_agent {agent}", SpanKind.INTERNAL, attributes) as root:
            yield Act(self, root)

    @contextmanager
    def span(self, name: str, kind: SpanKind, attributes: Mapping[str, Any]) -> Generator[Span]:
        """A span that lasts for as long as the clock is wound within."""
        span = self.begin(name, kind, attributes)
        with trace.use_span(span):
            yield span
        span.end(self.now_ns)

    def begin(self, name: str, kind: SpanKind, attributes: Mapping[str, Any]) -> Span:
        """A span that somebody else ends."""
        return self._tracer.start_span(name, kind=kind, attributes=attributes, start_time=self.now_ns)


class Act:
    """What an agent can do in one run."""

    def __init__(self, stage: Stage, root: Span) -> None:
        self._stage, self._root = stage, root

    def think(self, tokens: int = 2_000, reply: int = 150) -> None:
        """Call the model."""
        with self._stage.span(f"chat {MODEL}", SpanKind.CLIENT, _chat(tokens, reply)):
            self._stage.wait(0.4 + reply / 250)

    def think_of_tools(self) -> None:
        """Call a model that asks for tools, under an instrumentation that tells neither them nor tokens."""
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.response.finish_reasons": ("tool_calls",)}
        with self._stage.span(f"chat {MODEL}", SpanKind.CLIENT, attributes):
            self._stage.wait(1)

    def call(self, tool: str, *, ok: bool = True, url: str | None = None, **arguments: Any) -> None:
        """Call a tool; with `url`, one that asks the web, which instrumented HTTP clients tell too."""
        with self._stage.span(f"execute_tool {tool}", SpanKind.INTERNAL, _tool(tool, arguments)) as span:
            if url is not None:
                with self._stage.span("GET", SpanKind.CLIENT, {"http.request.method": "GET", "url.full": url}):
                    self._stage.wait(0.05)
            self._stage.wait(self._stage.dice.uniform(0.05, 0.4))
            if not ok:
                span.set_status(StatusCode.ERROR)
                span.set_attribute("error.type", "not_found")

    def think_in_background(self) -> None:
        """Call the model and do not wait for it: its span comes when the run is long over."""
        span = self._stage.begin(f"chat {MODEL}", SpanKind.CLIENT, _chat(1_200, 20))
        self._stage.unfinished.append(Unfinished(span, self._stage.now_ns + SECOND))

    @contextmanager
    def ask(self, agent: str) -> Generator[Act]:
        """Have another agent do a part of the work, within this run."""
        with self._stage.run(agent) as inner:
            yield inner

    def judge(self, dimension: str, score: float) -> None:
        """Have an evaluator look at this run."""
        context = self._root.get_span_context()
        self._judge(dimension, score, context.trace_id.to_bytes(16), context.span_id.to_bytes(8))

    def judge_without_saying_whom(self, dimension: str, score: float) -> None:
        """Have an evaluator look at this run that does not pass its context on."""
        self._judge(dimension, score, None, None)

    def _judge(self, dimension: str, score: float, trace_id: bytes | None, span_id: bytes | None) -> None:
        self._stage.judgements.append(Evaluation(dimension, score, None, self._stage.now_ns, trace_id, span_id))


def _chat(tokens: int, reply: int) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.response.model": MODEL,
        "gen_ai.usage.input_tokens": tokens,
        "gen_ai.usage.output_tokens": reply,
        "reliability.context_limit": CONTEXT_LIMIT,
    }


def _tool(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.arguments": json.dumps(arguments),
    }
