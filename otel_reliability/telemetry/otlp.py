"""OTLP push: the service's numbers as the SDK's `MetricsData`, and the SDK's own reader and
exporters that send them.

Endpoints, headers, TLS, compression, temporality, interval and retries follow OpenTelemetry's
environment variables.
"""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit, urlunsplit

from opentelemetry import metrics as api
from opentelemetry.sdk.metrics import Counter, Exemplar, Histogram, MeterProvider
from opentelemetry.sdk.metrics import export as sdk
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    MetricExporter,
    MetricExportResult,
    MetricsData,
)
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from otel_reliability.telemetry import names
from otel_reliability.telemetry.exposition import (
    GAUGES,
    OWN,
    SPECS,
    CounterSeries,
    Exposition,
    Labels,
    Series,
)
from otel_reliability.telemetry.exposition import Exemplar as RunExemplar
from otel_reliability.telemetry.instruments import Observed, snapshot
from otel_reliability.telemetry.names import Instrument

MAX_POINTS: Final = 2_000
"""Data points of one request: with long names and exemplars below the 4 MB that gRPC receivers
accept by default.
"""

Protocol: TypeAlias = Literal["grpc", "http/protobuf"]
Totals: TypeAlias = tuple[int, Sequence[int], float]
"""When a series was exported, its value or its buckets, and their sum."""

_SCOPE: Final = InstrumentationScope(names.SCOPE)
_CLASSES: Final[Mapping[str, type]] = {"counter": Counter, "histogram": Histogram}


class AgentMetrics:
    """Converts an exposition's gauges and series to metrics of the SDK, for one receiver.

    `temporality` is the receiver's, by class of instrument. For delta it keeps what was exported
    last.
    """

    def __init__(
        self,
        exposition: Exposition,
        temporality: Mapping[type, AggregationTemporality] | None = None,
    ) -> None:
        self._exposition = exposition
        self._temporality: Mapping[type, AggregationTemporality] = temporality or {}
        self._exported: dict[tuple[str, Labels], Totals] = {}
        self._last_ns = 0

    def collect(self, now_ns: int) -> list[sdk.Metric]:
        """Return all metrics of agents as of now (Unix nanoseconds)."""
        points: defaultdict[str, list[Any]] = defaultdict(list)
        for some in self._exposition.gauges():
            for name, value, attributes in chain.from_iterable(
                gauges.full_points() for gauges in some
            ):
                points[name].append(sdk.NumberDataPoint(attributes, 0, now_ns, value))
        before = self._exported
        self._exported = {}
        for spec, some in self._exposition.series(
            partial(self._point, now_ns=now_ns, before=before)
        ):
            points[spec.name].extend(point for point in some if point is not None)
        self._last_ns = now_ns
        return [
            self._metric(spec, points[name])
            for name, spec in {**GAUGES, **SPECS}.items()
            if points[name]
        ]

    def _metric(self, spec: Instrument, points: Sequence[Any]) -> sdk.Metric:
        if spec.kind == "gauge":
            data = sdk.Gauge(points)
        elif spec.kind == "histogram":
            data = sdk.Histogram(points, self._temporality_of(spec))
        else:
            data = sdk.Sum(points, self._temporality_of(spec), is_monotonic=True)
        return sdk.Metric(spec.name, spec.description, spec.unit, data)

    def _temporality_of(self, spec: Instrument) -> AggregationTemporality:
        return self._temporality.get(_CLASSES[spec.kind], AggregationTemporality.CUMULATIVE)

    def _point(
        self,
        spec: Instrument,
        labels: Labels,
        series: Series,
        *,
        now_ns: int,
        before: Mapping[tuple[str, Labels], Totals],
    ) -> sdk.NumberDataPoint | sdk.HistogramDataPoint | None:
        """Return the point of a series; None where only what is new is exported, and nothing is."""
        counter = isinstance(series, CounterSeries)
        counts = [series.value] if counter else list(series.counts)
        start_ns = series.start_ns
        total = 0.0 if counter else series.total
        delta = self._temporality_of(spec) is AggregationTemporality.DELTA
        if delta:
            self._exported[spec.name, labels] = (now_ns, counts, total)
            old_ns, old, old_total = before.get((spec.name, labels), (0, [0] * len(counts), 0.0))
            if old_ns >= start_ns:  # else it is a new series of an agent that expired and returned
                start_ns = old_ns
                total = total - old_total
                counts = [count - known for count, known in zip(counts, old, strict=True)]
            if not any(counts):
                return None
        if isinstance(series, CounterSeries):
            return sdk.NumberDataPoint(
                dict(labels), start_ns, now_ns, counts[0], self._new(series.exemplar)
            )
        # The extremes are those since the series' start, so a point of what is new has none.
        lowest: Any = None if delta else series.lowest
        highest: Any = None if delta else series.highest
        return sdk.HistogramDataPoint(
            dict(labels),
            start_ns,
            now_ns,
            sum(counts),
            total,
            counts,
            spec.boundaries,
            lowest,
            highest,
            self._new(*series.exemplars),
        )

    def _new(self, *exemplars: RunExemplar | None) -> list[Exemplar]:
        """Return the exemplars that were recorded since the last collection."""
        return [
            Exemplar(
                {},
                one.value,
                one.time_ns,
                int.from_bytes(one.span_id),
                int.from_bytes(one.trace_id),
            )
            for one in exemplars
            if one is not None and one.time_ns > self._last_ns
        ]


