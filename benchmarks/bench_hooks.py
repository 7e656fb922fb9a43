"""What our hooks cost in the process of an agent, beside what the SDK costs anyway.

The hooks take what is needed and leave; it is read later, when metrics are collected. Both are told: the hooks by themselves,
which is what the agent's threads pay, and all of it worked off, which is what its process pays.

A round is some thousand spans of each host in short slices, taken in turns, so that what else the machine does hits both. Our
queue grows over the whole of it. Every slice ends with a collection of the youngest garbage, in its own time: each host pays
for what it leaves behind. Batches are exported by the thread that made them, for slices are shorter than a batch: a second
thread would fight for the interpreter at any time.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping, Sequence
from threading import Thread
from typing import Any, Final, NamedTuple

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Tracer

from benchmarks.measure import Row, Work, ratios, row
from otel_reliability.engine import Engine
from otel_reliability.processor import CAPACITY, ReliabilitySpanProcessor
from otel_reliability.telemetry.live import live_of
from otel_reliability.testing import FakeClock

RUN: Final = 16
"""Spans of one run."""


class Spans(NamedTuple):
    """What a host makes: runs of a root and some spans below it, each with its attributes."""

    root: str
    about: Mapping[str, Any]
    name: str
    attributes: Sequence[Mapping[str, Any]]


GENAI: Final = Spans(
    "invoke_agent agent",
    {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "agent"},
    "execute_tool search",
    [
        {
            "gen_ai.operation.name": "execute_tool", "gen_ai.agent.name": "agent", "gen_ai.tool.name": "search",
            "gen_ai.tool.call.id": f"call-{number}", "gen_ai.tool.call.arguments": f'{{"query": "refund {number}"}}',
            "gen_ai.request.model": "model-1", "gen_ai.usage.input_tokens": 100, "server.address": "localhost",
            "server.port": 443, "gen_ai.response.finish_reasons": ("stop",),
        }
        for number in range(1, RUN)
    ],
)  # fmt: skip
ORDINARY: Final = Spans(
    "GET",
    {},
    "GET /orders/{id}",
    [
        {
            "http.request.method": "GET", "url.scheme": "https", "url.path": f"/orders/{number}", "http.route": "/orders/{id}",
            "server.address": "localhost", "server.port": 443, "client.address": "10.0.0.7", "network.protocol.version": "1.1",
            "user_agent.original": "Mozilla/5.0", "http.response.status_code": 200,
        }
        for number in range(1, RUN)
    ],
)  # fmt: skip
SPANS: Final = CAPACITY // 2
"""Spans of one round: the queue is emptied before each, and is never full."""
SLICES: Final = 8
"""Into how many measurements a round of one thread is cut."""
THREADS: Final = 8
ROUNDS: Final = 31
NO_OP: Final = "with a no-op processor"
WITHOUT: Final = "without ours"
IN_TURNS: Final = f"slices of {SPANS // SLICES} spans in turns, each with the collection of its own young garbage"


class Encoding(SpanExporter):
    """What the OTLP exporter does, but for the network."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        encode_spans(spans).SerializeToString()
        return SpanExportResult.SUCCESS


def ours() -> ReliabilitySpanProcessor:
    """Our processor, with numbers that nobody collects by himself.

    Its clock stands still: where nobody collects, threads of the host work the queue off once a second, and on a busy machine a
    round may take longer.
    """
    clock = FakeClock()
    provider = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False, resource=Resource({}))
    shared = live_of(provider, None, lambda settings: Engine(settings, clock=clock, wall=clock.wall))
    return ReliabilitySpanProcessor(shared.settings, meter_provider=provider)


def tracing(*processors: SpanProcessor) -> TracerProvider:
    """An SDK with these processors."""
    provider = TracerProvider(shutdown_on_exit=False, resource=Resource({"service.name": "shop"}))
    for processor in processors:
        provider.add_span_processor(processor)
    return provider


def make(spans: Spans, tracer: Tracer, number: int) -> None:
    """So many spans, run by run."""
    start, (root, about, name, every) = tracer.start_span, spans
    for _ in range(number // RUN):
        with tracer.start_as_current_span(root, attributes=about):
            for attributes in every:
                start(name, attributes=attributes).end()


def alone(spans: Spans, *processors: SpanProcessor) -> Work:
    """One thread that makes a slice of spans."""
    tracer = tracing(*processors).get_tracer("agent")
    return lambda: make(spans, tracer, SPANS // SLICES)


def together(spans: Spans, *processors: SpanProcessor) -> Work:
    """A whole round of spans, by many threads at a time: in slices, it would be the threads that are measured."""
    tracer = tracing(*processors).get_tracer("agent")

    def work() -> None:
        threads = [Thread(target=make, args=(spans, tracer, SPANS // THREADS)) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return work


def rows() -> list[Row]:
    """The costs of the hooks, and of all of it."""
    processor, batch, beside = ours(), BatchSpanProcessor(Encoding()), BatchSpanProcessor(Encoding())

    def hooks(name: str, spans: Spans, at_most: float) -> Row:
        with_ours, without = alone(spans, processor), alone(spans, SpanProcessor())
        found = in_turns(with_ours, without, processor)
        return row(name, ratios(*found), against=f"{NO_OP}; {IN_TURNS}", at_most=at_most)

    def threads(name: str, at_most: float) -> Row:
        with_ours, without = together(GENAI, processor), together(GENAI, SpanProcessor())
        found = in_turns(with_ours, without, processor, slices=1)
        return row(name, ratios(*found), against=NO_OP, at_most=at_most)

    def exported(name: str, at_most: float | None, *, drained: bool) -> Row:
        with_ours, without = flushed(alone(GENAI, beside, processor), beside), flushed(alone(GENAI, batch), batch)
        found = in_turns(with_ours, without, processor, drained=drained)
        return row(name, ratios(*found), against=f"{WITHOUT}; {IN_TURNS}", at_most=at_most)

    every = [
        hooks("SDK start + end of a GenAI span of 10 attributes", GENAI, 1.15),
        hooks("SDK start + end of an ordinary span of 10 attributes", ORDINARY, 1.04),
        threads("the same of a GenAI span, 8 threads", 1.20),
        exported("BatchSpanProcessor + OTLP encoding + ours", 1.06, drained=False),
        exported("the same, our work worked off", None, drained=True),
    ]
    for one in (batch, beside, processor):
        one.shutdown()
    return every


def flushed(work: Work, batch: BatchSpanProcessor) -> Work:
    """A work, and the export of what it made."""

    def both() -> None:
        work()
        batch.force_flush()

    return both


def in_turns(
    work: Work,
    other: Work,
    processor: ReliabilitySpanProcessor,
    *,
    slices: int = SLICES,
    drained: bool = False,
    rounds: int = ROUNDS,
) -> tuple[list[float], list[float]]:
    """CPU seconds (of all threads) of both works in each round. `drained`: ours has its queue worked off in its own time."""
    found: tuple[list[float], list[float]] = ([], [])
    for warming in (work, other):
        warming()
    for turn in range(rounds):
        processor.force_flush()
        gc.collect()
        took = [0.0, 0.0]
        for at in range(slices):
            first = (turn + at) % 2
            for which in (first, 1 - first):
                took[which] += _timed((work, other)[which])
        if drained:
            took[0] += _timed(processor.force_flush)
        found[0].append(took[0])
        found[1].append(took[1])
    return found


def _timed(work: Work) -> float:
    began = time.process_time()
    work()
    gc.collect(0)
    return time.process_time() - began
