"""What our processor costs the process of an agent: SDK start and end of a span, with it and with a
no-op processor.

A round is some thousand spans of each host in short slices, taken in turns, so that other load hits
both. Every slice ends with a collection of the youngest garbage in its own time: each host pays for
what it leaves behind. The queue is emptied before each round, unmeasured: draining runs in whoever
collects metrics.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from threading import Thread
from typing import Any, Final, NamedTuple

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

from benchmarks.measure import Row, ratios, row
from otel_reliability.processor import ReliabilitySpanProcessor

ROUNDS: Final = 31
SPANS: Final = 2_048
"""Spans per round: fewer than the processor's queue holds."""
SLICES: Final = 8
THREADS: Final = 8
RUN: Final = 16
"""Spans per run."""


class Spans(NamedTuple):
    """What a host makes: runs of a root and some spans below it, each with its attributes."""

    root: str
    about: Mapping[str, Any]
    name: str
    children: Sequence[Mapping[str, Any]]


GENAI: Final = Spans(
    "invoke_agent agent",
    {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "agent"},
    "execute_tool search",
    [
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.agent.name": "agent",
            "gen_ai.tool.name": "search",
            "gen_ai.tool.call.id": f"call-{number}",
            "gen_ai.tool.call.arguments": f'{{"query": "refund {number}"}}',
            "gen_ai.request.model": "model-1",
            "gen_ai.usage.input_tokens": 100,
            "server.address": "localhost",
            "server.port": 443,
            "gen_ai.response.finish_reasons": ("stop",),
        }
        for number in range(1, RUN)
    ],
)
ORDINARY: Final = Spans(
    "GET",
    {},
    "GET /orders/{id}",
    [
        {
            "http.request.method": "GET",
            "url.scheme": "https",
            "url.path": f"/orders/{number}",
            "http.route": "/orders/{id}",
            "server.address": "localhost",
            "server.port": 443,
            "client.address": "10.0.0.7",
            "network.protocol.version": "1.1",
            "user_agent.original": "Mozilla/5.0",
            "http.response.status_code": 200,
        }
        for number in range(1, RUN)
    ],
)


class Host:
    """An SDK with one processor."""

    def __init__(self, processor: SpanProcessor, spans: Spans) -> None:
        provider = TracerProvider(
            shutdown_on_exit=False, resource=Resource({"service.name": "shop"})
        )
        provider.add_span_processor(processor)
        self._tracer = provider.get_tracer("agent")
        self._spans = spans

    def make(self, number: int) -> None:
        """Make so many spans, run by run."""
        start, (root, about, name, children) = self._tracer.start_span, self._spans
        for _ in range(number // RUN):
            with self._tracer.start_as_current_span(root, attributes=about):
                for attributes in children:
                    start(name, attributes=attributes).end()

    def slice(self) -> None:
        """Make a slice of spans in this thread."""
        self.make(SPANS // SLICES)

    def together(self) -> None:
        """Make a whole round of spans in many threads."""
        threads = [Thread(target=self.make, args=(SPANS // THREADS,)) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def rows(rounds: int = ROUNDS) -> list[Row]:
    """Return the cost of a GenAI span, of an ordinary span, and of a GenAI span where eight threads
    make them.
    """
    provider = MeterProvider(
        [InMemoryMetricReader()], shutdown_on_exit=False, resource=Resource({})
    )
    processor = ReliabilitySpanProcessor(meter_provider=provider)

    def compared(
        name: str, spans: Spans, work: Callable[[Host], None], slices: int, at_most: float
    ) -> Row:
        hosts = Host(processor, spans), Host(SpanProcessor(), spans)
        found = _in_slices(
            [lambda host=host: work(host) for host in hosts], processor, slices, rounds
        )
        return row(name, ratios(*found), against="with a no-op processor", at_most=at_most)

    found = [
        compared(
            "SDK start + end of a GenAI span of 10 attributes", GENAI, Host.slice, SLICES, 1.15
        ),
        compared(
            "SDK start + end of an ordinary span of 10 attributes",
            ORDINARY,
            Host.slice,
            SLICES,
            1.04,
        ),
        compared("the same of a GenAI span, 8 threads", GENAI, Host.together, 1, 1.20),
    ]
    processor.shutdown()
    return found


def _in_slices(
    works: Sequence[Callable[[], None]],
    processor: ReliabilitySpanProcessor,
    slices: int,
    rounds: int,
) -> list[list[float]]:
    """Return the CPU seconds (of all threads) of each work in each round."""
    found: list[list[float]] = [[] for _ in works]
    for work in works:
        work()
    for turn in range(rounds):
        processor.force_flush()
        gc.collect()
        took = [0.0] * len(works)
        for at in range(slices):
            for which in [*range(len(works))][:: 1 if (turn + at) % 2 else -1]:
                began = time.process_time()
                works[which]()
                gc.collect(0)
                took[which] += time.process_time() - began
        for each, seconds in zip(found, took, strict=True):
            each.append(seconds)
    return found
