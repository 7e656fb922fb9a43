"""A loop around the OpenAI client. OpenTelemetry's own instrumentation tells the model calls; the
loop tells the rest.

Run it from the project's root, in an environment of its own:

    python -m venv .venv-example && . .venv-example/bin/activate
    pip install --requirement examples/openai_client/requirements.txt && pip install --no-deps .
    python examples/openai_client/agent.py

The client talks to a script instead of the service, so no network and no key is needed. Two orders
are refunded five times each. The spans are left in `spans.jsonl`, and at the end stands the
scorecard that `otel-reliability report spans.jsonl` prints.

An instrumented client alone tells only that a model was called, each call a trace of its own. Two
spans make runs of it: one around each run (`invoke_agent`) and one around each tool call
(`execute_tool`). `annotate` says what only the application knows: which runs are attempts at the
same task, and whether one succeeded.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx2
from openai import OpenAI
from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.json.file import FileSpanExporter
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from otel_reliability import ReliabilitySpanProcessor, annotate
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


def service(request: httpx2.Request) -> httpx2.Response:
    """The service, as far as the client asks for it."""
    messages = json.loads(request.content)["messages"]
    tool = next_tool(messages)
    message: dict[str, Any] = {"role": "assistant", "content": None if tool else "That is all."}
    if tool:
        call = {
            "name": tool,
            "arguments": json.dumps({"order": messages[0]["content"].split()[-1]}),
        }
        message["tool_calls"] = [
            {"id": f"call-{len(messages)}", "type": "function", "function": call}
        ]
    answer = {
        "id": "answer",
        "object": "chat.completion",
        "created": 0,
        "model": MODEL,
        "choices": [
            {"index": 0, "message": message, "finish_reason": "tool_calls" if tool else "stop"}
        ],
        "usage": {
            "prompt_tokens": 300 * len(messages),
            "completion_tokens": 40,
            "total_tokens": 300 * len(messages) + 40,
        },
    }
    return httpx2.Response(200, json=answer)


def next_tool(messages: list[dict[str, Any]]) -> str | None:
    """What the model decides: the first tool that has not succeeded yet, until four calls have
    failed.
    """
    ticket = int(re.findall(r"Ticket (\d+)", messages[0]["content"])[0])
    results = [message["content"] for message in messages if message["role"] == "tool"]
    todo = (tool for tool in UNUSUAL.get(ticket, USUAL) if f"{tool}: done" not in results)
    return next(todo, None) if sum("failed" in result for result in results) < 4 else None


# --- The agent ------------------------------------------------------------------------------------

MODEL = "gpt-4o-mini"
TOOLS = [
    {"type": "function", "function": {"name": tool, "parameters": {"type": "object"}}}
    for tool in USUAL
]

client = OpenAI(api_key="none", http_client=httpx2.Client(transport=httpx2.MockTransport(service)))
tracer = trace.get_tracer("examples.openai_client")


def refund(ticket: int, order: str) -> None:
    """One run: call the model, and the tools it asks for, until it has none left to call."""
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "refunds"}
    messages: list[Any] = [{"role": "user", "content": f"Ticket {ticket}: refund {order}"}]
    with tracer.start_as_current_span("invoke_agent refunds", attributes=attributes):
        annotate(task_id=f"refund {order}")
        while calls := think(messages):
            messages += [
                {"role": "tool", "tool_call_id": call.id, "content": use(call)} for call in calls
            ]
        annotate(
            success=any(message.get("content") == "issue_refund: done" for message in messages)
        )


def think(messages: list[Any]) -> list[Any]:
    """Call the model; which tools does it ask for?"""
    answer = (
        client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS)
        .choices[0]
        .message
    )
    messages.append(answer.model_dump(exclude_none=True))
    return answer.tool_calls or []


def use(call: Any) -> str:
    """One tool call. The exception that leaves the span marks it as failed; the model is told, and
    goes on.
    """
    tool = call.function.name
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.call.arguments": call.function.arguments,
    }
    try:
        with tracer.start_as_current_span(f"execute_tool {tool}", attributes=attributes):
            if tool == "issue_refund":
                pay()
    except TimeoutError as error:
        return f"{tool}: failed, {error}"
    return f"{tool}: done"


def pay() -> None:
    """Ask the payment gateway, which is not always there."""
    if not next(GATEWAY):
        raise TimeoutError("the payment gateway did not answer")


# --- Its telemetry --------------------------------------------------------------------------------


def live_score(numbers: InMemoryMetricReader) -> float:
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
    provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter(SPANS)))
    OpenAIInstrumentor().instrument()

    for ticket, order in TICKETS:
        refund(ticket, order)

    provider.force_flush()
    print(f"live: a score of {live_score(numbers):.1f}\n")
    provider.shutdown()
    app(["report", str(SPANS)])


if __name__ == "__main__":
    main()
