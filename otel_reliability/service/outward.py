"""Where metrics are sent: settings, with OpenTelemetry's own variables beneath them, → a target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from otel_reliability.service.settings import PushSettings
from otel_reliability.telemetry.otlp import Target
from otel_reliability.telemetry.otlp_cells import Temporality
from otel_reliability.telemetry.otlp_environment import metrics_settings

INTERVAL: Final = 60.0


class PushPlan(NamedTuple):
    """Where metrics go, how often, and how."""

    target: Target
    interval: float
    temporality: Temporality


def push_plan(settings: PushSettings, env: Mapping[str, str]) -> PushPlan | None:
    """What settings and environment ask for; None where nobody names an endpoint."""
    said: dict[str, Any] = metrics_settings(env)
    said.update({name: value for name in _FIELDS if (value := getattr(settings, name)) not in (None, {})})
    if "endpoint" not in said:
        return None
    interval, temporality = said.pop("interval", INTERVAL), said.pop("temporality", "cumulative")
    if settings.endpoint is not None and settings.protocol is None:
        said["protocol"] = "grpc"
    return PushPlan(Target(**said), interval, temporality)


_FIELDS: Final = (
    "endpoint",
    "protocol",
    "headers",
    "compression",
    "timeout",
    "interval",
    "temporality",
    "ca",
    "certificate",
    "key",
)
