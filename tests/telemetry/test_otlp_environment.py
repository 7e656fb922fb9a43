from __future__ import annotations

import pytest

from otel_reliability.telemetry.otlp_environment import metrics_settings, resource_attributes

GENERAL = "OTEL_EXPORTER_OTLP_"
OWN = "OTEL_EXPORTER_OTLP_METRICS_"


def test_nobody_who_is_not_asked_sends() -> None:
    """The specification's default endpoint is our own receiver: without a word, nothing is sent."""
    assert "endpoint" not in metrics_settings({})
    assert "endpoint" not in metrics_settings({GENERAL + "ENDPOINT": "  "})


@pytest.mark.parametrize(
    ("env", "endpoint"),
    [
        ({GENERAL + "ENDPOINT": "http://box:4317"}, "http://box:4317"),
        ({GENERAL + "ENDPOINT": "http://box:4318", GENERAL + "PROTOCOL": "http/protobuf"}, "http://box:4318/v1/metrics"),
        ({GENERAL + "ENDPOINT": "http://box/otlp/", OWN + "PROTOCOL": "http/protobuf"}, "http://box/otlp/v1/metrics"),
        ({GENERAL + "ENDPOINT": "http://box:4318", OWN + "ENDPOINT": "http://own:1/x", GENERAL + "PROTOCOL": "http/protobuf"}, "http://own:1/x"),
        ({GENERAL + "ENDPOINT": "http://box:4317", "OTEL_METRICS_EXPORTER": "otlp, console"}, "http://box:4317"),
    ],
)  # fmt: skip
def test_the_endpoint_is_found_as_specified(env: dict[str, str], endpoint: str) -> None:
    """The one for metrics as it is; of the general one, over HTTP, the signal's path below it."""
    assert metrics_settings(env)["endpoint"] == endpoint


@pytest.mark.parametrize(
    "off", [{"OTEL_SDK_DISABLED": "true"}, {"OTEL_METRICS_EXPORTER": "none"}, {"OTEL_METRICS_EXPORTER": "prometheus"}]
)
def test_what_switches_metrics_off_switches_them_off(off: dict[str, str]) -> None:
    """As it would an SDK's."""
    assert metrics_settings({GENERAL + "ENDPOINT": "http://box:4317", **off}) == {}


def test_what_is_said_of_metrics_is_over_what_is_said_of_all() -> None:
    """Variable by variable; times are in milliseconds."""
    env = {
        GENERAL + "ENDPOINT": "http://box:4317",
        GENERAL + "HEADERS": "authorization=Bearer%20a%3D%3D,x=1",
        GENERAL + "COMPRESSION": "gzip",
        OWN + "COMPRESSION": "none",
        GENERAL + "TIMEOUT": "5000",
        OWN + "TEMPORALITY_PREFERENCE": "DELTA",
        OWN + "CERTIFICATE": "ca.pem",
        "OTEL_METRIC_EXPORT_INTERVAL": "1500",
    }

    assert metrics_settings(env) == {
        "endpoint": "http://box:4317",
        "protocol": "grpc",
        "headers": {"authorization": "Bearer a==", "x": "1"},
        "compression": "none",
        "timeout": 5.0,
        "interval": 1.5,
        "temporality": "delta",
        "ca": "ca.pem",
    }


def test_nonsense_is_not_said() -> None:
    """A time that is no number, a header without a value: as if they were not there."""
    env = {GENERAL + "ENDPOINT": "http://box:4317", GENERAL + "TIMEOUT": "soon", GENERAL + "HEADERS": "x,,=y"}

    assert metrics_settings(env) == {"endpoint": "http://box:4317", "protocol": "grpc"}


def test_our_resource_is_told_by_the_usual_variables() -> None:
    """`OTEL_SERVICE_NAME` is over the name in `OTEL_RESOURCE_ATTRIBUTES`."""
    env = {"OTEL_RESOURCE_ATTRIBUTES": "service.name=one,service.instance.id=7,k=a%2Cb", "OTEL_SERVICE_NAME": "two"}

    assert resource_attributes(env) == {"service.name": "two", "service.instance.id": "7", "k": "a,b"}
    assert resource_attributes({}) == {}
