"""A LangGraph agent, with OpenTelemetry's own instrumentation of LangChain. Nothing about the agent
is changed.

Run it from the project's root, in an environment of its own:

    python -m venv .venv-example && . .venv-example/bin/activate
    pip install --requirement examples/langgraph/requirements.txt && pip install --no-deps .
    python examples/langgraph/agent.py

The model is a script, so no network and no key is needed. Two orders are refunded five times each.
The spans are left in `spans.jsonl`, and at the end stands the scorecard that `otel-reliability
report spans.jsonl` prints.

Here a middleware tries a failed tool again, not the model: its attempts are spans of one tool call.
After four the run ends with an exception, so ticket 9 is known to have failed.

The instrumentation records no arguments unless it is told to; a call is then a retry if the last
call of its tool failed. With `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_only`
arguments are compared too (as hashes, never kept).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import ToolRetryMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.json.file import FileSpanExporter
from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor
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


class Script(BaseChatModel):
    """A chat model that calls the first tool without a result so far, or says a last word."""

    model: str = "house-model-1"

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Runnable[Any, AIMessage]:
        """It knows its tools already."""
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        message = self._answer(messages)
        tokens = 300 * len(messages)
        message.usage_metadata = {
            "input_tokens": tokens,
            "output_tokens": 40,
            "total_tokens": tokens + 40,
        }
        message.response_metadata = {
            "finish_reason": "tool_calls" if message.tool_calls else "stop"
        }
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        ticket, order = re.findall(r"Ticket (\d+): refund (\S+)", str(messages[0].content))[0]
        done = {message.name for message in messages if isinstance(message, ToolMessage)}
        for tool in UNUSUAL.get(int(ticket), USUAL):
            if tool not in done:
                return AIMessage(
                    "",
                    tool_calls=[{"name": tool, "args": {"order": order}, "id": f"{ticket}-{tool}"}],
                )
        return AIMessage(f"Order {order} is refunded.")


# --- The agent ------------------------------------------------------------------------------------


def lookup_order(order: str) -> str:
    """Tell what was ordered."""
    return f"{order}: one book, paid"


def check_policy(order: str) -> str:
    """Tell whether an order may be refunded."""
    return f"{order}: within 30 days"


def issue_refund(order: str) -> str:
    """Pay the money back."""
    if not next(GATEWAY):
        raise TimeoutError("the payment gateway did not answer")
    return f"{order}: refunded"


agent = create_agent(
    Script(),
    [lookup_order, check_policy, issue_refund],
    middleware=[ToolRetryMiddleware(max_retries=3, initial_delay=0, on_failure="error")],
    name="refunds",
)


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
    LangChainInstrumentor().instrument()

    for ticket, order in TICKETS:
        with suppress(TimeoutError):
            agent.invoke({"messages": [("user", f"Ticket {ticket}: refund {order}")]})

    provider.force_flush()
    print(f"live: a score of {live_score(numbers):.1f}\n")
    provider.shutdown()
    app(["report", str(SPANS)])


if __name__ == "__main__":
    main()
