"""A pydantic-ai agent. The framework tells its spans itself; nothing about the agent is changed.

Run it from the project's root, in an environment of its own:

    python -m venv .venv-example && . .venv-example/bin/activate
    pip install --requirement examples/pydantic_ai/requirements.txt && pip install --no-deps .
    python examples/pydantic_ai/agent.py

The model is a script, so no network and no key is needed. Two orders are refunded five times each.
The spans are left in `spans.jsonl`, and at the end stands the scorecard that `otel-reliability
report spans.jsonl` prints.

pydantic-ai tells a model's retries by itself: a tool raises `ModelRetry`, and after four failures
in a row the run ends with an exception, so ticket 9 is known to have failed. It makes up a
conversation id for every run that has none.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.json.file import FileSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from pydantic_ai import Agent, ModelRetry, UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from otel_reliability import ReliabilitySpanProcessor
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


def script(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """What the model answers: the first tool that has not succeeded yet, or a last word."""
    parts = [part for message in messages for part in message.parts]
    ticket, order = re.findall(r"Ticket (\d+): refund (\S+)", str(parts[0].content))[0]
    done = {
        part.tool_name
        for part in parts
        if part.part_kind == "tool-return" and part.outcome == "success"
    }
    for tool in UNUSUAL.get(int(ticket), USUAL):
        if tool not in done:
            return ModelResponse([ToolCallPart(tool, {"order": order})])
    return ModelResponse([TextPart(f"Order {order} is refunded.")])


# --- The agent ------------------------------------------------------------------------------------

agent = Agent(FunctionModel(script, model_name="house-model-1"), name="refunds", retries=3)


@agent.tool_plain
def lookup_order(order: str) -> str:
    """Tell what was ordered."""
    return f"{order}: one book, paid"


@agent.tool_plain
def check_policy(order: str) -> str:
    """Tell whether an order may be refunded."""
    return f"{order}: within 30 days"


@agent.tool_plain
def issue_refund(order: str) -> str:
    """Pay the money back."""
    if not next(GATEWAY):
        raise ModelRetry("the payment gateway did not answer")
    return f"{order}: refunded"


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
    Agent.instrument_all()

    for ticket, order in TICKETS:
        with suppress(UnexpectedModelBehavior):
            agent.run_sync(f"Ticket {ticket}: refund {order}")

    provider.force_flush()
    print(f"live: a score of {live_score(numbers):.1f}\n")
    provider.shutdown()
    app(["report", str(SPANS)])


if __name__ == "__main__":
    main()
