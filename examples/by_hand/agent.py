"""An agent that is instrumented by hand, through the OpenTelemetry API alone.

Run it from the project's root; nothing but the project itself has to be installed:

    pip install '.[cli]'
    python examples/by_hand/agent.py

The model is a script, so no network and no key is needed. Two orders are refunded five times each.
The spans are left in `spans.jsonl`, and at the end stands the scorecard that `otel-reliability
report spans.jsonl` prints.

What makes such spans readable are a few attributes of the GenAI conventions:
`gen_ai.operation.name` on every span, the names of agent, tools and model, the tokens. What only
the application can know (which runs are attempts at the same task, and whether one succeeded)
stands in two attributes of ours.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import SpanKind

from otel_reliability import ReliabilitySpanProcessor, record
from otel_reliability.cli.app import app

SPANS = Path("spans.jsonl")

# --- The script -----------------------------------------------------------------------------------

TICKETS = list(enumerate(["A-1", "B-2"] * 5, start=1))
USUAL = ("lookup_order", "check_policy", "issue_refund")
UNUSUAL = {4: ("check_policy", "lookup_order", "issue_refund")}
GATEWAY = iter([True] * 6 + [False, True] + [True] + [False] * 4 + [True])
"""How the payment gateway answers, call by call: it fails once for ticket 7, and all the time for
ticket 9.
"""

Done = list[tuple[str, bool]]
"""The tool calls of a run so far, and which of them succeeded."""


def next_tool(ticket: int, done: Done) -> str | None:
    """What the model decides: the first tool that has not succeeded yet, until four calls have
    failed.
    """
    todo = (tool for tool in UNUSUAL.get(ticket, USUAL) if (tool, True) not in done)
    return next(todo, None) if sum(not ok for _, ok in done) < 4 else None


# --- The agent ------------------------------------------------------------------------------------

MODEL = "house-model-1"
tracer = trace.get_tracer("examples.by_hand")


def answer(ticket: int, order: str) -> None:
    """One run: the model chooses tools until it has none left to call."""
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "refunds",
        "reliability.task.id": f"refund {order}",
    }
    with tracer.start_as_current_span("invoke_agent refunds", attributes=attributes) as span:
        done: Done = []
        while tool := think(ticket, done):
            done.append((tool, call(tool, order)))
        span.set_attribute("reliability.run.success", ("issue_refund", True) in done)


def think(ticket: int, done: Done) -> str | None:
    """One call of the model: which tool comes next, or None for an answer."""
    tool = next_tool(ticket, done)
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": MODEL,
        "gen_ai.response.finish_reasons": ["tool_calls" if tool else "stop"],
        "gen_ai.usage.input_tokens": 900 + 350 * len(done),
        "gen_ai.usage.output_tokens": 40 if tool else 120,
        "reliability.context_limit": 16_000,
    }
    with tracer.start_as_current_span(f"chat {MODEL}", kind=SpanKind.CLIENT, attributes=attributes):
        return tool


def call(tool: str, order: str) -> bool:
    """One tool call. The exception that leaves the span marks it as failed; the agent goes on."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "gen_ai.tool.call.arguments": json.dumps({"order": order}),
    }
    try:
        with tracer.start_as_current_span(f"execute_tool {tool}", attributes=attributes):
            if tool == "issue_refund":
                pay()
    except TimeoutError:
        return False
    return True


def pay() -> None:
    """Ask the payment gateway, which is not always there."""
    if not next(GATEWAY):
        raise TimeoutError("the payment gateway did not answer")


# --- Its telemetry --------------------------------------------------------------------------------


def live_score(numbers: Any) -> float:
    """The score as the process's own metrics tell it."""
    collected = numbers.get_metrics_data()
    scopes = [scope for resource in collected.resource_metrics for scope in resource.scope_metrics]
    found = {metric.name: metric for scope in scopes for metric in scope.metrics}
    return found["agent.reliability.score"].data.data_points[0].value


def main() -> None:
    """Refund the orders, then tell how reliable that was."""
    numbers = (
        InMemoryMetricReader()
    )  # in production, say: PeriodicExportingMetricReader(OTLPMetricExporter())
    metrics.set_meter_provider(MeterProvider([numbers]))
    provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
    trace.set_tracer_provider(provider)
    provider.add_span_processor(
        ReliabilitySpanProcessor()
    )  # this line is all that the numbers need
    SPANS.unlink(missing_ok=True)
    record(SPANS, provider)

    for ticket, order in TICKETS:
        answer(ticket, order)

    provider.force_flush()
    print(f"live: a score of {live_score(numbers):.1f}\n")
    app(["report", str(SPANS)])


if __name__ == "__main__":
    main()
