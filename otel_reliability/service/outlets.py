"""Metrics that the service pushes by OTLP."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

from otel_reliability.service.settings import ServiceSettings
from otel_reliability.telemetry.exposition import Exposition
from otel_reliability.telemetry.otlp import OtlpPush, Protocol

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")


class Sent(NamedTuple):
    """Number of exports by result, and seconds that the last one took."""

    outcomes: Counter[str]
    duration: float


class Outlets:
    """The push that settings, or OpenTelemetry's own variables in `env`, ask for."""

    def __init__(self, settings: ServiceSettings, env: Mapping[str, str]) -> None:
        self._endpoint, self._env = settings.push, env
        self.push: OtlpPush | None = None

    def start(self, exposition: Exposition, resource: Mapping[str, str]) -> None:
        """Push from now on."""
        if is_push_configured(self._endpoint, self._env):
            self.push = OtlpPush(exposition, resource, endpoint=self._endpoint, protocol=protocol_of(self._env))

    def stop(self, timeout: float) -> None:
        """Push once more, within so many seconds."""
        if self.push is not None:
            self.push.stop(timeout)

    def sent(self) -> dict[str, Sent]:
        """Return what was sent so far, by what it carried."""
        push = self.push
        return {} if push is None else {"metrics": Sent(Counter(push.outcomes), push.duration)}


def is_push_configured(endpoint: str | None, env: Mapping[str, str]) -> bool:
    """Return whether an endpoint is named, and OpenTelemetry's variables do not switch its use off.

    >>> env = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://box:4317"}
    >>> is_push_configured(None, env), is_push_configured(None, {**env, "OTEL_METRICS_EXPORTER": "none"})
    (True, False)
    """
    if endpoint is not None:
        return True
    disabled = env.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    exporters = {one.strip() for one in (env.get("OTEL_METRICS_EXPORTER", "").strip() or "otlp").split(",")}
    return not disabled and "otlp" in exporters and any(env.get(name, "").strip() for name in ENDPOINTS)


def protocol_of(env: Mapping[str, str]) -> Protocol:
    """Return the protocol that OpenTelemetry's variables name; gRPC where they name none.

    >>> protocol_of({"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"})
    'http/protobuf'
    """
    found = next((value for name in PROTOCOLS if (value := env.get(name, "").strip())), "grpc")
    return "grpc" if found == "grpc" else "http/protobuf"
