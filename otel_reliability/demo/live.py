"""The demo's process: an SDK with our processor in it, a reader of its metrics, and a file of its spans."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from otel_reliability.config import MetricSettings, Settings, WindowSettings
from otel_reliability.demo.fleet import LETTERS, RUNS, perform
from otel_reliability.demo.stage import SeededIds, Stage
from otel_reliability.processor import ReliabilitySpanProcessor
from otel_reliability.sources import sdk
from otel_reliability.sources.otlp_write import traces_json

SETTINGS: Final = Settings(windows=(WindowSettings(last=RUNS * LETTERS),), metrics=MetricSettings(min_runs=2))
"""Every run counts. Equal for both doors, so that their numbers can be compared."""
RESOURCE: Final = {"service.namespace": "demo", "service.name": "bookshop", "deployment.environment.name": "demo"}
SPANS_A_LINE: Final = 50

Numbers: TypeAlias = dict[tuple[str, frozenset[tuple[str, object]]], float]
"""Values by the name of the metric and its attributes."""


class SpanFile(SpanExporter):
    """Keeps spans and writes them as OTLP-JSON lines, as the Collector's file exporter does."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._spans: list[ReadableSpan] = []

    @property
    def spans(self) -> int:
        """How many there are."""
        return len(self._spans)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._spans.extend(spans)
        return SpanExportResult.SUCCESS

    def write(self) -> None:
        """Write the file."""
        raw = map(sdk.read, self._spans)
        with self._path.open("w", encoding="utf-8") as file:
            while line := list(islice(raw, SPANS_A_LINE)):
                file.write(json.dumps(traces_json(line)) + "\n")


def perform_live(path: Path, seed: int) -> tuple[Numbers, int]:
    """Let the fleet act, leave its spans in the file, and give what the metrics say, and how many spans there were.

    Nothing here is global: neither provider is set for the process.
    """
    reader, file, dice = InMemoryMetricReader(), SpanFile(path), random.Random(seed)
    meters = MeterProvider([reader], resource=Resource(RESOURCE))
    tracers = TracerProvider(sampler=ALWAYS_ON, resource=Resource(RESOURCE), id_generator=SeededIds(dice))
    tracers.add_span_processor(ReliabilitySpanProcessor(SETTINGS, meter_provider=meters))
    tracers.add_span_processor(SimpleSpanProcessor(file))
    perform(Stage(tracers.get_tracer("otel_reliability.demo"), dice))
    tracers.force_flush()
    numbers = dict(_numbers(reader))
    file.write()
    tracers.shutdown()
    meters.shutdown()
    return numbers, file.spans


def of_agent(numbers: Numbers, agent: str) -> Mapping[str, float]:
    """The numbers of one agent that nothing but the agent tells apart."""
    alone = {**RESOURCE, "gen_ai.agent.name": agent}.items()
    return {name: value for (name, attributes), value in numbers.items() if attributes == alone}


def _numbers(reader: InMemoryMetricReader) -> Iterator[tuple[tuple[str, frozenset[tuple[str, object]]], float]]:
    """Every gauge and counter of the last collection; histograms apart."""
    collected = reader.get_metrics_data()
    if collected is None:
        return
    for resource in collected.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                for point in metric.data.data_points:
                    if isinstance(point, NumberDataPoint):
                        yield (metric.name, frozenset((point.attributes or {}).items())), float(point.value)
