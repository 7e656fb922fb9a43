"""What our hooks cost in the process of an agent, beside what the SDK costs anyway.

The hooks take what is needed and leave; it is read later, when metrics are collected. Both are told: the hooks by themselves,
which is what the agent's threads pay, and all of it worked off, which is what its process pays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Thread
from typing import Any, Final, NamedTuple

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Tracer

from benchmarks.measure import Row, Work, ratios, row, seconds
from otel_reliability.processor import CAPACITY, ReliabilitySpanProcessor

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
"""Spans of one measurement: the queue is emptied before each, and is never full."""
THREADS: Final = 8
ROUNDS: Final = 15
NO_OP: Final = "with a no-op processor"


class Encoding(SpanExporter):
    """What the OTLP exporter does, but for the network."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        encode_spans(spans).SerializeToString()
        return SpanExportResult.SUCCESS


def ours() -> ReliabilitySpanProcessor:
    """Our processor, with numbers that nobody collects by himself."""
    return ReliabilitySpanProcessor(
        meter_provider=MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False, resource=Resource({}))
    )


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
    """One thread that makes spans."""
    tracer = tracing(*processors).get_tracer("agent")
    return lambda: make(spans, tracer, SPANS)


def together(spans: Spans, *processors: SpanProcessor) -> Work:
    """As many spans by many threads at a time."""
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
    every = (
        _row("SDK start + end of a GenAI span of 10 attributes", alone, GENAI, processor, NO_OP, 1.15),
        _row("SDK start + end of an ordinary span of 10 attributes", alone, ORDINARY, processor, NO_OP, 1.04),
        _row("the same of a GenAI span, 8 threads", together, GENAI, processor, NO_OP, 1.20),
        _exported("BatchSpanProcessor + OTLP encoding + ours", processor, batch, beside, 1.06, drained=False),
        _exported("the same, our work worked off", processor, batch, beside, None, drained=True),
    )
    for one in (batch, beside, processor):
        one.shutdown()
    return list(every)


def _row(
    name: str,
    host: Callable[..., Work],
    spans: Spans,
    processor: ReliabilitySpanProcessor,
    against: str,
    at_most: float,
) -> Row:
    with_ours, without = host(spans, processor), host(spans, SpanProcessor())
    return _measured(name, with_ours, without, processor, against, at_most)


def _exported(
    name: str,
    processor: ReliabilitySpanProcessor,
    batch: BatchSpanProcessor,
    beside: BatchSpanProcessor,
    at_most: float | None,
    *,
    drained: bool,
) -> Row:
    with_both, with_batch = alone(GENAI, beside, processor), alone(GENAI, batch)

    def with_ours() -> None:
        with_both()
        beside.force_flush()
        if drained:
            processor.force_flush()

    def without() -> None:
        with_batch()
        batch.force_flush()

    return _measured(name, with_ours, without, processor, "without ours", at_most)


def _measured(
    name: str, work: Work, other: Work, processor: ReliabilitySpanProcessor, against: str, at_most: float | None
) -> Row:
    found = seconds(work, other, rounds=ROUNDS, calls=1, between=processor.force_flush)
    return row(name, ratios(*found), against=against, at_most=at_most)
