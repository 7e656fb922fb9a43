"""Measures what our hooks cost beside the SDK: a process of its own, for coverage would count our lines and not the SDK's."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from otel_reliability.processor import ReliabilitySpanProcessor
from tests.telemetry.meters import Meters
from tests.telemetry.spans import ended, provider

GENAI = {
    "gen_ai.operation.name": "execute_tool", "gen_ai.agent.name": "agent", "gen_ai.tool.name": "search",
    "gen_ai.tool.call.id": "call-1", "gen_ai.tool.call.arguments": '{"query": "refund"}', "gen_ai.request.model": "model-1",
    "gen_ai.usage.input_tokens": 100, "server.address": "localhost", "server.port": 443,
    "gen_ai.response.finish_reasons": ("stop",),
}  # fmt: skip
ORDINARY = {f"http.key.{number}": f"value {number}" for number in range(10)}
SPANS, ROUNDS = 800, 20


class Encoding(SpanExporter):
    """What the OTLP exporter does, but for the network."""

    def export(self, spans: object) -> SpanExportResult:
        encode_spans(spans).SerializeToString()  # pyright: ignore[reportArgumentType]
        return SpanExportResult.SUCCESS


def hooks() -> Callable[[ReadableSpan], None]:
    """Our hooks, with an empty queue behind them at every round, and a span like those before."""
    processor = ReliabilitySpanProcessor(meter_provider=Meters().provider)

    def work(span: ReadableSpan) -> None:
        processor.restart()
        processor.on_start(span)
        processor.on_end(span)
        processor._queue.since = 0
        processor._check_after(0)
        for _ in range(SPANS):
            processor.on_start(span)
            processor.on_end(span)

    return work


def quickest(*works: Callable[[], object]) -> list[float]:
    """The CPU time that each of these took at its quickest, taken in turns: what else the machine does hits all alike."""
    found = [float("inf")] * len(works)
    for _ in range(ROUNDS):
        for at, work in enumerate(works):
            began = time.process_time()
            work()
            found[at] = min(found[at], time.process_time() - began)
    return found


def host(processor: SpanProcessor, attributes: dict[str, object]) -> Callable[[], None]:
    """A host that makes so many spans."""
    tracing = provider(processor)
    tracer = tracing.get_tracer("test")

    def work() -> None:
        with tracer.start_as_current_span("parent"):
            for _ in range(SPANS):
                tracer.start_span("execute_tool search", attributes=attributes).end()  # pyright: ignore[reportArgumentType]
        tracing.force_flush()

    return work


def main() -> None:
    """Print, as JSON, the cost of our hooks as a share of what a host does anyway."""
    both, batch = hooks(), BatchSpanProcessor(Encoding())
    shares: dict[str, float] = {}
    for kind, name, attributes, beside in (
        ("an agent's span", "execute_tool search", GENAI, SpanProcessor()),
        ("an ordinary span", "GET", ORDINARY, SpanProcessor()),
        ("an exporting pipeline", "execute_tool search", GENAI, batch),
    ):
        span = ended(dict(attributes), name)
        ours, theirs = quickest(partial(both, span), host(beside, dict(attributes)))
        shares[kind] = ours / theirs
    batch.shutdown()
    print(json.dumps(shares))


if __name__ == "__main__":
    main()
