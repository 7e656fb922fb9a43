"""What OpenTelemetry's own variables say of where metrics go.

Source: OpenTelemetry specification, "OTLP Exporter Configuration" and "Environment Variable Specification". Times are in
milliseconds, as specified.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

_GENERAL: Final = "OTEL_EXPORTER_OTLP_"
_OF_METRICS: Final = "OTEL_EXPORTER_OTLP_METRICS_"
_PROTOCOLS: Final = {"grpc": "grpc", "http/protobuf": "http/protobuf", "http/json": "http/protobuf"}


def metrics_settings(env: Mapping[str, str]) -> dict[str, Any]:
    """Settings of a push by name, as far as they are said; no `endpoint`: nobody asks for one.

    >>> found = metrics_settings(
    ...     {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://box:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
    ... )
    >>> found["endpoint"], found["protocol"]
    ('http://box:4318/v1/metrics', 'http/protobuf')
    """
    given = {key: value.strip() for key, value in env.items() if value.strip()}
    if given.get("OTEL_SDK_DISABLED", "").lower() == "true" or _goes_elsewhere(
        given.get("OTEL_METRICS_EXPORTER", "otlp")
    ):
        return {}
    protocol = _PROTOCOLS.get(_said(given, "PROTOCOL") or "grpc", "grpc")
    found: dict[str, Any] = {
        "endpoint": _endpoint(given, protocol),
        "protocol": protocol,
        "headers": _headers(_said(given, "HEADERS") or ""),
        "compression": _said(given, "COMPRESSION"),
        "timeout": _seconds(_said(given, "TIMEOUT")),
        "interval": _seconds(given.get("OTEL_METRIC_EXPORT_INTERVAL")),
        "temporality": given.get(_OF_METRICS + "TEMPORALITY_PREFERENCE", "").lower(),
        "ca": _said(given, "CERTIFICATE"),
        "certificate": _said(given, "CLIENT_CERTIFICATE"),
        "key": _said(given, "CLIENT_KEY"),
    }
    return {key: value for key, value in found.items() if value}


def resource_attributes(env: Mapping[str, str]) -> dict[str, str]:
    """The attributes that `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME` give our own resource.

    >>> resource_attributes({"OTEL_RESOURCE_ATTRIBUTES": "team=a%20b,broken", "OTEL_SERVICE_NAME": "here"})
    {'team': 'a b', 'service.name': 'here'}
    """
    found = _headers(env.get("OTEL_RESOURCE_ATTRIBUTES", ""))
    name = env.get("OTEL_SERVICE_NAME", "").strip()
    return {**found, "service.name": name} if name else found


def _goes_elsewhere(exporters: str) -> bool:
    return "otlp" not in {one.strip() for one in exporters.split(",")}


def _said(given: Mapping[str, str], name: str) -> str | None:
    return given.get(_OF_METRICS + name) or given.get(_GENERAL + name)


def _endpoint(given: Mapping[str, str], protocol: str) -> str | None:
    """The one for metrics as it is; of the general one, over HTTP, the path of the signal below it."""
    own = given.get(_OF_METRICS + "ENDPOINT")
    base = given.get(_GENERAL + "ENDPOINT")
    if own is not None or base is None:
        return own
    return f"{base.rstrip('/')}/v1/metrics" if protocol != "grpc" else base


def _headers(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text.split(","))
    return {unquote(key.strip()): unquote(value.strip()) for key, found, value in pairs if found and key.strip()}


def _seconds(text: str | None) -> float | None:
    return int(text) / 1e3 if text is not None and text.isascii() and text.isdigit() else None
