"""An agent on which experiments are run: `answer` gets an input, and returns the output.

Run it from the project's root; no network and no key is needed, for the model is a script:

    pip install '.[service]'
    otel-reliability experiment examples/experiment/tasks.jsonl \
        --call examples.experiment.orders:answer --require 'success_rate>=0.8'

Its tool fails one time in ten, and the agent asks once more. So it keeps that promise, and one
without a second attempt would not. With faults in its tool, and with other words in its input:

    otel-reliability experiment examples/experiment/tasks.jsonl \
        --call examples.experiment.orders:answer --out disturbed.jsonl \
        --fault tools:0.3 --vary prompt --require 'fault_robustness>=0.7'
"""

from __future__ import annotations

import random
import re

from opentelemetry import trace
from opentelemetry.trace import StatusCode

from otel_reliability.experiments.faults import faulty

tracer = trace.get_tracer("examples.experiment")
ORDERS = {"7": "shipped", "9": "refunded", "12": "lost"}
ATTEMPTS = 2


def answer(question: str) -> str:
    """One run: the model finds the order in the question, and asks the tool for its status."""
    names = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "orders"}
    attributes = {**names, "gen_ai.input.messages": question}
    with tracer.start_as_current_span("invoke_agent orders", attributes=attributes):
        found = re.search(r"\d+", question)
        order = found[0] if found else ""
        for _ in range(ATTEMPTS):
            status = call(order)
            if status is not None:
                return f"Order {order} is {status}."
        return "I cannot find out, sorry."


def call(order: str) -> str | None:
    """One tool call; None where it failed."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "order_status",
        "gen_ai.tool.call.arguments": order,
    }
    with tracer.start_as_current_span("execute_tool order_status", attributes=attributes) as span:
        try:
            return order_status(order)
        except Exception as error:  # noqa: BLE001  the agent asks again, whatever went wrong
            span.set_status(StatusCode.ERROR)
            span.set_attribute("error.type", type(error).__name__)
            return None


@faulty
def order_status(order: str) -> str:
    """The tool: it fails one time in ten, and more often where an experiment asks for it."""
    if random.random() < 0.1:  # noqa: S311  no secret
        raise TimeoutError("the warehouse does not answer")
    return ORDERS[order]