def batches(
    metrics: Iterable[sdk.Metric], resource: Resource, max_points: int = MAX_POINTS
) -> Iterator[MetricsData]:
    """Yield metrics of one resource, under our scope, in parts of up to
    `max_points` data points.
    """
    part: list[sdk.Metric] = []
    size = 0
    for metric in metrics:
        points: Sequence[Any] = metric.data.data_points
        at = 0
        while at < len(points):
            some = points[at : at + max_points - size]
            part.append(replace(metric, data=replace(metric.data, data_points=some)))
            at = at + len(some)
            size = size + len(some)
            if size >= max_points:
                yield _metrics_data(part, resource)
                part = []
                size = 0
    if part:
        yield _metrics_data(part, resource)


def _metrics_data(metrics: Sequence[sdk.Metric], resource: Resource) -> MetricsData:
    return MetricsData([sdk.ResourceMetrics(resource, [sdk.ScopeMetrics(_SCOPE, metrics, "")], "")])


def requests(
    metrics: Sequence[sdk.Metric], resource: Mapping[str, str], max_points: int = MAX_POINTS
) -> Iterator[bytes]:
    """Yield metrics as OTLP requests of up to `max_points` data points."""
    from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics  # noqa: PLC0415  large

    for batch in batches(metrics, Resource(dict(resource)), max_points):
        yield encode_metrics(batch).SerializeToString()


class _Exporter(MetricExporter):
    """An exporter that adds the metrics of agents to those that the SDK collected, and exports all
    in batches.

    `outcomes`, the number of requests by result (`accepted`, `failed`), and `duration`, the seconds
    that the last export took, are self-telemetry.
    """

    def __init__(self, exporter: Any, exposition: Exposition) -> None:
        # What its readers ask an exporter for: the SDK keeps it under private names.
        super().__init__(exporter._preferred_temporality, exporter._preferred_aggregation)
        self.outcomes: Tally[str] = Tally()
        self.duration = 0.0
        self._exporter = exporter
        self._agents = AgentMetrics(exposition, exporter._preferred_temporality)

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any
    ) -> MetricExportResult:
        (collected,) = metrics_data.resource_metrics
        own = (metric for scope in collected.scope_metrics for metric in scope.metrics)
        agents = self._agents.collect(time.time_ns())
        began = time.monotonic()
        result = MetricExportResult.SUCCESS
        for batch in batches([*own, *agents], collected.resource):
            if (
                self._exporter.export(batch, timeout_millis=timeout_millis, **kwargs)
                is MetricExportResult.SUCCESS
            ):
                self.outcomes["accepted"] += 1
            else:
                self.outcomes["failed"] += 1
                result = MetricExportResult.FAILURE
                break  # what is left is exported next time, as are totals
        self.duration = time.monotonic() - began
        return result

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return self._exporter.force_flush(timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        self._exporter.shutdown(timeout_millis=timeout_millis)


class OtlpPush:
    """Exports an exposition periodically, on a thread of the SDK's, and once more at the end.

    `endpoint` and `protocol` take precedence over OpenTelemetry's environment variables.
    """

    def __init__(
        self,
        exposition: Exposition,
        resource: Mapping[str, str],
        *,
        endpoint: str | None = None,
        protocol: Protocol = "grpc",
    ) -> None:
        self.exporter = _Exporter(_sdk_exporter(endpoint, protocol), exposition)
        reader = sdk.PeriodicExportingMetricReader(self.exporter)
        self._provider = MeterProvider([reader], Resource(dict(resource)), shutdown_on_exit=False)
        meter: api.Meter = self._provider.get_meter(names.SCOPE)
        self._observed = Observed(meter, tuple(OWN.values()), lambda: snapshot(exposition.own()))

    def stop(self, timeout: float) -> None:
        """Export once more and end, within so many seconds."""
        self._provider.shutdown(timeout * 1e3)


def _sdk_exporter(endpoint: str | None, protocol: Protocol) -> MetricExporter:
    """Return the SDK's exporter, imported only here: gRPC and requests are large."""
    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter  # noqa: PLC0415

        return OTLPMetricExporter(endpoint)
    from opentelemetry.exporter.otlp.proto.http import metric_exporter as http  # noqa: PLC0415

    return http.OTLPMetricExporter(None if endpoint is None else http_endpoint(endpoint))


def http_endpoint(endpoint: str) -> str:
    """Return the URL for metrics: the path of the signal is added where there is none.

    >>> http_endpoint("http://box:4318"), http_endpoint("http://box/own")
    ('http://box:4318/v1/metrics', 'http://box/own')
    """
    parts = urlsplit(endpoint)
    return endpoint if parts.path.strip("/") else urlunsplit(parts._replace(path="/v1/metrics"))


def resource_attributes() -> dict[str, str]:
    """Return the attributes of `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME`."""
    return {key: str(value) for key, value in OTELResourceDetector().detect().attributes.items()}


def is_push_configured(endpoint: str | None, env: Mapping[str, str]) -> bool:
    """Return whether an endpoint is named, and OpenTelemetry's variables do not switch its use off.

    >>> env = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://box:4317"}
    >>> (
    ...     is_push_configured(None, env),
    ...     is_push_configured(None, {**env, "OTEL_METRICS_EXPORTER": "none"}),
    ... )
    (True, False)
    """
    if endpoint is not None:
        return True
    disabled = env.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    exporters = {
        one.strip() for one in (env.get("OTEL_METRICS_EXPORTER", "").strip() or "otlp").split(",")
    }
    return (
        not disabled
        and "otlp" in exporters
        and any(env.get(name, "").strip() for name in _ENDPOINTS)
    )


def protocol_of(env: Mapping[str, str]) -> Protocol:
    """Return the protocol that OpenTelemetry's variables name; gRPC where they name none.

    >>> protocol_of({"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"})
    'http/protobuf'
    """
    found = next((value for name in _PROTOCOLS if (value := env.get(name, "").strip())), "grpc")
    return "grpc" if found == "grpc" else "http/protobuf"


_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
