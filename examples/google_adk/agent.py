"""A Google ADK agent. The framework tells its spans itself; nothing about the agent is changed.

Run it from the project's root, in an environment of its own (ADK needs an OpenTelemetry SDK of at
most 1.44):

    python -m venv .venv-example && . .venv-example/bin/activate
    pip install --requirement examples/google_adk/requirements.txt && pip install --no-deps .
    python examples/google_adk/agent.py

The model is a script, so no network and no key is needed. Two orders are refunded five times each.
The spans are left in `spans.jsonl`, and at the end stands the scorecard that `otel-reliability
report spans.jsonl` prints.

A tool tells of an error by returning `{"error": ...}`, and the model tries again, until it may be
asked no more: then the run ends with an exception, so ticket 9 is known to have failed. (An
exception that `ReflectAndRetryToolPlugin` turns into an answer leaves no mark on the tool's span:
such a failure cannot be seen from outside.)

ADK records no arguments unless `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true`; without
them a call is a retry if the last call of its tool failed.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path

from google.adk.agents import LlmAgent, RunConfig
from google.adk.agents.invocation_context import LlmCallsLimitExceededError
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types
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


class Script(BaseLlm):
    """A model that calls the first tool that has not succeeded yet, or says a last word."""

    model: str = "house-model-1"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Answer once."""
        parts = [part for content in llm_request.contents for part in content.parts or []]
        usage = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=300 * len(parts), candidates_token_count=40
        )
        content = types.Content(role="model", parts=[self._answer(parts)])
        yield LlmResponse(
            content=content, usage_metadata=usage, finish_reason=types.FinishReason.STOP
        )

    def _answer(self, parts: list[types.Part]) -> types.Part:
        ticket, order = re.findall(r"Ticket (\d+): refund (\S+)", parts[0].text or "")[0]
        responses = [part.function_response for part in parts if part.function_response]
        done = {response.name for response in responses if "result" in (response.response or {})}
        for tool in UNUSUAL.get(int(ticket), USUAL):
            if tool not in done:
                return types.Part(
                    function_call=types.FunctionCall(name=tool, args={"order": order})
                )
        return types.Part(text=f"Order {order} is refunded.")


# --- The agent ------------------------------------------------------------------------------------


def lookup_order(order: str) -> str:
    """Tell what was ordered."""
    return f"{order}: one book, paid"


def check_policy(order: str) -> str:
    """Tell whether an order may be refunded."""
    return f"{order}: within 30 days"


def issue_refund(order: str) -> dict[str, str]:
    """Pay the money back."""
    if not next(GATEWAY):
        return {"error": "the payment gateway did not answer"}
    return {"result": f"{order}: refunded"}


agent = LlmAgent(name="refunds", model=Script(), tools=[lookup_order, check_policy, issue_refund])


# --- Its telemetry --------------------------------------------------------------------------------


def live_score(numbers: InMemoryMetricReader) -> float:
    """The score as the process's own metrics tell it."""
    collected = numbers.get_metrics_data()
    scopes = [scope for resource in collected.resource_metrics for scope in resource.scope_metrics]
    found = {metric.name: metric for scope in scopes for metric in scope.metrics}
    return found["agent.reliability.score"].data.data_points[0].value


async def refund_all() -> None:
    """Answer the tickets, each in a session of its own."""
    runner = InMemoryRunner(agent, app_name="shop")
    limit = RunConfig(max_llm_calls=6)
    for ticket, order in TICKETS:
        with suppress(LlmCallsLimitExceededError):
            request = f"Ticket {ticket}: refund {order}"
            await runner.run_debug(
                request, session_id=f"ticket-{ticket}", run_config=limit, quiet=True
            )


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

    logging.getLogger("google_adk").setLevel(
        logging.CRITICAL
    )  # it prints the exception of ticket 9 besides
    asyncio.run(refund_all())

    provider.force_flush()
    print(f"live: a score of {live_score(numbers):.1f}\n")
    provider.shutdown()
    app(["report", str(SPANS)])


if __name__ == "__main__":
    main()
