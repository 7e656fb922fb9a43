"""The environment of an attempt: where its telemetry goes, and the attributes by which its spans
name the attempt, in every language with an OpenTelemetry SDK.

Source: OpenTelemetry specification, SDK environment variables; environment variables as context
propagation carriers (`TRACEPARENT`, `BAGGAGE`).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import quote

from otel_reliability.model.span import SpanId, TraceId

ENVIRONMENT: Final = "experiment"
"""`deployment.environment.name` of all attempts: it keeps them apart from production."""
PROPAGATED: Final = {"traceparent": "TRACEPARENT", "baggage": "BAGGAGE"}
"""Headers of W3C that name the attempt to a service, by the variables with the same values."""
_SIGNALS: Final = ("TRACES", "LOGS", "METRICS")
_REMOVED: Final = frozenset(
    {
        "OTEL_SDK_DISABLED",
        "OTEL_TRACES_SAMPLER_ARG",
        "OTEL_EXPORTER_OTLP_HEADERS",
        "TRACESTATE",
        *(
            f"OTEL_EXPORTER_OTLP_{signal}_{field}"
            for signal in _SIGNALS
            for field in ("ENDPOINT", "PROTOCOL", "HEADERS")
        ),
    }
)
"""Variables of the user that would send the telemetry of an attempt elsewhere, or drop it."""


class Attempt(NamedTuple):
    """One attempt at a task. `trial` counts the attempts at it under its condition, from 0."""

    task_id: str
    trial: int
    condition: str
    trace_id: TraceId
    span_id: SpanId

    @classmethod
    def new(cls, task_id: str, trial: int, condition: str) -> Attempt:
        """Return an attempt with new ids."""
        return cls(task_id, trial, condition, secrets.token_bytes(16), secrets.token_bytes(8))

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes by which spans name it."""
        return {
            "reliability.task.id": self.task_id,
            "reliability.trial": str(self.trial),
            "reliability.condition": self.condition,
        }


def environment_of(
    attempt: Attempt, endpoint: str, protocol: str, given: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment of an attempt's process: that of ours, with the variables of
    OpenTelemetry set for it.

    >>> attempt = Attempt("a b", 2, "baseline", bytes(15) + b"1", bytes(7) + b"1")
    >>> made = environment_of(attempt, "http://127.0.0.1:4318", "http/protobuf", {})
    >>> made["OTEL_RESOURCE_ATTRIBUTES"]
    'reliability.task.id=a%20b,reliability.trial=2,reliability.condition=baseline,deployment.environment.name=experiment'
    >>> made["TRACEPARENT"]
    '00-00000000000000000000000000000031-0000000000000031-01'
    """
    kept = {key: value for key, value in given.items() if key not in _REMOVED}
    members = _encoded(attempt.attributes)
    resource = _encoded({**attempt.attributes, "deployment.environment.name": ENVIRONMENT})
    return {
        **kept,
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_LOGS_EXPORTER": "otlp",
        "OTEL_TRACES_SAMPLER": "always_on",
        "OTEL_RESOURCE_ATTRIBUTES": _joined(given.get("OTEL_RESOURCE_ATTRIBUTES"), resource),
        "TRACEPARENT": f"00-{attempt.trace_id.hex()}-{attempt.span_id.hex()}-01",
        "BAGGAGE": _joined(given.get("BAGGAGE"), members),
    }


def _joined(given: str | None, own: str) -> str:
    return f"{given},{own}" if given else own


def _encoded(attributes: Mapping[str, str]) -> str:
    return ",".join(f"{key}={quote(value, safe='')}" for key, value in attributes.items())
