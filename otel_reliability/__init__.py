"""Reliability of AI agents, from the telemetry they already emit.

Names are imported when they are first used: an agent that only calls `annotate(...)` needs no SDK
for it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from otel_reliability.annotation import annotate, reliability_run
    from otel_reliability.config import Settings
    from otel_reliability.errors import ConfigurationError, ReliabilityError
    from otel_reliability.exporter import ReliabilitySpanExporter
    from otel_reliability.processor import ReliabilitySpanProcessor
    from otel_reliability.span_file import record

__all__ = [
    "ConfigurationError",
    "ReliabilityError",
    "ReliabilitySpanExporter",
    "ReliabilitySpanProcessor",
    "Settings",
    "annotate",
    "record",
    "reliability_run",
]

_HOMES = {
    "ConfigurationError": "errors",
    "ReliabilityError": "errors",
    "ReliabilitySpanExporter": "exporter",
    "ReliabilitySpanProcessor": "processor",
    "Settings": "config",
    "annotate": "annotation",
    "record": "span_file",
    "reliability_run": "annotation",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
