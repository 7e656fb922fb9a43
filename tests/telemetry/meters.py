"""A MeterProvider that a test reads, and what it says, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    HistogramDataPoint,
    InMemoryMetricReader,
    Metric,
    NumberDataPoint,
)

from otel_reliability.config import Settings
from otel_reliability.engine import Engine
from otel_reliability.telemetry.live import Live, live_of
from otel_reliability.testing import FakeClock

Labels = Mapping[str, Any]


class Meters:
    """A provider without a resource of its own making, and its reader. Every look is one
    collection.
    """

    def __init__(self) -> None:
        self.reader = InMemoryMetricReader()
        self.provider = MeterProvider([self.reader], shutdown_on_exit=False)

    def metrics(self) -> dict[str, Metric]:
        data = self.reader.get_metrics_data()
        if data is None:
            return {}
        scopes = (scope for resource in data.resource_metrics for scope in resource.scope_metrics)
        return {metric.name: metric for scope in scopes for metric in scope.metrics}

    def look(self) -> Collected:
        return Collected(self.metrics())


class Collected(NamedTuple):
    """The data points of one collection."""

    metrics: Mapping[str, Metric]

    def points(self, name: str) -> list[Any]:
        """The data points of an instrument, by the names that this package gives them, without the
        leading namespaces.
        """
        for full in (name, "agent.reliability." + name, "otel_reliability." + name):
            if full in self.metrics:
                return list(self.metrics[full].data.data_points)
        return []

    def value(self, name: str, **labels: Any) -> float | int | None:
        wanted = {key.replace("__", "."): value for key, value in labels.items()}
        found = [
            point for point in self.points(name) if wanted.items() <= dict(point.attributes).items()
        ]
        if len(found) > 1:  # outcomes begin at 0 with the first run
            found = [point for point in found if number(point)] or found[:1]
        assert len(found) <= 1, (
            f"several points of {name}: {[dict(point.attributes) for point in found]}"
        )
        return number(found[0]) if found else None

    def values(self, name: str, label: str) -> dict[Any, float | int]:
        return {point.attributes.get(label): number(point) for point in self.points(name)}


def live_with_clock(settings: Settings | None = None) -> tuple[Live, Meters, FakeClock]:
    """An engine in process, what it tells, and the clock to wind."""
    meters = Meters()
    clock = FakeClock()
    return (
        live_of(
            meters.provider, settings, lambda found: Engine(found, clock=clock, wall=clock.wall)
        ),
        meters,
        clock,
    )


def number(point: NumberDataPoint | HistogramDataPoint) -> float | int:
    return point.count if isinstance(point, HistogramDataPoint) else point.value
