"""An engine with recorded runs of several agents; and their numbers in each format, as plain
values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any, Final, NamedTuple, TypeAlias, cast

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import HistogramDataPoint, Metric, NumberDataPoint
from prometheus_client import parser as text_parser
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.openmetrics import parser as openmetrics_parser

from otel_reliability.config import Settings
from otel_reliability.engine import Engine
from otel_reliability.model.run import CloseReason, Run
from otel_reliability.model.span import RawSpan
from otel_reliability.telemetry.exposition import Exposition, Registry
from otel_reliability.telemetry.ledger import ToolLedger
from otel_reliability.telemetry.recorder import Recorder, readings_of
from otel_reliability.testing import FakeClock
from tests.report.build import chat, run_spans

Labels: TypeAlias = frozenset[tuple[str, Any]]
Numbers: TypeAlias = dict[tuple[str, Labels], Any]
Histogram: TypeAlias = tuple[int, float, tuple[float, ...], tuple[int, ...]]
"""Count, sum, bounds, buckets."""

RESOURCE: Final = {"service.name": "otel-reliability", "service.instance.id": "test"}
TOOLS: Final = ("search", "book", "cancel_order", "refund")
LIMIT: Final = {"reliability.context_limit": 1000}


def spans_of(agent: str, runs: int, first: int) -> list[RawSpan]:
    """Runs of one agent that differ in path, retries, tokens and outcome."""
    found: list[RawSpan] = []
    for number in range(runs):
        path = [TOOLS[(number + step) % 4 if number % 3 else 0] for step in range(number % 4 + 1)]
        known: dict[str, Any] = {"success": number % 4 != 0, "session": f"{agent}-{number // 3}"}
        failed = "" if number % 3 else TOOLS[0]
        found += run_spans(
            first + number, " ".join(path), agent=agent, failed=failed, **known, notes=LIMIT
        )
        tokens = 100 * (number % 7)
        found.append(
            chat(
                first + number, tokens, gen_ai__request__model="m", gen_ai__usage__output_tokens=10
            )
        )
    return found


class Recorded(NamedTuple):
    """An engine, its registry, and the stream that writers read."""

    engine: Engine
    registry: Registry
    exposition: Exposition
    clock: FakeClock
    runs: list[Run]
    recorder: Recorder

    def record(self, runs: list[Run]) -> None:
        self.recorder.record(runs, readings_of(runs, self.engine.view))


def recorded(
    *agents: str, runs: int = 12, settings: Settings | None = None, own: Iterable[Any] = ()
) -> Recorded:
    """Each agent with so many runs, all final and recorded."""
    clock = FakeClock(100.0)
    engine = Engine(settings or Settings(), clock=clock, wall=clock.wall, places_return=True)
    for at, agent in enumerate(agents):
        engine.receive(spans_of(agent, runs, 1 + 100 * at))
    engine.flush(CloseReason.SHUTDOWN)
    registry = Registry(clock.wall)
    points = list(own)
    recorder = Recorder(registry, engine.settings, ToolLedger(engine.settings, 1_000))
    exposition = Exposition(lambda: [(engine, registry)], lambda: points)
    found = Recorded(engine, registry, exposition, clock, engine.take_final(), recorder)
    found.record(found.runs)
    recorder.score(engine.take_scored())
    return found


# --- OTLP -----------------------------------------------------------------------------------------


def metrics_of(bodies: Iterable[bytes]) -> list[Metric]:
    requests = (ExportMetricsServiceRequest.FromString(body) for body in bodies)
    return [
        metric
        for request in requests
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    ]


def points_of(metric: Metric) -> list[NumberDataPoint] | list[HistogramDataPoint]:
    data: Any = getattr(metric, metric.WhichOneof("data") or "")
    return list(data.data_points)


def attributes_of(point: NumberDataPoint | HistogramDataPoint) -> Labels:
    return frozenset(
        (pair.key, getattr(pair.value, pair.value.WhichOneof("value") or ""))
        for pair in point.attributes
    )


def value_of(point: NumberDataPoint | HistogramDataPoint) -> Any:
    if isinstance(point, HistogramDataPoint):
        return point.count, point.sum, tuple(point.explicit_bounds), tuple(point.bucket_counts)
    return getattr(point, point.WhichOneof("value") or "")


def otlp_numbers(bodies: Iterable[bytes]) -> Numbers:
    """Every number of OTLP requests. A series stands in them once."""
    found: Numbers = {}
    for metric in metrics_of(bodies):
        for point in points_of(metric):
            key = (metric.name, attributes_of(point))
            assert key not in found, f"{key} stands twice"
            found[key] = value_of(point)
    return found


# --- Prometheus -----------------------------------------------------------------------------------


def families_of(text: str) -> list[Family]:
    """What the parsers of `prometheus_client` make of a text."""
    parser: Any = openmetrics_parser if text.endswith("# EOF\n") else text_parser
    return list(parser.text_string_to_metric_families(text))


def prometheus_numbers(text: str) -> Numbers:
    """Every sample of a text, by name and labels; a series stands in it once."""
    found: Numbers = {}
    for family in families_of(text):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, f"{key} stands twice"
            found[key] = sample.value
    return found


def translated(numbers: Numbers, units: Mapping[str, str], counters: frozenset[str]) -> Numbers:
    """OTLP numbers under the names that Prometheus gives them, by the rules of OpenTelemetry's
    specification.
    """
    found: Numbers = {}
    for (name, attributes), value in numbers.items():
        family = name.replace(".", "_")
        if units[name] == "s" and "seconds" not in family.split("_"):
            family += "_seconds"
        labels = frozenset(
            (key.replace(".", "_"), str(each).lower() if isinstance(each, bool) else each)
            for key, each in attributes
        )
        if isinstance(value, tuple):
            found.update(_translated_histogram(family, labels, cast("Histogram", value)))
        else:
            found[f"{family}_total" if name in counters else family, labels] = value
    return found


def _translated_histogram(family: str, labels: Labels, histogram: Histogram) -> Numbers:
    count, total, bounds, buckets = histogram
    names = (*(f"{bound:g}" for bound in bounds), "+Inf")
    below = zip(names, accumulate(buckets), strict=True)
    return {
        **{(f"{family}_bucket", labels | {("le", name)}): number for name, number in below},
        (f"{family}_count", labels): count,
        (f"{family}_sum", labels): total,
    }
