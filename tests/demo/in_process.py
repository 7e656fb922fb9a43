"""The other door, beside the service: our span processor within the agents' process, and what its meter tells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint
from opentelemetry.sdk.resources import Resource

from otel_reliability.config import Settings
from otel_reliability.processor import ReliabilitySpanProcessor
from tests.demo.fleet import RESOURCE
from tests.demo.scrape import SPECS, Labels, Samples, series_of


class InProcess:
    """A span processor of ours with a MeterProvider of its own."""

    def __init__(self, settings: Settings) -> None:
        self._reader = InMemoryMetricReader()
        self._meters = MeterProvider([self._reader], resource=Resource(RESOURCE), shutdown_on_exit=False)
        self.processor = ReliabilitySpanProcessor(settings, meter_provider=self._meters)

    def numbers(self) -> Samples:
        """All gauges and counters of agents, with every run closed, under the names of Prometheus."""
        self.processor.force_flush()
        return dict(self._points())

    def close(self) -> None:
        """No spans come any more."""
        self._meters.shutdown()

    def _points(self) -> Iterator[tuple[tuple[str, Labels], float]]:
        collected = self._reader.get_metrics_data()
        for resource in collected.resource_metrics if collected is not None else ():
            for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                for point in metric.data.data_points if metric.name in SPECS else ():
                    if isinstance(point, NumberDataPoint):
                        attributes = cast("dict[str, str | bool]", dict(point.attributes or {}))
                        yield series_of(SPECS[metric.name], attributes), float(point.value)
