"""Predictability: can the agent's own confidence be relied on? Pooled over the attempts of all
tasks.
"""

from __future__ import annotations

from otel_reliability.metrics.predictability.brier_score import BrierScore, Predictability
from otel_reliability.metrics.predictability.calibration import Calibration
from otel_reliability.metrics.predictability.discrimination import Discrimination
from otel_reliability.metrics.predictability.risk_coverage import RiskCoverage

ROWS = (BrierScore, Calibration, Discrimination, RiskCoverage, Predictability)
