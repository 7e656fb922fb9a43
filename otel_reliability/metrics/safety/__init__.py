"""Safety: does the agent break constraints, and how badly? Apart from reliability."""

from __future__ import annotations

from otel_reliability.metrics.safety.compliance import Compliance, compliance
from otel_reliability.metrics.safety.harm_severity import HarmSeverity, harm_severity
from otel_reliability.metrics.safety.safety import Safety, safety

ROWS = (Compliance, HarmSeverity, Safety)

__all__ = ["ROWS", "compliance", "harm_severity", "safety"]
