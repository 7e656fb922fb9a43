"""What our processor costs the process of an agent: SDK start and end of a span, with it and with a
no-op processor.

A round is some thousand spans of each host in short slices, taken in turns, so that other load hits
both. Every slice ends with a collection of the youngest garbage in its own time: each host pays for
what it leaves behind. The queue is emptied before each round, unmeasured: draining runs in whoever
collects metrics.

Where nobody collects, hooks do that work too, a little each. The longest of them are measured at a
steady rate of runs, in CPU time of the host's thread: no hook waits for anything. Garbage
collections within a hook count, over what we hold, not over what the host held before.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Thread
from typing import Any, Final, NamedTuple

from opentelemetry.context import Context
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider

from benchmarks.measure import Row, ratios, row
from otel_reliability.config import AssemblySettings, Settings
from otel_reliability.processor import ReliabilitySpanProcessor

ROUNDS: Final = 31
SPANS: Final = 2_048
"""Spans per round: fewer than the processor's queue holds."""
SLICES: Final = 8
THREADS: Final = 8
RUN: Final = 16
"""Spans per run."""
RATE: Final = 200
"""Runs a second at which the longest hooks are measured."""
STEADY_S: Final = 20.0
"""Seconds for which they are measured."""
STEADY: Final = Settings(assembly=AssemblySettings(linger=1, reopen=5))
"""Settings with which runs become final within that time."""


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


class Timed(SpanProcessor):
    """Our processor, and the CPU seconds of the host's thread in each of its hooks."""

    def __init__(self, processor: SpanProcessor) -> None:
        self._processor = processor
        self.seconds: list[float] = []

    def on_start(self, span: Any, parent_context: Context | None = None) -> None:
        began = time.thread_time()
        self._processor.on_start(span, parent_context)
        self.seconds.append(time.thread_time() - began)

    def on_end(self, span: ReadableSpan) -> None:
        began = time.thread_time()
        self._processor.on_end(span)
        self.seconds.append(time.thread_time() - began)


def rows(rounds: int = ROUNDS) -> list[Row]:
    """Return the costs, and the longest hooks."""
    return [*costs(rounds), *_longest(STEADY_S)]


def _longest(seconds: float) -> list[Row]:
    """Return the longest hooks of a host whose metrics nobody collects."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False, resource=Resource({}))
    processor = ReliabilitySpanProcessor(STEADY, meter_provider=provider)
    timed = Timed(processor)
    host = Host(timed, GENAI)
    gc.collect()
    gc.freeze()
    began = time.monotonic()
    for number in range(int(seconds * RATE)):
        host.make(RUN)
        time.sleep(max(0.0, began + number / RATE - time.monotonic()))
    gc.unfreeze()
    processor.shutdown()
    found = sorted(timed.seconds)
    against = f"{RATE} runs/s of {RUN} spans, no collection"
    common = found[int(len(found) * 0.999)]
    return [
        row("a hook, p99.9", [common], against=against, at_most=1.0, unit="ms", scale=1e3),
        row("a hook, longest", [found[-1]], against=against, at_most=20.0, unit="ms", scale=1e3),
    ]


def costs(rounds: int) -> Iterator[Row]:
    """Yield the cost of a GenAI span, of an ordinary span, and of a GenAI span where eight threads
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

    yield compared(
        "SDK start + end of a GenAI span of 10 attributes", GENAI, Host.slice, SLICES, 1.15
    )
    yield compared(
        "SDK start + end of an ordinary span of 10 attributes", ORDINARY, Host.slice, SLICES, 1.04
    )
    yield compared("the same of a GenAI span, 8 threads", GENAI, Host.together, 1, 1.20)
    processor.shutdown()


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
