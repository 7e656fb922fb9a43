"""Predictability: can the agent's own confidence be relied on? Pooled over the attempts of all tasks."""

from __future__ import annotations

from otel_reliability.metrics.predictability.brier_score import BrierScore, Predictability, brier_score, predictability
from otel_reliability.metrics.predictability.calibration import Calibration, calibration
from otel_reliability.metrics.predictability.discrimination import Discrimination, discrimination
from otel_reliability.metrics.predictability.risk_coverage import RiskCoverage, risk_coverage

ROWS = (BrierScore, Calibration, Discrimination, RiskCoverage, Predictability)

__all__ = ["ROWS", "brier_score", "calibration", "discrimination", "predictability", "risk_coverage"]
