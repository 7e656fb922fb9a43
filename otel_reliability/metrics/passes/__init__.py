"""Passes: pass rates of several attempts at a task."""

from __future__ import annotations

from otel_reliability.metrics.passes.attempts import (
    GracefulDegradation,
    VarianceAmplification,
    graceful_degradation,
    variance_amplification,
)
from otel_reliability.metrics.passes.decay_curve import DecayCurve, decay_curve
from otel_reliability.metrics.passes.run_counts import confidence_band, recommend_runs
from otel_reliability.metrics.passes.series import PassAtK, PassHatK, pass_at_k, pass_hat_k
from otel_reliability.metrics.passes.summary import TARGETS, ReliabilitySummary, summaries, summarize

ROWS = (PassAtK, PassHatK, DecayCurve, VarianceAmplification, GracefulDegradation)

__all__ = [
    "ROWS",
    "TARGETS",
    "ReliabilitySummary",
    "confidence_band",
    "decay_curve",
    "graceful_degradation",
    "pass_at_k",
    "pass_hat_k",
    "recommend_runs",
    "summaries",
    "summarize",
    "variance_amplification",
]
