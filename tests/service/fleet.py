"""Agents under a real SDK, each with a character, whose spans leave by OTLP; what they do is the
same at every call.
"""

from __future__ import annotations

import random
from collections.abc import Generator
from contextlib import contextmanager

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import StatusCode, Tracer, get_current_span

from otel_reliability.annotation import annotate
from tests.telemetry.spans import agent_run, tool_call

AGENTS = ("clerk", "researcher", "importer", "refunds")
LIMIT = 1_000
"""Tokens of context."""


@contextmanager
def sending(url: str, service: str, **resource: str) -> Generator[Tracer]:
    """A tracer of one service, whose spans go to a Collector; at the end all have
    been handed over.
    """
    named = {
        "service.name": service,
        **{key.replace("__", "."): value for key, value in resource.items()},
    }
    provider = TracerProvider(resource=Resource(named), shutdown_on_exit=False)
    provider.add_span_processor(
        BatchSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces"), schedule_delay_millis=100)
    )
    yield provider.get_tracer("fleet")
    provider.shutdown()


def perform(tracer: Tracer, runs: int = 12, first: int = 0) -> None:
    """Let every agent do so many runs, in turns."""
    for number in range(first, first + runs):
        for agent in AGENTS:
            _run(tracer, agent, number)


def _run(tracer: Tracer, agent: str, number: int) -> None:
    dice = random.Random(f"{agent} {number}")
    with agent_run(tracer, agent, **{"gen_ai.conversation.id": f"{agent}-{number // 3}"}):
        annotate(task_id=f"task {number % 2}", trial=number // 2, context_limit=LIMIT)
        _think(tracer, dice.randint(100, 900))
        for step in range(3 if agent == "clerk" else dice.randint(1, 4)):
            tool_call(
                tracer, "look up" if agent == "clerk" else dice.choice(("search", "read", "write"))
            )
            annotate(branches={f"turn {step}": dice.choice(("left", "right"))})
        if agent == "importer" and number % 4 == 1:
            _insist(tracer)
        if agent == "refunds":
            broken = ["limit:high"] if number % 5 == 0 else []
            annotate(confidence=round(dice.random(), 2), violations=broken)
        annotate(success=agent == "clerk" or dice.random() < 0.7)


def _think(tracer: Tracer, tokens: int) -> None:
    used = {"gen_ai.usage.input_tokens": tokens, "gen_ai.usage.output_tokens": 10}
    about = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "house-model", **used}
    with tracer.start_as_current_span("chat", attributes=about):
        pass


def _insist(tracer: Tracer) -> None:
    """The same call again and again, although it fails."""
    about = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "fetch",
        "gen_ai.tool.call.arguments": "{}",
    }
    for _ in range(5):
        with tracer.start_as_current_span("execute_tool fetch", attributes=about):
            get_current_span().set_status(StatusCode.ERROR)
