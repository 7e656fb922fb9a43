"""Predictability: can the agent's own confidence be relied on? Pooled over the attempts of all tasks."""

from __future__ import annotations

from otel_reliability.metrics.predictability.brier_score import brier_score
from otel_reliability.metrics.predictability.calibration import calibration
from otel_reliability.metrics.predictability.discrimination import discrimination
from otel_reliability.metrics.predictability.predictability import predictability
from otel_reliability.metrics.predictability.risk_coverage import risk_coverage

__all__ = ["brier_score", "calibration", "discrimination", "predictability", "risk_coverage"]
