from __future__ import annotations

from otel_reliability.service.outward import push_plan
from otel_reliability.service.settings import PushSettings
from otel_reliability.telemetry.otlp import Target

ENV = {
    "OTEL_EXPORTER_OTLP_ENDPOINT": "http://env:4318",
    "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    "OTEL_EXPORTER_OTLP_HEADERS": "x=1",
    "OTEL_METRIC_EXPORT_INTERVAL": "5000",
}


def test_nothing_is_sent_unless_somebody_says_where() -> None:
    """No endpoint, no push."""
    assert push_plan(PushSettings(interval=5.0), {}) is None


def test_our_settings_are_over_opentelemetry_s_variables() -> None:
    """Those are meant for all programs of a host, these for this one."""
    plan = push_plan(PushSettings(interval=7.0, compression="none", temporality="delta"), ENV)

    assert plan is not None
    assert plan.target == Target("http://env:4318/v1/metrics", "http/protobuf", {"x": "1"}, "none")
    assert (plan.interval, plan.temporality) == (7.0, "delta")


def test_an_endpoint_of_ours_brings_its_own_protocol() -> None:
    """What the environment says of another endpoint does not make ours speak HTTP."""
    plan = push_plan(PushSettings(endpoint="http://ours:4317"), ENV)

    assert plan is not None
    assert (plan.target.endpoint, plan.target.protocol) == ("http://ours:4317", "grpc")
