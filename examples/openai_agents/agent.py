"""An agent of the OpenAI Agents SDK, with OpenInference's instrumentation. Nothing about the agent
is changed.

Run it from the project's root, in an environment of its own:

    python -m venv .venv-example && . .venv-example/bin/activate
    pip install --requirement examples/openai_agents/requirements.txt && pip install --no-deps .
    python examples/openai_agents/agent.py

The model is a script, so no network and no key is needed. Two orders are refunded five times each.
The spans are left in `spans.jsonl`, and at the end stands the scorecard that `otel-reliability
report spans.jsonl` prints.

The SDK tells the model that a tool failed, and the model tries again, until its turns are used up:
then the run ends with an exception, so ticket 9 is known to have failed.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, generation_span
from agents.exceptions import MaxTurnsExceeded
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.json.file import FileSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

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


class Script(Model):
    """A model that calls the first tool that has not succeeded yet, or says a last word."""

    async def get_response(
        self,
        system_instructions: str | None,
        input: Any,  # noqa: A002  the SDK calls it so
        *_: Any,
        **__: Any,
    ) -> ModelResponse:
        """Answer, and tell of it as the SDK's own models do."""
        items = [{"content": input}] if isinstance(input, str) else input
        usage = Usage(requests=1, input_tokens=300 * len(items), output_tokens=40)
        with generation_span(model="gpt-4o-mini") as span:
            span.span_data.usage = {
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
            }
            return ModelResponse(output=[self._answer(items)], usage=usage, response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        """Nobody asks for a stream here."""
        raise NotImplementedError

    def _answer(self, items: list[Any]) -> ResponseFunctionToolCall | ResponseOutputMessage:
        ticket, order = re.findall(r"Ticket (\d+): refund (\S+)", items[0]["content"])[0]
        outputs = {
            item["call_id"]: item["output"]
            for item in items
            if item.get("type") == "function_call_output"
        }
        done = {
            call_id.split()[0] for call_id, output in outputs.items() if output.startswith(order)
        }
        for tool in UNUSUAL.get(int(ticket), USUAL):
            if tool not in done:
                call_id = f"{tool} {len(items)}"
                arguments = json.dumps({"order": order})
                return ResponseFunctionToolCall(
                    type="function_call", name=tool, arguments=arguments, call_id=call_id
                )
        text = ResponseOutputText(
            type="output_text", text=f"Order {order} is refunded.", annotations=[]
        )
        return ResponseOutputMessage(
            id="-", type="message", role="assistant", status="completed", content=[text]
        )


# --- The agent ------------------------------------------------------------------------------------


@function_tool
def lookup_order(order: str) -> str:
    """Tell what was ordered."""
    return f"{order}: one book, paid"


@function_tool
def check_policy(order: str) -> str:
    """Tell whether an order may be refunded."""
    return f"{order}: within 30 days"


@function_tool
def issue_refund(order: str) -> str:
    """Pay the money back."""
    if not next(GATEWAY):
        raise TimeoutError("the payment gateway did not answer")
    return f"{order}: refunded"


agent = Agent(name="refunds", model=Script(), tools=[lookup_order, check_policy, issue_refund])


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
    OpenAIAgentsInstrumentor().instrument()

    for ticket, order in TICKETS:
        with suppress(MaxTurnsExceeded):
            Runner.run_sync(agent, f"Ticket {ticket}: refund {order}", max_turns=6)

    provider.force_flush()
    print(f"live: a score of {live_score(numbers):.1f}\n")
    provider.shutdown()
    app(["report", str(SPANS)])


if __name__ == "__main__":
    main()
