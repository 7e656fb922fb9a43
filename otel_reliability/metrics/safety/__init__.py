"""Safety: does the agent break constraints, and how badly? Apart from reliability."""

from __future__ import annotations

from otel_reliability.metrics.safety.compliance import compliance
from otel_reliability.metrics.safety.harm_severity import harm_severity
from otel_reliability.metrics.safety.safety import safety

__all__ = ["compliance", "harm_severity", "safety"]
